package cpu

import (
	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// stealCause joins the steal that the guest sees with what its host counted.
func stealCause(e *diagnose.End) *diagnose.Outcome {
	own, under := stealSeen(e), below.WaitsBelow(e)
	if under != nil && under.State == diagnose.Unknown && own != nil && own.State == diagnose.Excluded && e.HidesSteal() {
		return under
	}
	return below.Seconded(own, under)
}

// cpuLimit judges a limit that the hypervisor holds the guest's CPUs to.
func cpuLimit(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return below.Unplaced(e, "CPU limit")
	}
	if o := e.Flow.IsAll(); o != nil {
		return o
	}
	b := e.CPUs()
	limit, set := e.LimitOf()
	quota, spent := below.QuotaSpent(e)
	counted := b.LimitKnown
	switch {
	case counted && b.Limit.Mean >= diagnose.LimitedBar || spent && quota >= below.QuotaBar:
		return below.AsLimited(e, b, limit, quota)
	case limit != "" && !counted && !spent:
		o := diagnose.Possible("a CPU limit of %s is set for %s: whether it was used up was not counted", limit, below.GuestName(e)).
			By(measure.Proof{EndPoint: e.Name, Counter: "CPU limits of the guest", Value: 1, Note: limit})
		return o.At(e.Where()).Beside().Then("a run of three samples or more: " + b.Limited.Why).Mend(below.LiftLimit(e))
	case limit != "" || counted:
		return diagnose.No("no limit held back the virtual CPUs of the %s: %s of the time", e.Place, unit.Percent(b.Limit.Mean))
	case set:
		return diagnose.No("no CPU limit is set for %s", below.GuestName(e))
	}
	return diagnose.Missing("CPU limit of the "+e.Place, b.Limited.Why)
}
