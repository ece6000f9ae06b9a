package wire

import (
	"math/rand/v2"
	"time"
)

// defaultQueue and defaultPoliceBurst are the default sizes of a queue and a bucket, as time at the rate.
const (
	defaultQueue       = 20 * time.Millisecond
	defaultPoliceBurst = 10 * time.Millisecond
)

// fate is what happens to a packet.
type fate int

const (
	passes fate = iota
	tooLarge
	policed
	lost
	queueFull
)

// treatment is the state of an Impairment: its limits and its random source.
type treatment struct {
	Impairment
	chance     *rand.Rand
	losing     bool // within a burst of losses
	police     *limiter
	peak, rate *limiter
	members    []*limiter
	flows      map[uint64]*limiter
}

// newTreatment returns the state of an impairment.
func newTreatment(w Impairment) *treatment {
	t := &treatment{
		Impairment: w,
		chance:     rand.New(rand.NewPCG(w.Seed, 0)),
		police:     newLimiter(w.PoliceRate, held(w.PoliceBurst, w.PoliceRate, defaultPoliceBurst), 0),
		peak:       newLimiter(w.PeakRate, 0, held(w.Queue, w.PeakRate, defaultQueue)),
		rate:       newLimiter(w.Rate, w.Burst, held(w.Queue, w.Rate, defaultQueue)),
		flows:      map[uint64]*limiter{},
	}
	for range w.Members {
		t.members = append(t.members, newLimiter(w.MemberRate, 0, held(w.Queue, w.MemberRate, defaultQueue)))
	}
	return t
}

// judge returns what happens to a packet of a flow, and when it leaves: size is that of its frame in bytes,
// ip whether the MTU applies.
func (t *treatment) judge(now int64, size int, ip bool, flow uint64) (fate, int64) {
	if t.MTU > 0 && ip && size-ethernetSize > t.MTU {
		return tooLarge, 0
	}
	at, ok := t.police.pass(float64(now), size)
	if !ok {
		return policed, 0
	}
	if t.loses() {
		return lost, 0
	}
	for _, l := range [...]*limiter{t.peak, t.rate, t.member(flow), t.ofFlow(flow)} {
		if at, ok = l.pass(at, size); !ok {
			return queueFull, 0
		}
	}
	return passes, int64(at) + int64(t.Delay)
}

// loses draws whether a packet is lost. Bursts follow Gilbert's model: in the lossy state every packet is
// lost, and the state lasts LossBurst packets on average.
func (t *treatment) loses() bool {
	if t.Loss <= 0 || t.LossBurst <= 1 || t.Loss >= 1 {
		return t.draw(t.Loss)
	}
	if t.losing {
		t.losing = !t.draw(1 / t.LossBurst)
	} else {
		t.losing = t.draw(t.Loss / (1 - t.Loss) / t.LossBurst)
	}
	return t.losing
}

// draw returns true with probability share.
func (t *treatment) draw(share float64) bool {
	return share > 0 && t.chance.Float64() < share
}

// member returns the limit of the link that a flow takes.
func (t *treatment) member(flow uint64) *limiter {
	if len(t.members) == 0 {
		return nil
	}
	return t.members[flow%uint64(len(t.members))]
}

// ofFlow returns the limit of a single flow.
func (t *treatment) ofFlow(flow uint64) *limiter {
	if t.PerFlowRate <= 0 {
		return nil
	}
	l, known := t.flows[flow]
	if !known {
		l = newLimiter(t.PerFlowRate, 0, held(t.Queue, t.PerFlowRate, defaultQueue))
		t.flows[flow] = l
	}
	return l
}
