package wire

import (
	"math/rand/v2"
	"time"
)

// defaultQueue and defaultPoliceBurst are the time that a queue and a bucket
// are worth whose size was not given.
const (
	defaultQueue       = 20 * time.Millisecond
	defaultPoliceBurst = 10 * time.Millisecond
)

// fate is what becomes of a packet.
type fate int

const (
	passes fate = iota
	tooLarge
	policed
	lost
	queueFull
)

// treatment is a Way at work: its limits and its chance.
type treatment struct {
	Impairment
	chance     *rand.Rand
	losing     bool // a burst of losses lasts
	police     *limiter
	peak, rate *limiter
	members    []*limiter
	flows      map[uint64]*limiter
}

// newTreatment makes the limits of a way.
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

// judge says what becomes of a packet of a flow, and when it leaves: size is
// that of its frame in bytes, ip whether the MTU holds for it.
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

// loses draws whether a packet is lost. Bursts are Gilbert's: in the lossy
// state every packet is lost, and the state lasts LossBurst packets on average.
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

// draw is true in this share of the cases.
func (t *treatment) draw(share float64) bool {
	return share > 0 && t.chance.Float64() < share
}

// member is the limit of the link that a flow takes.
func (t *treatment) member(flow uint64) *limiter {
	if len(t.members) == 0 {
		return nil
	}
	return t.members[flow%uint64(len(t.members))]
}

// ofFlow is the limit of a flow by itself.
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
