package agent

import (
	"slices"
	"sync"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
)

// facts keeps what was read of the host for as long as thirty readings take:
// 0.2 s on Linux, where they are files; longer where they are commands.
type facts struct {
	mu   sync.Mutex
	last measure.Facts
	took time.Duration
	at   time.Time // the last reading ended
}

// Bounds of how old facts may be.
const (
	readings   = 30
	longestAge = 2 * time.Minute
	checkAge   = 10 * time.Second
)

// read returns facts of that age at most; callers at the same time wait for
// one reading.
func (f *facts) read(h *host.Host, age time.Duration) measure.Facts {
	f.mu.Lock()
	defer f.mu.Unlock()
	if begin := time.Now(); begin.Sub(f.at) > min(age, readings*f.took) {
		f.last = h.Facts()
		f.at = time.Now()
		f.took = f.at.Sub(begin)
	}
	all := f.last
	all.NotChecked = slices.Clip(all.NotChecked) // a caller adds to its own
	return all
}

// unidentified leaves out what tells one machine from all others: who only measures
// does not need it, and results are passed on.
func unidentified(f measure.Facts) measure.Facts {
	if f.Machine != nil {
		m := *f.Machine
		m.UUID, f.Machine = "", &m
	}
	f.NotChecked = slices.DeleteFunc(slices.Clone(f.NotChecked), func(n measure.NotChecked) bool { return n.Fact == "machine.uuid" })
	return f
}

// forget has the next reading be a fresh one: something was changed.
func (f *facts) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = time.Time{}
}
