package nic

import (
	"strings"

	"thru/internal/cause/below"
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// emulatedCause joins what the guest shows of its adapter with what the hypervisor
// says that it is, which tells also where the driver could not be read.
func emulatedCause(e *diagnose.End) *diagnose.Outcome {
	own := emulatedSeen(e)
	n := below.GuestNIC(e)
	if e.Guest() == nil || n == nil || n.Model == nil || *n.Model == "" {
		return own
	}
	model := strings.ToLower(*n.Model)
	if !n.Emulated(e.Kind()) {
		return below.Seconded(own, diagnose.No("the hypervisor gives the %s a %s", e.Place, diagnose.Line(model)))
	}
	o := below.Symptom(diagnose.Possible("at the %s: %s of %s is emulated (%s)", e.Place, diagnose.Line(n.Name), below.GuestName(e), model).At(e.OnFace()).
		By(measure.Proof{EndPoint: e.Name, Counter: "emulated adapters, by the hypervisor", Value: 1, Note: model}).
		Mend(below.ChangeModel(e, n)), below.WorksFully(e))
	if own != nil && own.State == diagnose.Holds { // the remedy of who knows the hypervisor
		return below.Best(o, own).By(own.Evidence...)
	}
	return o
}
