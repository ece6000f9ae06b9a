package gate

import (
	"cmp"
	"math"
	"slices"

	"thru/internal/measure"
)

// fullCore is how busy a CPU is that limits a stream, in percent.
const fullCore = 95

// cpuRules judge whether the CPUs suffice for the rate, by what earlier tests cost.
func cpuRules() []Rule {
	return []Rule{{
		ID: "cpu-capacity", Title: "CPUs for the rate",
		About:  "the CPUs that the rate takes, by what earlier TCP tests cost this host, against those that thru may use",
		Warns:  "the rate takes more CPUs than there are; or one planned stream filled a CPU below the rate",
		Why:    "a host that cannot make the rate measures itself: plan CPUs before the link is blamed",
		Source: "CPUs used x rate / measured rate; B-07, B-16: 4 CPUs ~10 Gb/s, 8 CPUs ~20 Gb/s", Remedy: "more CPUs, offloads, more streams",
		Cause: "sender-cpu", Checklist: []string{"A-04", "B-07", "B-16", "C-12", "C-29"}, host: cpuCapacity,
	}}
}

// costs of earlier TCP tests of this host as it is, the highest rate first.
func (h *host) costs(sends bool) []Cost {
	var list []Cost
	for _, c := range h.end.Costs {
		usable := c.Bps > 0 && c.Cores > 0 && !math.IsInf(c.Bps, 0) && !math.IsInf(c.Cores, 0)
		same := h.CPUModel == nil || c.CPUModel == "" || c.CPUModel == *h.CPUModel
		if c.Sends == sends && usable && same && (c.Protocol == measure.TCP || c.Protocol == "") {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(b.Bps, a.Bps), cmp.Compare(a.Cores, b.Cores))
	})
	return list
}

// needs is how many CPUs the rate takes in the direction that takes more, and
// the test that tells so. ok is false where no earlier test does.
func (h *host) needs() (cores float64, by Cost, ok bool) {
	want := float64(h.rate())
	for _, sends := range []bool{true, false} {
		if list := h.costs(sends); len(list) > 0 && want > 0 {
			if n := list[0].Cores / list[0].Bps * want; n > cores {
				cores, by, ok = n, list[0], true
			}
		}
	}
	return cores, by, ok
}

func cpuCapacity(h *host) *finding {
	if !h.known {
		return nil
	}
	cores, by, ok := h.needs()
	switch {
	case h.rate() == 0 && h.onOneMachine():
		return nil // the rate is what the CPUs make
	case h.rate() == 0:
		return notChecked("CPUs for the rate", "no rate is known: --link-rate states it")
	case !ok:
		return notChecked("CPUs for "+rate(h.rate()), "no earlier result of this host tells what it costs")
	case h.cpus() == 0:
		return h.missing("CPUs for "+rate(h.rate()), "cores")
	}
	what, cause := "receiving", "receiver-cpu"
	if by.Sends {
		what, cause = "sending", "sender-cpu"
	}
	if has := h.allowed(); cores > has {
		return warn("%s takes %.1f CPUs for %s, of %.3g: an earlier test used %.1f for %s", rate(h.rate()), cores, what, has, by.Cores, rate(by.Bps)).
			as(cause).do(advise("more CPUs for this host, offloads on, MTU 9000"))
	}
	if f := h.oneStream(); f != nil {
		return f
	}
	return pass("%s takes %.1f of %d CPUs for %s, by an earlier test at %s", rate(h.rate()), cores, h.cpus(), what, rate(by.Bps))
}

// allowed is how many CPUs' worth of time thru may use.
func (h *host) allowed() float64 {
	has := float64(h.cpus())
	if h.Cgroup != nil && h.Cgroup.QuotaCPUs != nil && *h.Cgroup.QuotaCPUs > 0 {
		has = min(has, *h.Cgroup.QuotaCPUs)
	}
	return has
}

// oneStream tells where a single planned stream filled a CPU below the rate before.
func (h *host) oneStream() *finding {
	if h.subject.Streams != 1 {
		return nil
	}
	for _, sends := range []bool{true, false} {
		for _, c := range h.costs(sends) {
			if c.Streams == 1 && c.BusiestPct >= fullCore && c.Bps < float64(h.rate()) {
				return warn("one stream filled a CPU at %s, of %s", rate(c.Bps), rate(h.rate())).
					because("one stream uses one CPU of the receiver: several use several").as("single-flow").
					do(advise("test with several connections too: thru test -P 4"))
			}
		}
	}
	return nil
}
