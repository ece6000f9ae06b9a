package planfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/measure"
	"thru/internal/place"
	"thru/internal/plan"
	"thru/internal/unit"

	"github.com/goccy/go-yaml/token"
)

// LadderFrom writes a commented plan of the rungs found in inventories. A rung without end points becomes a
// comment with the reason. from holds the queried hypervisors; each is the time of a run, 0 for the default.
func LadderFrom(l place.Ladder, from []string, each time.Duration) []byte {
	l = spaceless(l)
	var b strings.Builder
	b.WriteString("# What does each layer cost? One path after the other, the lowest rung first. The\n# rungs are filled from the hypervisors' lists of virtual machines.\n#\n#   thru ladder FILE\n\n")
	b.WriteString("thru: 1\nname: ladder\n\n# thru finds the end points' virtual machines there, and reads their hosts during the test.\nhypervisors:\n")
	for _, at := range from {
		fmt.Fprintf(&b, "  - %s\n", quoted(at))
	}
	b.WriteString("\n# Each needs `thru serve` and `thru join NAME`; or reach it by ssh: {name: a, at: ssh://root@10.0.0.1}\nend_points:\n")
	for _, e := range l.Ends {
		fmt.Fprintf(&b, "%s    # %s\n", endLine(e), commented(e.What))
	}
	for _, e := range l.Spare {
		fmt.Fprintf(&b, "  #%s    # %s\n", strings.TrimPrefix(endLine(e), " "), commented(e.What))
	}
	b.WriteString("\nrungs:\n")
	for _, r := range l.Rungs {
		b.WriteString(rungLines(r))
	}
	if each == 0 {
		each = plan.LadderTime
	}
	fmt.Fprintf(&b, "\ntraffic:\n  time: %s    # of each cell: a rung has %d\n", strconv.FormatFloat(each.Seconds(), 'f', -1, 64)+"s", 2*len(plan.LadderStreams()))
	return []byte(b.String())
}

// spaceless replaces spaces in the names of end points, which vCenter allows and a plan does not. The
// original name stays in At.
func spaceless(l place.Ladder) place.Ladder {
	name := func(s string) string { return strings.Join(strings.Fields(s), "-") }
	l.Ends, l.Spare, l.Rungs = slices.Clone(l.Ends), slices.Clone(l.Spare), slices.Clone(l.Rungs)
	for _, ends := range [][]place.End{l.Ends, l.Spare} {
		for i := range ends {
			ends[i].Name = name(ends[i].Name)
		}
	}
	for i := range l.Rungs {
		l.Rungs[i].From, l.Rungs[i].To = name(l.Rungs[i].From), name(l.Rungs[i].To)
	}
	return l
}

// endLine returns an entry of end_points.
func endLine(e place.End) string {
	if e.At == "" {
		return "  - " + quoted(e.Name)
	}
	return fmt.Sprintf("  - {name: %s, at: %s}", quoted(e.Name), quoted(e.At))
}

// rungLines returns the lines of a rung: why it is one, and its pair.
func rungLines(r place.Rung) string {
	name := RungName(r.Kind)
	if !r.Filled() {
		return fmt.Sprintf("  # %s: %s\n", name, commented(r.Why))
	}
	rate := ""
	if r.LinkBps > 0 {
		rate = ", link_rate: " + rateText(r.LinkBps)
	}
	return fmt.Sprintf("  # %s: %s\n  - {name: %s, pair: [%s, %s]%s}\n", r.Kind, commented(r.Why), name, quoted(r.From), quoted(r.To), rate)
}

// RungName returns the rung of a relation between two end points.
func RungName(relation string) string {
	switch relation {
	case measure.SameMachine:
		return plan.RungLocalhost
	case measure.SameHost:
		return plan.RungSwitch
	case measure.OtherSite:
		return plan.RungInterconnect
	}
	return plan.RungLAN
}

// rateText formats a rate as in a plan: "10G", "2500M".
func rateText(bps int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "K"}} {
		if bps%u.size == 0 {
			return strconv.FormatInt(bps/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(bps, 10)
}

// plain matches a text that YAML reads as written, also within brackets.
var plain = unit.Pattern(`^[A-Za-z0-9][A-Za-z0-9_./@-]*(://([A-Za-z0-9_./@:%-]*[A-Za-z0-9_./@%-])?)?$`)

// quoted returns a YAML text, quoted if it could be read as something else.
func quoted(s string) string {
	if plain().MatchString(s) && !token.IsNeedQuoted(s) {
		return s
	}
	return strconv.Quote(strings.ToValidUTF8(s, "?"))
}

// mostComment limits a comment, in letters.
const mostComment = 200

// commented returns a text that fits in a one-line comment.
func commented(s string) string { return unit.Line(strings.Join(strings.Fields(s), " "), mostComment) }
