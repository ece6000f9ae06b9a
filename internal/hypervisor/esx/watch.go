package esx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"thru/internal/host/platform"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/unit"
)

// The period of readings, and the most samples of one esxtop: it ends by
// itself after an hour, in case nobody ends it, and is then started again.
const (
	every    = 5 * time.Second
	mostTops = 720
	shortest = time.Second      // between two readings: a shorter interval gives no rate
	again    = 40 * time.Second // until esxtop is restarted after a failure
)

// watch reads counters until it is ended. It implements hypervisor.Watch.
type watch struct {
	host    *Host
	stop    context.CancelFunc
	isOver  func() bool // stopped, or its context has ended
	ended   sync.WaitGroup
	portOf  map[string]string // port: id of its guest
	named   groups            // guests by esxtop's groups
	nics    []string          // the host's
	printed bool              // esxtop has printed at least once
	wholly  bool              // the host itself is watched

	asking chan struct{} // one round at a time
	last   round

	mu    sync.Mutex
	kept  keeper
	lacks []measure.NotChecked
	tops  chan time.Time // time of the latest esxtop sample; closed when there are no more
}

// Watch starts reading counters.
func (h *Host) Watch(ctx context.Context, ids []string) (hypervisor.Watch, error) {
	w := &watch{host: h, portOf: map[string]string{}, named: newGroups(), kept: newKeeper(), tops: make(chan time.Time, 1), asking: make(chan struct{}, 1)}
	if err := h.open(); err != nil {
		return nil, err
	}
	guests, err := h.guestsKnown(ctx)
	if err != nil {
		return nil, err
	}
	w.choose(ids, guests)
	if w.wholly {
		r := h.read(ctx)
		for _, n := range r.table("counters."+hostID, "esxcli", "network", "nic", "list") {
			if platform.Plain(n["name"]) {
				w.nics = append(w.nics, n["name"])
			}
		}
		w.lacks = append(w.lacks, r.NotChecked...)
	}
	run, cancel := context.WithCancel(ctx)
	w.stop, w.isOver = cancel, func() bool { return run.Err() != nil }
	w.tick(ctx)
	if err := h.begin(w, run); err != nil {
		cancel()
		return nil, err
	}
	return w, nil
}

// begin reads in the background, unless the source is closed.
func (h *Host) begin(w *watch, ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("esx: reading %s: the connection is closed", h.name)
	}
	h.watches[w] = true
	w.ended.Go(func() { w.ticks(ctx) })
	w.ended.Go(func() { w.top(ctx) })
	return nil
}

// guestsKnown returns the guests of the last inventory, or reads them.
func (h *Host) guestsKnown(ctx context.Context) ([]guest, error) {
	h.mu.Lock()
	known := h.known
	h.mu.Unlock()
	if known != nil {
		return known, nil
	}
	r := h.read(ctx)
	known = r.guests()
	if len(known) == 0 && len(r.NotChecked) > 0 {
		return nil, fmt.Errorf("esx: looking for the guests of %s: %s", h.name, r.NotChecked[0].Why)
	}
	h.keep(known)
	return known, ctx.Err()
}

// choose stores what is watched, and notes unknown ids.
func (w *watch) choose(ids []string, guests []guest) {
	for _, g := range guests {
		if g.world != "" {
			w.named.running[g.Name]++
		}
	}
	for _, id := range ids {
		i := slices.IndexFunc(guests, func(g guest) bool { return g.ID == id })
		switch {
		case id == hostID:
			w.wholly = true
		case i < 0:
			w.lack("counters."+id, "nothing has that id at "+w.host.name)
		case guests[i].world == "":
			w.lack("counters."+id, "it did not run")
		default:
			g := &guests[i]
			w.named.watch(g)
			for _, n := range g.NICs {
				if platform.Plain(n.Key) {
					w.portOf[n.Key] = id
				}
			}
		}
	}
}

func (w *watch) lack(fact, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := (measure.NotChecked{Fact: fact, Why: why}); !slices.Contains(w.lacks, n) {
		w.lacks = append(w.lacks, n)
	}
}

func (w *watch) ports() []string { return slices.Sorted(maps.Keys(w.portOf)) }

// ticks reads the counters of ports and NICs every few seconds.
func (w *watch) ticks(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.tick(ctx)
		}
	}
}

// tick reads these counters once.
func (w *watch) tick(ctx context.Context) {
	if len(w.portOf)+len(w.nics) == 0 {
		return
	}
	select {
	case w.asking <- struct{}{}:
	case <-ctx.Done():
		return // another reading hangs
	}
	defer func() { <-w.asking }()
	now, err := w.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.lack(measure.CountersOf("ports and NICs"), platform.Why(err))
		return
	case len(now.values) == 0:
		w.lack(measure.CountersOf("ports and NICs"), "neither vsish nor esxcli reports them")
	}
	switch span := now.at.Sub(w.last.at); {
	case w.last.values == nil:
		w.last = now
	case span >= shortest:
		w.between(w.last, now)
		w.last = now
	}
}

// add adds a value to its series.
func (w *watch) add(id, instance, counter, native string, span time.Duration, x measure.Reading) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept.add(measure.Series{Of: id, Instance: instance, Counter: counter, Native: native}, span, x)
}

// top runs esxtop for as long as the watch runs.
func (w *watch) top(ctx context.Context) {
	defer close(w.tops)
	if len(w.named.watched) == 0 && !w.wholly {
		return
	}
	run, ok := w.host.run.(platform.Streamer)
	if !ok {
		w.lack(measure.CountersOf("esxtop"), "this connection cannot run a longer command")
		return
	}
	for {
		out, err := run.Stream(ctx, "esxtop", "-b", "-d", strconv.Itoa(int(every/time.Second)), "-n", strconv.Itoa(mostTops))
		if err == nil {
			err = w.samples(out)
			err = errors.Join(out.Close(), err)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue // its hour has ended
		}
		w.lack(measure.CountersOf("esxtop"), platform.Why(err))
		if !w.printed {
			return
		}
		w.reached(time.Now().Add(again)) // End need not wait for a sample before then
		if !hypervisor.Pause(ctx, again) {
			return
		}
	}
}

// samples reads esxtop's output until it ends. Its first sample covers the
// time since the host was started.
func (w *watch) samples(out io.Reader) error {
	w.named.forget()
	t, err := newTop(out, func(object, of string) bool {
		w.named.note(object, of)
		_, _, _, ok := w.instance(object, of)
		return ok || w.named.mayBe(object, of)
	})
	if err != nil {
		return err
	}
	for _, n := range w.named.doubtful() {
		w.lack(measure.CountersOf("esxtop of "+n), "esxtop identifies guests by name, and several running guests have this name")
	}
	var before time.Time
	for n := 0; ; n++ {
		values, err := t.next()
		if errors.Is(err, io.EOF) && n > 1 {
			return nil
		}
		if err != nil {
			return err
		}
		now := time.Now()
		if n > 0 {
			w.sample(t, values, now, now.Sub(before))
			w.printed = true
			w.reached(now)
		}
		before = now
	}
}

// reached records until when there are samples of esxtop, or that there are
// none until then.
func (w *watch) reached(now time.Time) {
	select {
	case <-w.tops:
	default:
	}
	w.tops <- now // there is room: only this goroutine writes
}

// sample adds the values of one line.
func (w *watch) sample(t *top, values []float64, now time.Time, span time.Duration) {
	for i, v := range values {
		c := t.columns[i]
		id, instance, share, ok := w.instance(c.object, c.of)
		if !ok || math.IsNaN(v) {
			continue
		}
		name := c.counter
		switch {
		case id == hostID && (c.object == "Group Cpu" || c.object == "Vcpu"): // for threads there is one counter
			if name != measure.CounterUsed {
				continue
			}
			name = measure.CounterThread
		case name == measure.CounterUsed:
			share = 1 // a guest's value is the sum
		}
		w.add(id, instance, name, c.native, span, measure.Reading{EndedAt: now, Value: v / share})
	}
}

// vcpu matches the world of a virtual CPU, in esxtop's names.
var vcpu = unit.Pattern(`^\d+:vmx-vcpu-(\d+)(:|$)`)

// moves matches a VMkernel world that moves packets.
var moves = unit.Pattern(`(?i)(networld|pollworld|netpoll|vmnic\d+-)`)

// instance returns the guest or host of an esxtop column, its part, and the
// number of CPUs over which its percentages are summed.
func (w *watch) instance(object, of string) (id, instance string, share float64, ok bool) {
	gid, name, _ := strings.Cut(of, ":")
	switch object {
	case "Physical Cpu":
		if of == "_Total" {
			of = ""
		}
		return hostID, of, 1, w.wholly
	case "Network Port":
		p := strings.Split(of, ":")
		if len(p) < 3 {
			return "", "", 1, false
		}
		if guest := w.portOf[p[1]]; guest != "" {
			return guest, p[1], 1, true
		}
		nic := p[len(p)-1]
		return hostID, nic, 1, w.wholly && slices.Contains(w.nics, nic)
	case "Group Cpu", "Group Memory":
		if g := w.named.owner(gid, name); g != nil {
			cpus := 1.0
			if object == "Group Cpu" && g.CPUs != nil {
				cpus = float64(max(*g.CPUs, 1))
			}
			return g.ID, "", cpus, true
		}
		return hostID, name, 1, w.wholly && object == "Group Cpu" && moves().MatchString(name)
	case "Vcpu":
		if n, world, ok := w.named.world(name); ok {
			g, m := w.named.owner(gid, n), vcpu().FindStringSubmatch(world)
			if g != nil && m != nil {
				return g.ID, m[1], 1, true
			}
		}
		return hostID, name, 1, w.wholly && moves().MatchString(name)
	}
	return "", "", 1, false
}

// End returns what was counted until now.
func (w *watch) End(ctx context.Context) ([]measure.Series, []measure.NotChecked) {
	now := time.Now()
	if !w.isOver() {
		w.tick(ctx)
		w.awaitTop(ctx, now)
	}
	w.stop()
	w.ended.Wait()
	w.host.mu.Lock()
	delete(w.host.watches, w)
	w.host.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.kept.all()
	if len(all) == 0 && len(w.lacks) == 0 {
		w.lacks = append(w.lacks, measure.NotChecked{Fact: "counters", Why: fmt.Sprintf("two readings take %v, and the test ended earlier", every)})
	}
	return all, w.lacks
}

// awaitTop waits for the esxtop sample that covers the time until now.
func (w *watch) awaitTop(ctx context.Context, now time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case at, more := <-w.tops:
			if !more || !at.Before(now) {
				return
			}
		}
	}
}
