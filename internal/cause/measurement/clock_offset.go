package measurement

import (
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
)

// ClockOffsetGate is the gate `clock-offset`.
func ClockOffsetGate() gate.Rule {
	return gate.Rule{ID: "clock-offset", Words: "offset", Title: "Clock offset of both ends", About: "the offset between the clocks, with its error bound; information only",
		Why:    "after correction by the offset, times of both ends are comparable within the bound",
		Source: "RFC 5905", Fix: "do nothing: thru corrects times by the offset", Checklist: []string{"C-33"}, Path: gateClockOffset}
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
	return gate.Pass("the clock of %s is %s %s that of %s, within %s", sc.Subject.Path.To, gate.Span(off), which, sc.Subject.Path.From, gate.Span(max(0, c.BoundNs)))
}
