package gate

import (
	"slices"
)

// MissingOption names what could not be seen of a segment.
func MissingOption(w *Way, what string) *Finding {
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
