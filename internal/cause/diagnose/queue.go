package diagnose

import (
	"thru/internal/measure"
)

// FlatBar is how much the seconds of a plateau may differ, in percent.
const FlatBar = 4

// AsShaper says what a plateau means where the rate of the link is not known.
func (f *Flow) AsShaper(o *Outcome) *Outcome {
	if o.Confidence == measure.Certain && f.mayBeMember() {
		o.Confidence = measure.Likely // a member of a bundle has a queue of its own
		if f.WithMost() == nil {
			o.Then("8 streams instead of one: a bundle carries a multiple")
		}
	}
	o.Mend(Advise(nil, "if this is what the link is to carry, it is full; a shorter queue there (fq_codel, cake) or bbr takes the delay away"))
	if f.Cell.Ceiling == nil {
		o.Then("--link-rate says what the link should carry: then it is told whether this is all of it")
	}
	return o
}
