package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bounds of one clock comparison: the exchange with the shortest round trip
// counts. More exchanges improve little, since queueing delay mostly persists or is absent.
const (
	exchanges    = 8
	exchangeTime = time.Second
)

// reading is one comparison of an agent's clock with that of this process.
type reading struct {
	here  time.Duration // time on this process's clock at the middle of the exchange
	ahead time.Duration // agent's clock minus this process's clock
	bound time.Duration // error bound of ahead: half the round trip
	wall  time.Duration // agent's wall clock minus this machine's
}

// readClock compares an agent's clock with one that began at zero, as NTP does
// (RFC 5905, section 8): it takes the reply as made midway between request and answer.
func readClock(ctx context.Context, c bus.Caller, zero time.Time) (reading, error) {
	var best reading
	var last error
	failed := 0
	for range exchanges {
		asked, cancel := context.WithTimeout(ctx, exchangeTime)
		t1 := time.Now()
		reply, err := bus.Call(asked, c, bus.Clock, bus.Empty{})
		t4 := time.Now()
		cancel()
		if err != nil {
			last = err
			if failed++; ctx.Err() != nil || failed > 1 { // one failure may be an accident; two end the comparison
				break
			}
			continue
		}
		middle := t1.Add(t4.Sub(t1) / 2)
		x := reading{
			here: middle.Sub(zero), ahead: time.Duration(reply.NowNs) - middle.Sub(zero), bound: t4.Sub(t1) / 2,
			wall: time.Duration(reply.WallNs - middle.UnixNano()),
		}
		if best.here == 0 || x.bound < best.bound {
			best = x
		}
	}
	if best.here == 0 {
		return best, last
	}
	return best, nil
}

// clocks holds the clock readings of the agents of one step, before and after its traffic.
type clocks struct {
	zero          time.Time // zero of this process's clock
	start         time.Time // common start of all sessions
	before, after map[*EndPoint]reading
}

// compare reads the clocks of all end points that have an agent. The second map
// holds the error for each clock that it could not read.
func compare(ctx context.Context, ends []*EndPoint, zero time.Time) (map[*EndPoint]reading, map[*EndPoint]error) {
	all, failed := map[*EndPoint]reading{}, map[*EndPoint]error{}
	var mu sync.Mutex
	unit.AtMost(len(ends), perAgent, func(i int) {
		e := ends[i]
		if !e.asked() {
			return
		}
		x, err := readClock(ctx, e, zero)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed[e] = fmt.Errorf("control: asking %s for its clock: %w", e.Name, err)
			return
		}
		all[e] = x
	})
	return all, failed
}

// Time from now to the common start: each agent must receive its start time before that.
const (
	leastLead  = 200 * time.Millisecond
	roundTrips = 4                    // of the slowest agent, which has two requests to answer
	leadOfSide = 2 * time.Millisecond // for each session to start
	mostLead   = 20 * time.Second     // an agent refuses a start more than 30 s ahead
	readyLead  = 20 * time.Millisecond
)

// setStart chooses the common start of all sessions.
func (c *clocks) setStart(sessions int) {
	slowest := time.Duration(0)
	for _, x := range c.before {
		slowest = max(slowest, 2*x.bound)
	}
	c.start = time.Now().Add(min(leastLead+roundTrips*slowest+time.Duration(sessions)*leadOfSide, mostLead))
}

// startOf returns the common start on the clock of one end, in ns; 0 (start at
// once) where the clock of either end is unknown. A receiver starts a little earlier, before the first byte can come.
func (c *clocks) startOf(s *side) int64 {
	x, known := c.before[s.end]
	y, otherKnown := c.before[s.other().end]
	if !known || !otherKnown && s.other().end.asked() {
		return 0
	}
	at := c.start.Sub(c.zero) + x.ahead
	if !s.sends {
		at -= readyLead + x.bound + y.bound
	}
	return max(int64(at), 1)
}

// driftPerSecond is the assumed drift between two clocks that were compared only
// once, per second: crystals keep to 100 ppm.
const driftPerSecond = 100 * time.Microsecond

// here converts a time of an agent's clock to this process's clock, and returns
// its error bound. It assumes even drift between the two comparisons.
func (c *clocks) here(e *EndPoint, at time.Duration) (time.Duration, time.Duration) {
	b, a := c.before[e], c.after[e]
	guess := at - b.ahead
	span := a.here - b.here
	if a.here == 0 || span <= 0 {
		return guess, b.bound + time.Duration(max(0, (guess-b.here).Seconds())*float64(driftPerSecond))
	}
	drift := float64(a.ahead-b.ahead) / float64(span)
	return guess - time.Duration(drift*float64(guess-b.here)), max(a.bound, b.bound)
}

// timing sets when a run began and ended relative to the common start of its
// step; where it cannot, the run says why.
func (c *clocks) timing(f *flow) {
	e := f.run.Flows[0].Receiver
	_, known := c.before[f.receiver.end]
	why := ""
	switch {
	case e == nil || e.MeasuredNs == 0 || f.err != nil && e.BeganNs == nil:
		return // it has failed, and says why
	case f.receiver.end.Foreign:
		why = "no thru runs at " + f.receiver.end.Name + ": its clock is not known"
	case !known || e.BeganNs == nil:
		why = f.receiver.end.Name + " did not report when the measured time began"
	}
	if why != "" {
		f.run.Flows[0].Missing = append(f.run.Flows[0].Missing, measure.NotChecked{Fact: "timing", Why: why})
		return
	}
	began, bound := c.here(f.receiver.end, time.Duration(*e.BeganNs))
	start := int64(began - c.start.Sub(c.zero))
	f.run.Timing = &measure.Timing{StartNs: start, EndNs: start + e.MeasuredNs, BoundNs: int64(bound)}
}

// farClock is the difference of wall clocks that is worth a warning. It affects
// no measurement: none uses wall clocks.
const farClock = time.Second

// wallWarning names the end points whose wall clocks are far from this
// machine's; empty where none is.
func wallWarning(ends []measure.EndPoint) string {
	far := unit.Filtered(ends, func(e measure.EndPoint) bool { return e.ClockNs != nil && time.Duration(*e.ClockNs).Abs() > farClock })
	if len(far) == 0 {
		return ""
	}
	slices.SortFunc(far, func(a, b measure.EndPoint) int {
		return int(time.Duration(*b.ClockNs).Abs()/time.Millisecond) - int(time.Duration(*a.ClockNs).Abs()/time.Millisecond)
	})
	var words []string
	for _, e := range far {
		side := "ahead of"
		if *e.ClockNs < 0 {
			side = "behind"
		}
		words = append(words, fmt.Sprintf("%s is %s %s this machine's", e.Name, unit.Duration(int64(time.Duration(*e.ClockNs).Abs())), side))
	}
	return "wall clocks differ by more than 1 s: the clock of " + some(words, ", ") + "; this affects times in logs, not the figures"
}
