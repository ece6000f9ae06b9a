package measurement

import (
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
)

// ClockOffsetGate is the gate `clock-offset`.
func ClockOffsetGate() gate.Rule {
	return gate.Rule{ID: "clock-offset", Words: "offset", Title: "Clocks of both ends", About: "how far the clocks are apart, with its bound; information only",
		Why:    "times of both ends can be compared to within the bound after the offset is taken out",
		Source: "RFC 5905", Fix: "do nothing: thru takes the offset out", Checklist: []string{"C-33"}, Path: gateClockOffset}
}

func gateClockOffset(sc *scene.Scene) *gate.Finding {
	c := sc.Subject.Path.Clock
	if c == nil || sc.OnOneMachine() {
		return nil
	}
	off := c.OffsetNs
	which := "ahead of"
	if off < 0 {
		off, which = -max(off, -(1<<62)), "behind"
	}
	return gate.Pass("the clock of %s is %s %s that of %s, give or take %s", sc.Subject.Path.To, gate.Span(off), which, sc.Subject.Path.From, gate.Span(max(0, c.BoundNs)))
}
