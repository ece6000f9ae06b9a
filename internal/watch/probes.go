package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/unit"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

const (
	// lease is how long agents go on without a watch, and keep the samples for it.
	lease = 7 * 24 * time.Hour
	// renewAfter is how often agents learn again what to probe: one that restarted has forgotten it.
	renewAfter = 2 * time.Minute
	// awayEvery is how often a pair whose sender is away gets a sample that says so.
	awayEvery = time.Minute
	// atOnce bounds the agents that are asked at the same time.
	atOnce = 32
)

// probing is what one sending agent knows, and has reported.
type probing struct {
	assigned time.Time // when it last learned what to probe; zero: not on this connection
	by       *Hosts    // who assigned it: after a reload it learns the new plan
	stored   int64     // number of the last sample that was fetched
	dropped  int64     // samples that nobody fetched in time, as reported so far
	away     time.Time // when its pairs last got a sample that it is away
	failed   map[record.Pair]broken
	known    map[record.Pair]bus.Pair // as last assigned
}

// broken is why a pair is not probed.
type broken struct {
	state  record.State
	reason record.Reason
	err    error
}

// away is an end whose agent cannot be reached.
func away(err error) broken { return broken{record.NotMeasured, record.AgentAway, err} }

// refused is a pair that an agent does not probe.
func refused(err error) broken { return broken{record.Refused, record.NotPermitted, err} }

// Probes implements Fleet.
func (h *Hosts) Probes(ctx context.Context) (all []record.Sample, more bool) {
	var mu sync.Mutex
	senders := unit.Unique(unit.Mapped(h.probed(), func(p record.Pair) string { return p.From }))
	unit.AtMost(len(senders), atOnce, func(i int) {
		samples, left := h.probesOf(ctx, senders[i])
		mu.Lock()
		defer mu.Unlock()
		all, more = append(all, samples...), more || left
	})
	return all, more
}

// probed lists the pairs that are probed.
func (h *Hosts) probed() []record.Pair {
	paths := unit.Filtered(h.Paths, schedule.Path.Probed)
	return unit.Mapped(paths, func(p schedule.Path) record.Pair { return p.Pair })
}

// probesOf fetches the samples of one sender, and assigns its pairs where it does not know them.
func (h *Hosts) probesOf(ctx context.Context, from string) (samples []record.Sample, more bool) {
	pairs := unit.Filtered(h.probed(), func(p record.Pair) bool { return p.From == from })
	end, err := h.end(ctx, from)
	h.mu.Lock()
	x := h.hosts[from]
	h.mu.Unlock()
	if err == nil && (x.by != h || time.Since(x.assigned) > renewAfter) {
		err = h.assign(ctx, end, x, pairs)
	}
	if err == nil {
		samples, more, err = h.fetch(ctx, end, x)
	}
	if err != nil {
		x.assigned = time.Time{}
		return append(samples, x.silent(pairs, func(record.Pair) broken { return away(err) })...), false
	}
	for i, s := range samples {
		if s.State == record.Down && h.refusedBy(ctx, s.To) {
			samples[i].State, samples[i].Reason = record.NotMeasured, record.AgentAway
		}
	}
	silent := unit.Filtered(pairs, func(p record.Pair) bool { return x.failed[p].err != nil })
	return append(samples, x.silent(silent, func(p record.Pair) broken { return x.failed[p] })...), more
}

// silent returns a sample without values for each of these pairs, once in a while.
func (x *probing) silent(pairs []record.Pair, why func(record.Pair) broken) (all []record.Sample) {
	now := time.Now()
	if len(pairs) == 0 || now.Sub(x.away) < awayEvery {
		return nil
	}
	x.away = now
	for _, p := range pairs {
		b := why(p)
		all = append(all, failed(notMeasured(schedule.Task{Pair: p, Layer: record.Probe}, now, b.state, b.reason), b.err))
	}
	return all
}

// assign has the receivers answer, and the sender send. A receiver that cannot be asked leaves the others.
func (h *Hosts) assign(ctx context.Context, from *control.EndPoint, x *host, pairs []record.Pair) error {
	request := bus.PairsRequest{Watch: h.Watch, LeaseNs: int64(lease), Seed: h.Seed}
	x.failed = map[record.Pair]broken{}
	if x.known == nil {
		x.known = map[record.Pair]bus.Pair{}
	}
	for _, p := range pairs {
		to, err := h.end(ctx, p.To)
		why := away(err)
		if err == nil {
			if x.known[p], err = h.reflected(ctx, p, to, x.known[p]); err != nil {
				why = refused(err)
			}
		}
		if x.known[p].Target == "" {
			x.failed[p] = why
			delete(x.known, p)
			continue
		} // else the sender goes on: whether packets come back is what the watch is for
		request.Pairs = append(request.Pairs, x.known[p])
	}
	reply, err := bus.Call(ctx, from, bus.Pairs, request)
	if err != nil {
		return err
	}
	for _, r := range reply.Refused {
		x.failed[record.Pair{From: r.From, To: r.To}] = refused(fault.Failf(r.Hint, "%s", r.Error))
	}
	x.assigned, x.by = time.Now(), h
	return nil
}

// reflected has the receiver of a pair answer, and returns what its sender must know; on error what it knew before.
func (h *Hosts) reflected(ctx context.Context, p record.Pair, to *control.EndPoint, before bus.Pair) (bus.Pair, error) {
	reply, err := bus.Call(ctx, to, bus.Reflect, bus.ReflectRequest{Watch: h.Watch, LeaseNs: int64(lease), From: p.From, To: p.To, IntervalNs: int64(h.ProbeEvery)})
	if err != nil {
		return before, err
	}
	target := net.JoinHostPort(to.DataHosts[0], strconv.Itoa(reply.Port))
	return bus.Pair{From: p.From, To: p.To, Target: target, SSID: reply.SSID, Token: reply.Token, IntervalNs: int64(h.ProbeEvery)}, nil
}

// fetch fetches the next samples. The agent drops those of the last call, which are stored by now.
func (h *Hosts) fetch(ctx context.Context, from *control.EndPoint, x *host) (all []record.Sample, more bool, err error) {
	r, err := bus.Call(ctx, from, bus.Samples, bus.SamplesRequest{Watch: h.Watch, LeaseNs: int64(lease), Stored: x.stored})
	for _, n := range r.Samples {
		all, x.stored = append(all, n.Sample), n.Number
	}
	if r.Dropped > x.dropped {
		h.Warn(fmt.Errorf("watch: %s dropped %d samples that nobody fetched in time", from.Name, r.Dropped-x.dropped))
		x.dropped = r.Dropped
	}
	return all, r.More, err
}

// refusedBy reports whether a host is there, and its agent is not: then a lack of answers says nothing about the path.
func (h *Hosts) refusedBy(ctx context.Context, name string) bool {
	_, err := h.end(ctx, name)
	return errors.Is(err, bus.ErrRefused)
}

// endTime bounds how long a watch that ends waits for its agents.
const endTime = 5 * time.Second

// End has all agents forget the watch. Without it they go on for the time of their lease, and keep the samples for the next run.
func (h *Hosts) End() { h.leave(nil, nil, nil) }

// Leave ends what the plan does not have any more, of the paths of before: agents without a part in it forget the watch, those that only receive send no
// more, and nobody answers packets of pairs that have gone.
func (h *Hosts) Leave(before []schedule.Path) {
	leases, sends := map[string]int64{}, map[string]bool{}
	stays := map[record.Pair]bool{}
	for _, p := range h.Paths {
		stays[p.Pair], leases[p.From], leases[p.To] = true, int64(lease), int64(lease)
	}
	for _, p := range h.probed() {
		sends[p.From] = true
	}
	gone := unit.Filtered(before, func(p schedule.Path) bool { return !stays[p.Pair] && p.Probed() })
	h.leave(leases, sends, gone)
}

// leave has agents answer these pairs no more, and send no more, but some. Without a lease they forget the watch, and are disconnected.
func (h *Hosts) leave(leases map[string]int64, sends map[string]bool, gone []schedule.Path) {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	h.mu.Lock()
	all := maps.Clone(h.hosts)
	maps.DeleteFunc(h.hosts, func(name string, _ *host) bool { return leases[name] == 0 })
	h.mu.Unlock()
	names := slices.Collect(maps.Keys(all))
	unit.AtMost(len(names), atOnce, func(i int) {
		x, lease := all[names[i]], leases[names[i]]
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.end == nil {
			return
		}
		for _, p := range gone {
			if p.To == names[i] && lease > 0 {
				_, _ = bus.Call(ctx, x.end, bus.Reflect, bus.ReflectRequest{Watch: h.Watch, LeaseNs: lease, From: p.From, To: p.To})
			}
		}
		if sends[names[i]] {
			return
		}
		_, _ = bus.Call(ctx, x.end, bus.Pairs, bus.PairsRequest{Watch: h.Watch, LeaseNs: lease, Seed: h.Seed}) // its lease ends it too
		if lease == 0 {
			x.close()
			x.end, x.close = nil, nil
		}
	})
}
