package diagnose

import (
	"thru/internal/measure"
	"thru/internal/stat"
)

// SurplusBar is the loss in percent above which more is sent than passes.
const SurplusBar = 3

// FaceBar is the percentage of the payload that the interface must have counted: the two counters are not read at
// the same instant.
const FaceBar = 80

// Thresholds of the link rules, in percent of the ceiling.
const (
	LinkFullBar = stat.PassPct // the link is full from here
	NearBar     = 90           // from here unknown headers may explain the rest
)

// LinkFull is the cause of a link that carries all that it can.
const LinkFull = "link-rate"

// FlatBar is how much the seconds of a plateau may differ, in percent.
const FlatBar = 4

// AsShaper words a plateau when the rate of the link is not known.
func (f *Flow) AsShaper(o *Outcome) *Outcome {
	if o.Confidence == measure.Certain && f.mayBeMember() {
		o.Confidence = measure.Likely // a LAG member has a queue of its own
		if f.WithMost() == nil {
			o.Then("8 streams instead of one: a bundle carries a multiple of one stream's rate")
		}
	}
	o.AddFix(Advise(nil, "leave it if this is the intended rate of the link: the link is full; a shorter queue there (fq_codel, cake) or bbr reduces the delay"))
	if f.Cell.Ceiling == nil {
		o.Then("state the rate of the link (--link-rate), to see whether the link is full")
	}
	return o
}
