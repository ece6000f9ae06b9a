package gate

import (
	"slices"

	"thru/internal/cause/scene"
	"thru/internal/unit"
)

// Missing is the finding of a fact that could not be had of a host, an interface, a
// direction or the path; nil where its absence says nothing.
func Missing(of interface {
	WhyNot(facts ...string) (why string, told bool)
}, what string, facts ...string) *Finding {
	why, told := of.WhyNot(facts...)
	if !told {
		return nil
	}
	return NotChecked(what, why)
}

// Rate words a rate in bit/s.
func Rate[N int64 | float64](bps N) string { return unit.Rate(float64(bps)) }

// Size words a number of bytes.
func Size[N int64 | float64](bytes N) string { return unit.Size(int64(bytes)) }

// Span words a time in ns.
func Span(ns int64) string { return unit.Duration(ns) }

// Percent words a share.
func Percent(pct float64) string { return unit.Percent(pct) }

// AtRTT words the round trip of an idle path; "" where it is not known.
func AtRTT(rtt int64) string {
	if rtt == 0 {
		return ""
	}
	return " at " + Span(rtt) + " RTT"
}

// MissingOption names what could not be seen of a segment.
func MissingOption(w *scene.Direction, what string) *Finding {
	parts := []string{"handshake.syn_sent", "handshake.syn_seen", "handshake"}
	if w.Back {
		parts = []string{"handshake.synack_sent", "handshake.synack_seen", "handshake"}
	}
	for _, m := range w.Subject.Path.Missing {
		if slices.Contains(parts, m.Fact) { // what is below them is of one option alone
			return NotChecked(what+" of "+w.From+" at both ends", m.Why)
		}
	}
	return NotChecked(what+" of "+w.From+" at both ends", "this end's system does not tell what it sent")
}
