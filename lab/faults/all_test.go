package faults

import (
	"slices"

	"thru/internal/measure"
)

// All returns the table of faults, healthy paths last.
func All() []Fault {
	return slices.Concat(windowFaults(), pathFaults(), sizeFaults(), optionFaults(), hostFaults(), memberFaults(), healthy())
}

// well wants the finding for a full link of known rate.
func well() *Want {
	return &Want{Cause: "link-rate", Or: []string{measure.CauseNone}, Why: "both say that nothing is wrong"}
}

// full wants the finding for a healthy link whose rate was not given.
func full() *Want {
	return &Want{Cause: "shaper", Or: Healthy(), Why: "a plateau on a link of unknown rate is a shaper"}
}

// is wants a cause at a place.
func is(cause, place string) *Want { return &Want{Cause: cause, Place: place} }

// or accepts other causes too, with the reason.
func (w *Want) or(why string, causes ...string) *Want {
	w.Or, w.Why = append(w.Or, causes...), why
	return w
}
