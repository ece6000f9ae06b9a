package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
)

// facts caches the host's facts for as long as thirty readings take: 0.2 s on
// Linux, where they are files; longer where they are commands.
type facts struct {
	mu   sync.Mutex
	last measure.Facts
	took time.Duration
	at   time.Time // end of the last reading
}

// Bounds of how old facts may be.
const (
	readings   = 30
	longestAge = 2 * time.Minute
	checkAge   = 10 * time.Second
)

// read returns facts that are at most age old; concurrent callers wait for one
// reading.
func (f *facts) read(h *host.Host, age time.Duration) measure.Facts {
	f.mu.Lock()
	defer f.mu.Unlock()
	if begin := time.Now(); begin.Sub(f.at) > min(age, readings*f.took) {
		f.last = h.Facts()
		f.at = time.Now()
		f.took = f.at.Sub(begin)
	}
	all := f.last
	all.NotChecked = slices.Clip(all.NotChecked) // so that an append by a caller copies
	return all
}

// unidentified removes what identifies the machine: a measuring client does not
// need it, and results are passed on.
func unidentified(f measure.Facts) measure.Facts {
	if f.Machine != nil {
		m := *f.Machine
		m.UUID, f.Machine = "", &m
	}
	f.NotChecked = slices.DeleteFunc(slices.Clone(f.NotChecked), func(n measure.NotChecked) bool { return n.Fact == "machine.uuid" })
	return f
}

// forget forces a fresh reading next time: a setting was changed.
func (f *facts) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = time.Time{}
}

// baseline is the host's load without tests, read when no test runs and cached,
// since one reading serves all cells of a ladder.
type baseline struct {
	mu   sync.Mutex
	at   time.Time
	span *measure.HostSpan // nil: tests ran
	calm bool              // the load was low enough for the reading to be reused
}

const (
	baselineTime  = 500 * time.Millisecond
	baselineKeeps = 10 * time.Second
	baselineBusy  = 10                     // percent of the machine's CPU above which a reading is not reused
	quietWait     = 300 * time.Millisecond // wait for workers that have already reported their end
)

// get reads the baseline, or returns nil when tests run before or after the
// reading. Sessions that end together share one reading, whatever its result: one
// after the other they would take so long that the last ones' evidence would be lost.
// Up to age, an earlier reading serves whatever it showed.
func (b *baseline) get(ctx context.Context, h *host.Host, quiet func() bool, age time.Duration) *measure.HostSpan {
	asked := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	old := time.Since(b.at)
	if b.at.After(asked) || b.calm && old < baselineKeeps || b.span != nil && old < age {
		return b.span
	}
	span := readBaseline(ctx, h, quiet)
	if ctx.Err() == nil {
		b.at, b.span, b.calm = time.Now(), span, span != nil && busyPct(*span) < baselineBusy
	}
	return span
}

func readBaseline(ctx context.Context, h *host.Host, quiet func() bool) *measure.HostSpan {
	for give := time.Now().Add(quietWait); !quiet(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(give) {
			return nil
		}
	}
	before := h.Read("", 0)
	select {
	case <-time.After(baselineTime):
	case <-ctx.Done():
		return nil
	}
	span := host.Span(before, h.Read("", 0), before.Taken)
	if !quiet() {
		return nil
	}
	span.Proto, span.Softnet = nil, nil // only its CPU figures are used
	return &span
}

// busyPct returns the CPU load of the machine in a span, in percent.
func busyPct(span measure.HostSpan) (pct float64) {
	for _, c := range span.CPUs {
		pct += c.Busy() / float64(len(span.CPUs))
	}
	return pct
}
