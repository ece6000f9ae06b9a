package nic

import (
	"fmt"
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/loss"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// LinkRate is the cause `link-rate`.
func LinkRate() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: diagnose.LinkFull, TCP: true, UDP: true, Title: "the link is full", Judge: judgeLinkRate,
			Seen:        "goodput is 95% or more of the payload rate that the known link rate allows at this MTU",
			Distinction: "the link rate must be known: without it, a plateau looks like a shaper", Fix: "do nothing: a full link is healthy",
			Effect: "10 Gb/s carry at most 9.41 Gb/s of payload at MTU 1500", Source: "methods.md, formula 4",
		},
	}
}

func judgeLinkRate(f *diagnose.Flow) *diagnose.Outcome {
	share, ok := f.CeilingShare()
	bps, known := f.Goodput()
	switch {
	case f.OnOneMachine():
		return diagnose.No("both ends are on one host")
	case !ok || !known:
		return diagnose.Missing("the link rate", "no interface reports it; state it with --link-rate")
	case stat.AboveCeiling(f.Cell):
		return diagnose.No("the rate is %s of the link's capacity: an assumption is wrong", unit.Percent(share))
	case f.Cell.Spec.Rate > 0 && float64(f.Cell.Spec.Rate) < f.Cell.Ceiling.Bps:
		return diagnose.No("the requested rate of %s is below the link's capacity", unit.Rate(float64(f.Cell.Spec.Rate)))
	case share >= diagnose.LinkFullBar && share > f.Cell.Ceiling.SharePct:
		return asFull(f, diagnose.Certain("the link is full: the flows that share it carry %s of what %s allows at MTU %d", unit.Percent(min(share, 100)), unit.Rate(float64(f.Cell.Ceiling.LinkBps)), f.Cell.Ceiling.MTU), share)
	case share >= diagnose.LinkFullBar:
		return asFull(f, diagnose.Certain("the link is full: %s of what %s allows at MTU %d", unit.Percent(min(share, 100)), unit.Rate(float64(f.Cell.Ceiling.LinkBps)), f.Cell.Ceiling.MTU), share)
	}
	s, over := f.Surplus()
	if share = max(share, loss.SettledShare(f)); share >= diagnose.NearBar && (f.HasQueue() || over && s.Capacity > diagnose.NearBar/100*f.Cell.Ceiling.Bps) {
		return asFull(f, diagnose.Likely("the link is nearly full: %s of what %s allows at MTU %d", unit.Percent(min(share, 100)), unit.Rate(float64(f.Cell.Ceiling.LinkBps)), f.Cell.Ceiling.MTU), share).
			Then("check whether headers of a VLAN or a tunnel take the rest")
	}
	return diagnose.No("%s is %s of the link's capacity", unit.Rate(bps), unit.Percent(share))
}

func asFull(f *diagnose.Flow, o *diagnose.Outcome, share float64) *diagnose.Outcome {
	c := f.Cell.Ceiling
	return o.Well().At(measure.Where{Place: measure.AtPath}).
		By(diagnose.Above(measure.Proof{Counter: "goodput of the ceiling", Value: share, Unit: "pct", SpanNs: f.Receiver.Span(), Note: "link rate: " + c.LinkFrom}, diagnose.NearBar)).
		Costs(c.Bps, "the link carries at most "+unit.Rate(c.Bps), fmt.Sprintf("%s at MTU %d, %s", unit.Rate(float64(c.LinkBps)), c.MTU, strings.ToUpper(c.LinkLayer)))
}
