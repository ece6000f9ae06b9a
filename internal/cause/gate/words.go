package gate

import (
	"slices"

	"thru/internal/cause/scene"
	"thru/internal/unit"
)

// Missing returns the finding for a fact that is missing of a host, an interface, a direction or the path; nil if
// its absence means nothing.
func Missing(of interface {
	WhyNot(facts ...string) (why string, reported bool)
}, what string, facts ...string) *Finding {
	why, reported := of.WhyNot(facts...)
	if !reported {
		return nil
	}
	return NotChecked(what, why)
}

// Rate formats a rate in bit/s.
func Rate[N int64 | float64](bps N) string { return unit.Rate(float64(bps)) }

// Size formats a number of bytes.
func Size[N int64 | float64](bytes N) string { return unit.Size(int64(bytes)) }

// Span formats a time in ns.
func Span(ns int64) string { return unit.Duration(ns) }

// Percent formats a percentage.
func Percent(pct float64) string { return unit.Percent(pct) }

// AtRTT formats the round-trip time of an idle path; "" if it is not known.
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
		if slices.Contains(parts, m.Fact) { // keys below them are of one option only
			return NotChecked(what+" of "+w.From+" at both ends", m.Why)
		}
	}
	return NotChecked(what+" of "+w.From+" at both ends", "the system of this end does not report what it sent")
}
