package faults

import (
	"slices"

	"thru/internal/measure"
)

// All is the table, healthy paths last.
func All() []Fault {
	return slices.Concat(windowFaults(), pathFaults(), sizeFaults(), optionFaults(), hostFaults(), memberFaults(), healthy())
}

// well is what must be said of a link of a known rate that is full.
func well() *Want {
	return &Want{Cause: "link-rate", Or: []string{measure.CauseNone}, Why: "both say that nothing is wrong"}
}

// full is what must be said of a healthy link whose rate nobody has stated.
func full() *Want {
	return &Want{Cause: "shaper", Or: Healthy(), Why: "a plateau on a link of unknown rate is a shaper"}
}

// is wants a cause at a place.
func is(cause, place string) *Want { return &Want{Cause: cause, Place: place} }

// or accepts other causes, and says why.
func (w *Want) or(why string, causes ...string) *Want {
	w.Or, w.Why = append(w.Or, causes...), why
	return w
}
