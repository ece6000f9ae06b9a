package mtu

import (
	"thru/internal/cause/advise"
	"thru/internal/measure"
)

// Bars of a direction that carries next to nothing.
const (
	stallAgain = 0.5  // of the segments sent again
	stallShare = 0.01 // of the rate that is plausible there,
	someAgain  = 0.03 // where at least so many segments are sent again: what never arrives is
)

// lastResort is tried where next to nothing passes: segmentation offload off, whether or not
// a rule could tell that it is broken, since another fault may hide it.
func lastResort(w *advise.Way) *measure.Finding {
	if !stalled(w) {
		return nil
	}
	return &measure.Finding{
		Cause: "broken-tso", Confidence: measure.Possible,
		Where:   measure.Where{Place: measure.AtSender, EndPoint: w.From.Name, From: w.From.Name, To: w.To.Name},
		Summary: "next to nothing passes: what segmentation offload sends may not arrive",
	}
}

// stalled tells of TCP between two hosts, not held down on purpose, that sends half of all
// again, or carries a hundredth of what the link or the other direction does.
func stalled(w *advise.Way) bool {
	c := w.Cell
	if c == nil || c.Goodput == nil || c.Protocol != measure.TCP || w.Local() || c.Spec.Rate > 0 || c.Spec.MaxRate > 0 {
		return false
	}
	again, told := sentAgain(w)
	slower := float64(min(w.From.FaceOf(w.Face(w.From)).Speed(), w.To.FaceOf(w.Face(w.To)).Speed()))
	return again >= stallAgain || (again >= someAgain || !told) && w.Goodput() < stallShare*max(w.Hope(), slower)
}

// sentAgain is the share of its segments that the sender has sent again in the last run; told is
// false where its kernel does not say.
func sentAgain(w *advise.Way) (share float64, told bool) {
	if len(w.Cell.Runs) == 0 {
		return 0, false
	}
	sent, again := measure.Delta{Known: true}, measure.Delta{Known: true}
	for _, f := range w.Cell.Runs[len(w.Cell.Runs)-1].Flows {
		if f.From == w.From.Name && f.To == w.To.Name {
			sent, again = sent.Plus(f.Sender.Delta(measure.SegmentsSent)), again.Plus(f.Sender.Delta(measure.Retransmits))
		}
	}
	pct, told := again.Pct(sent)
	return pct / 100, told
}
