package planfile

import (
	"fmt"
	"regexp"
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

// LadderFrom writes a commented plan of rungs that were found in inventories. A
// rung that nobody fills stands there as a comment, with why. from are the
// hypervisors that were asked; a zero duration is that of any ladder.
func LadderFrom(l place.Ladder, from []string, each time.Duration) []byte {
	l = spaceless(l)
	var b strings.Builder
	b.WriteString("# What does each layer cost? One path after the other, the lowest rung first. The\n# rungs are filled by what the hypervisors said of their virtual machines.\n#\n#   thru ladder FILE\n\n")
	b.WriteString("thru: 1\nname: ladder\n\n# They say what lies below the end points, and what their hosts do meanwhile.\nhypervisors:\n")
	for _, at := range from {
		fmt.Fprintf(&b, "  - %s\n", quoted(at))
	}
	b.WriteString("\n# Each wants `thru serve` and `thru join NAME`; or reach it by ssh: {name: a, at: ssh://root@10.0.0.1}\nend_points:\n")
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

// spaceless gives end points whose machines have names with spaces, as vCenter
// allows, names that a plan may have; what they are stands behind them.
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

// endLine is an entry of end_points.
func endLine(e place.End) string {
	if e.At == "" {
		return "  - " + quoted(e.Name)
	}
	return fmt.Sprintf("  - {name: %s, at: %s}", quoted(e.Name), quoted(e.At))
}

// rungLines are those of a rung: why it is one, and what it is.
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

// RungName is the rung that a relation fills.
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

// rateText writes a rate as the plan reads it: "10G", "2500M".
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

// plain is a text that YAML reads as it is written, also within brackets.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./@-]*(://([A-Za-z0-9_./@:%-]*[A-Za-z0-9_./@%-])?)?$`)

// quoted is a text of YAML, quoted where it could be read as something else.
func quoted(s string) string {
	if plain.MatchString(s) && !token.IsNeedQuoted(s) {
		return s
	}
	return strconv.Quote(strings.ToValidUTF8(s, "?"))
}

// mostComment bounds a comment, in letters.
const mostComment = 200

// commented is a text that stays in its comment.
func commented(s string) string { return unit.Line(strings.Join(strings.Fields(s), " "), mostComment) }
