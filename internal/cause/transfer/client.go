package transfer

import (
	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Client is the cause `client`.
func Client() diagnose.Rule {
	return diagnose.Rule{
		Cause: causeClient, Title: "the client program is no faster",
		Seen:        "85 to 125% of what the same client reaches with a server on this machine; or this process keeps a CPU busy for each client, without a cipher",
		Distinction: "several at once carry more if there are free CPUs",
		Fix:         "use --many, or skip SHA-256 (--no-checksum)", Effect: "one CPU of the client", Source: "transfer.md",
	}
}

// clientAlone says that the client carries no more to a server on this machine.
func (c *scene) clientAlone(bps float64, p measure.Proof) *bound {
	o := binds(causeClient, measure.Likely, "the client (%s) reaches its own maximum, measured on this machine alone: %s", c.t.Client, unit.Rate(bps))
	o.At(measure.Where{Place: measure.AtTool}).By(p).Then("run several at once (--many 4)")
	return o
}
