package transfer

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Network is the cause `network`.
func Network() diagnose.Rule {
	return diagnose.Rule{
		Cause: causeNetwork, Title: "the network carries no more",
		Seen:        "85 to 125% of what thru's own data plane carries from memory to memory, with as many streams as clients",
		Distinction: "the test of the network shows what limits it; if that is known, it replaces this cause",
		Fix:         "run `thru explain END POINT`", Effect: "the whole rate", Source: "transfer.md",
	}
}

// network says what limits the network itself, if its own test shows it.
func (c *scene) network(bps float64, p measure.Proof) *bound {
	o := binds(causeNetwork, measure.Certain, "the network carries %s from memory to memory", unit.Rate(bps))
	if Exceeds(c.bps, bps) {
		o.Text = fmt.Sprintf("the network carries about as much: its test reached %s from memory to memory", unit.Rate(bps))
	}
	o.At(measure.Where{Place: measure.AtPath}).By(p)
	cell := c.networkCell()
	if cell == nil {
		return o
	}
	if streams := max(cell.Streams, 1); streams < c.clients() { // more of them might carry more
		o.Confidence = measure.Likely
		o.Text += fmt.Sprintf(" by %s", unit.Plural(streams, "stream"))
	}
	if len(cell.Findings) == 0 || cell.Findings[0].Cause == measure.CauseNone || cell.Findings[0].Confidence == measure.Possible {
		return o // anomalies there that cost nothing come after "none"
	}
	f := &cell.Findings[0]
	if diagnose.Weight(f.Confidence) < diagnose.Weight(o.Confidence) {
		o.Confidence = f.Confidence
	}
	o.cause, o.Healthy, o.Fix, o.Where, o.Next = f.Cause, f.Healthy, f.Fix, f.Where, f.Next
	o.Text += ": " + f.Summary
	o.By(f.Evidence...)
	return o
}
