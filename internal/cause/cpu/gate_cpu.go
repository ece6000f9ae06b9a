package cpu

import (
	"cmp"
	"math"
	"slices"

	"thru/internal/cause/gate"
	"thru/internal/measure"
)

// fullCore is how busy a CPU is that limits a stream, in percent.
const fullCore = 95

// CpuGates judge whether the CPUs suffice for the rate, by what earlier tests cost.
func CpuGates() []gate.Rule {
	return []gate.Rule{{
		ID: "cpu-capacity", Title: "CPUs for the rate",
		About:  "the CPUs that the rate takes, by what earlier TCP tests cost this host, against those that thru may use",
		Warns:  "the rate takes more CPUs than there are; or one planned stream filled a CPU below the rate",
		Why:    "a host that cannot make the rate measures itself: plan CPUs before the link is blamed",
		Source: "CPUs used x rate / measured rate; B-07, B-16: 4 CPUs ~10 Gb/s, 8 CPUs ~20 Gb/s", Remedy: "more CPUs, offloads, more streams",
		Cause: "sender-cpu", Checklist: []string{"A-04", "B-07", "B-16", "C-12", "C-29"}, Host: cpuCapacity,
	}}
}

// costs of earlier TCP tests of this host as it is, the highest rate first.
func costs(h *gate.Host, sends bool) []gate.Cost {
	var list []gate.Cost
	for _, c := range h.End.Costs {
		usable := c.Bps > 0 && c.Cores > 0 && !math.IsInf(c.Bps, 0) && !math.IsInf(c.Cores, 0)
		same := h.CPUModel == nil || c.CPUModel == "" || c.CPUModel == *h.CPUModel
		if c.Sends == sends && usable && same && (c.Protocol == measure.TCP || c.Protocol == "") {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b gate.Cost) int {
		return cmp.Or(cmp.Compare(b.Bps, a.Bps), cmp.Compare(a.Cores, b.Cores))
	})
	return list
}

// needs is how many CPUs the rate takes in the direction that takes more, and
// the test that tells so. ok is false where no earlier test does.
func needs(h *gate.Host) (cores float64, by gate.Cost, ok bool) {
	want := float64(h.Rate())
	for _, sends := range []bool{true, false} {
		if list := costs(h, sends); len(list) > 0 && want > 0 {
			if n := list[0].Cores / list[0].Bps * want; n > cores {
				cores, by, ok = n, list[0], true
			}
		}
	}
	return cores, by, ok
}

func cpuCapacity(h *gate.Host) *gate.Finding {
	if !h.Known {
		return nil
	}
	cores, by, ok := needs(h)
	switch {
	case h.Rate() == 0 && h.OnOneMachine():
		return nil // the rate is what the CPUs make
	case h.Rate() == 0:
		return gate.NotChecked("CPUs for the rate", "no rate is known: --link-rate states it")
	case !ok:
		return gate.NotChecked("CPUs for "+gate.Rate(h.Rate()), "no earlier result of this host tells what it costs")
	case h.CPUs() == 0:
		return h.Missing("CPUs for "+gate.Rate(h.Rate()), "cores")
	}
	what, cause := "receiving", "receiver-cpu"
	if by.Sends {
		what, cause = "sending", "sender-cpu"
	}
	if has := allowed(h); cores > has {
		return gate.Warn("%s takes %.1f CPUs for %s, of %.3g: an earlier test used %.1f for %s", gate.Rate(h.Rate()), cores, what, has, by.Cores, gate.Rate(by.Bps)).
			As(cause).Do(gate.Advise("more CPUs for this host, offloads on, MTU 9000"))
	}
	if f := oneStream(h); f != nil {
		return f
	}
	return gate.Pass("%s takes %.1f of %d CPUs for %s, by an earlier test at %s", gate.Rate(h.Rate()), cores, h.CPUs(), what, gate.Rate(by.Bps))
}

// allowed is how many CPUs' worth of time thru may use.
func allowed(h *gate.Host) float64 {
	has := float64(h.CPUs())
	if h.Cgroup != nil && h.Cgroup.QuotaCPUs != nil && *h.Cgroup.QuotaCPUs > 0 {
		has = min(has, *h.Cgroup.QuotaCPUs)
	}
	return has
}

// oneStream tells where a single planned stream filled a CPU below the rate before.
func oneStream(h *gate.Host) *gate.Finding {
	if h.Subject.Streams != 1 {
		return nil
	}
	for _, sends := range []bool{true, false} {
		for _, c := range costs(h, sends) {
			if c.Streams == 1 && c.BusiestPct >= fullCore && c.Bps < float64(h.Rate()) {
				return gate.Warn("one stream filled a CPU at %s, of %s", gate.Rate(c.Bps), gate.Rate(h.Rate())).
					Because("one stream uses one CPU of the receiver: several use several").As("single-flow").
					Do(gate.Advise("test with several connections too: thru test -P 4"))
			}
		}
	}
	return nil
}
