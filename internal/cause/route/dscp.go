package route

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// congested is the mark that a queue sets (RFC 3168, CE).
const congested = 3

func gateDSCP(w *scene.Direction) *gate.Finding {
	if len(w.Marks) == 0 {
		return nil
	}
	parts := slices.Concat(changes(w.Marks, "DSCP", classOf), changes(w.Marks, "ECN", ecnOf))
	if len(parts) == 0 {
		return gate.Pass("marks arrive as they were sent (%d tried)", len(w.Marks))
	}
	return gate.Warn("%s", strings.Join(parts, "; ")).
		Do(scene.Advise("have every switch and router on the path trust the marks, or do not rely on traffic classes on this path"))
}

// mark is one value of a field of the IP header, as sent and as it arrived.
type mark struct{ sent, seen int }

// classOf returns the DSCP of a mark, ecnOf its ECN bits.
func classOf(m measure.Mark) mark { return mark{m.Sent, m.Seen} }

func ecnOf(m measure.Mark) mark {
	if m.ECNSeen == congested {
		m.ECNSeen = m.ECNSent // a queue on the path may signal congestion
	}
	return mark{m.ECNSent, m.ECNSeen}
}

// mostMarks is how many changed marks of a field are named.
const mostMarks = 3

// changes words what became of the marks of a field: first the cleared ones, then the changed ones, both by value.
func changes(marks []measure.Mark, field string, of func(measure.Mark) mark) (parts []string) {
	all := unit.Mapped(marks, of)
	slices.SortFunc(all, func(a, b mark) int { return cmp.Or(cmp.Compare(a.sent, b.sent), cmp.Compare(a.seen, b.seen)) })
	var cleared, changed []string
	tried := 0
	for _, m := range slices.Compact(all) {
		if m.sent != 0 {
			tried++
		}
		switch {
		case m.sent == m.seen:
		case m.seen == 0:
			cleared = append(cleared, markName(field, m.sent))
		default:
			changed = append(changed, markName(field, m.sent)+" arrives as "+markName(field, m.seen))
		}
	}
	switch n := len(cleared); {
	case n > 1 && n == tried:
		parts = append(parts, "all "+field+" are cleared ("+some(cleared)+")")
	case n > 1:
		parts = append(parts, some(cleared)+" are cleared")
	case n == 1:
		parts = append(parts, cleared[0]+" is cleared")
	}
	if len(changed) > 0 {
		parts = append(parts, some(changed))
	}
	return parts
}

// some returns the first elements of a list and the last.
func some(list []string) string {
	if n := len(list); n > mostMarks {
		list = append(slices.Clone(list[:mostMarks-1]), "...", list[n-1])
	}
	return strings.Join(list, ", ")
}

// markName returns the name of a mark: of ECN by RFC 3168; of DSCP class selectors by RFC 2474, assured forwarding
// by RFC 2597, expedited by RFC 3246.
func markName(field string, n int) string {
	drop := (n & 7) / 2 // drop precedence of assured forwarding
	switch {
	case n < 0 || n > 63 || field == "ECN" && n > congested:
		return fmt.Sprintf("%s %d", field, n)
	case field == "ECN":
		return []string{"Not-ECT", "ECT(1)", "ECT(0)", "CE"}[n]
	case n == 46:
		return "EF"
	case n%8 == 0:
		return fmt.Sprintf("CS%d", n/8)
	case n%2 == 0 && n/8 >= 1 && n/8 <= 4 && drop >= 1:
		return fmt.Sprintf("AF%d%d", n/8, drop)
	}
	return fmt.Sprintf("DSCP %d", n)
}

// DSCPGate is the gate `dscp`.
func DSCPGate() gate.Rule {
	return gate.Rule{ID: "dscp", Words: "tos ecn qos marks", Title: "DSCP and ECN marks", About: "whether the marks of the IP header arrive as they were sent",
		Warns:  "a mark is cleared or changed (an ECN mark that a queue sets to CE does not count)",
		Why:    "traffic with a cleared mark gets another class than the one under test",
		Source: "RFC 2474, RFC 2597, RFC 3246, RFC 3168", Fix: "trust the marks at every switch and router on the path", Checklist: []string{"C-33"}, Direction: gateDSCP}
}
