package kvm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"thru/internal/hypervisor"
	"thru/internal/measure"
)

// watch reads counters of guests and of the host until it is ended.
type watch struct {
	host    *Host
	recs    recorders
	sources []source
	guests  []process // watched ones
	missing []measure.NotChecked
	last    time.Time // of the latest reading

	ending chan struct{} // the next sample is the last
	quit   chan struct{} // ends the watch at once
	over   chan struct{}
	end    sync.Once
	gone   sync.Once
}

// source reads some meters at once: it returns values in their order; false
// where there is nothing to read any more.
type source struct {
	meters []*meter
	read   func() ([]float64, bool)
}

// Watch implements hypervisor.Source: it reads once a second, with one
// goroutine, until End or Close, or until the context ends.
func (h *Host) Watch(ctx context.Context, ids []string) (hypervisor.Watch, error) {
	w, err := h.prepare(ids)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("kvm: starting to read counters: %w", err)
	}
	h.mu.Lock()
	h.watches[w] = true
	h.mu.Unlock()
	go w.run(ctx)
	return w, nil
}

// prepare returns a watch with a first reading of all counters.
func (h *Host) prepare(ids []string) (*watch, error) {
	running, _, err := h.guests()
	if err != nil {
		return nil, err
	}
	w := &watch{host: h, ending: make(chan struct{}), quit: make(chan struct{}), over: make(chan struct{})}
	for i := range running {
		if p := &running[i]; slices.Contains(ids, p.ID) {
			w.guests = append(w.guests, *p)
		}
	}
	w.miss(ids)
	w.sources = h.sources(w.guests, slices.Contains(ids, hostID), h.groupsOf(running), &w.missing)
	var meters []*meter
	for _, s := range w.sources {
		meters = append(meters, s.meters...)
	}
	w.recs = newRecorders(meters, h.second)
	w.tick(time.Now())
	return w, nil
}

// miss notes the ids that cannot be watched, and the counters that no guest
// has.
func (w *watch) miss(ids []string) {
	for _, id := range ids {
		if id != hostID && !slices.ContainsFunc(w.guests, func(p process) bool { return p.ID == id }) {
			w.missing = append(w.missing, measure.NotChecked{Fact: "series." + clean(id), Why: "no guest with this id runs here"})
		}
	}
	if len(w.guests) > 0 {
		w.missing = append(w.missing, measure.NotChecked{Fact: "series." + measure.CounterBalloon, Why: "only QEMU's monitor reports it, which belongs to the guest's manager"})
	}
}

// run reads until the watch is ended.
func (w *watch) run(ctx context.Context) {
	defer close(w.over)
	defer w.host.forget(w)
	timer := time.NewTimer(w.recs.every())
	defer timer.Stop()
	ending := w.ending
	for {
		select {
		case <-w.quit:
			return
		case <-ctx.Done():
			return
		case <-ending:
			ending = nil // wait for the sample in progress, where it takes no longer than a first sample
			if w.recs.every() > w.host.second {
				w.recs.lastPart(time.Now(), w.read())
				return
			}
		case <-timer.C:
			w.tick(time.Now())
			if ending == nil {
				return
			}
			timer.Reset(max(w.recs.every()-time.Since(w.last), w.recs.every()/10))
		}
	}
}

// tick reads all counters once.
func (w *watch) tick(now time.Time) {
	w.recs.tick(now, w.read())
	w.last = now
}

// read returns a function with the present reading of each meter.
func (w *watch) read() func(*meter) float64 {
	read := map[*meter]float64{}
	for _, s := range w.sources {
		values, ok := s.read()
		for i, m := range s.meters {
			if !ok || i >= len(values) {
				read[m] = nothing()
				continue
			}
			read[m] = values[i]
		}
	}
	return func(m *meter) float64 { return read[m] }
}

// stop ends the watch at once.
func (w *watch) stop() {
	w.gone.Do(func() { close(w.quit) })
	<-w.over
}

// forget removes a watch that has ended from the running ones.
func (h *Host) forget(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watches, w)
}

// End implements hypervisor.Watch. It waits for the sample in progress.
func (w *watch) End(ctx context.Context) ([]measure.Series, []measure.NotChecked) {
	w.end.Do(func() { close(w.ending) })
	select {
	case <-w.over:
	case <-ctx.Done():
	}
	w.stop()
	for _, p := range w.guests {
		if born, err := w.host.machine.Born(p.pid); err != nil || born != p.born {
			w.missing = append(w.missing, measure.NotChecked{Fact: "series." + p.ID, Why: "the guest ended during the measurement"})
		}
	}
	return w.recs.series(), w.missing
}
