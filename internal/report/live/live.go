// Package live words a test while it runs: a line for each interval, and the pairs of a plan.
package live

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"thru/internal/doc"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// State holds the contents of one line of progress.
type State struct {
	Phase       string // "ramp" before the measured time; anything else is measured
	AtNs        int64  // end of the interval, relative to the start of the measured time; negative in the ramp
	Flows       []Flow // one, or two for bidirectional traffic
	Retransmits *int64 // segments in the interval, of all flows; nil: unknown
	Ends        []CPU
	ElapsedNs   int64 // of TotalNs
	TotalNs     int64 // ramp and measured time; 0: unknown, no bar
}

// Flow is the data of one direction in the interval. Packets and Lost count datagrams, Requests answered
// requests; they are nil for other kinds of traffic.
type Flow struct {
	Name     string // shown if there is more than one flow: "back"
	Bytes    int64
	SpanNs   int64  // length of the interval
	Packets  *int64 // datagrams received
	Lost     *int64 // datagrams that should have arrived in the interval
	Requests *int64 // if set, Bytes has no meaning
}

// CPU is the load of one host in the interval; nil: unknown.
type CPU struct {
	Name       string
	MachinePct *float64
	MaxCorePct *float64
}

const barWidth = 10

// Line formats one line without a newline, in fixed columns. It omits columns from the right that exceed
// width (0: no limit).
func Line(l State, width int) string {
	columns := []string{timeText(l)}
	for _, f := range l.Flows {
		columns = append(columns, rateText(f, len(l.Flows) > 1))
	}
	if c := retransmitsText(l); c != "" {
		columns = append(columns, c)
	}
	cpu, short := cpuText(l.Ends, true), cpuText(l.Ends, false)
	bar, left := barText(l)
	best := strings.Join(columns, "   ")
	for _, tail := range [][]string{{cpu, bar + left}, {cpu, left}, {short, left}, {short}, {left}} {
		line := best
		for _, s := range tail {
			if s != "" {
				line += "   " + s
			}
		}
		line = strings.TrimRight(line, " ")
		if width <= 0 || utf8.RuneCountInString(line) <= width {
			return line
		}
	}
	return strings.TrimRight(best, " ")
}

func timeText(l State) string {
	if l.Phase == "ramp" {
		return " ramp"
	}
	if l.AtNs%int64(result.Second) > int64(result.Second)/20 && l.AtNs%int64(result.Second) < int64(result.Second)*19/20 {
		return fmt.Sprintf("%3.1f s", float64(l.AtNs)/result.Second)
	}
	return fmt.Sprintf("%3.0f s", float64(l.AtNs)/result.Second)
}

func rateText(f Flow, named bool) string {
	text := "-"
	switch {
	case f.SpanNs <= 0:
	case f.Requests != nil:
		text = stat.ThreeDigits(float64(*f.Requests)*result.Second/float64(f.SpanNs)) + " requests/s"
	default:
		text = unit.Rate(float64(f.Bytes) * 8 * result.Second / float64(f.SpanNs))
	}
	text = fmt.Sprintf("%9s", text)
	if f.Packets != nil && f.SpanNs > 0 {
		text += fmt.Sprintf(" %9s/s", stat.ThreeDigits(float64(*f.Packets)*result.Second/float64(f.SpanNs)))
	}
	if f.Packets != nil && f.Lost != nil {
		text += fmt.Sprintf("   lost %-6s", lossText(*f.Packets, *f.Lost))
	}
	if named {
		text += " " + doc.Clean(f.Name)
	}
	return text
}

// lossText returns the share of an interval's datagrams that were lost.
func lossText(packets, lost int64) string {
	if lost <= 0 {
		return "0%"
	}
	return unit.Percent(100 * float64(lost) / (float64(lost) + float64(max(packets, 0))))
}

// retransmitsText returns the column of retransmissions; "" if no flow can have any.
func retransmitsText(l State) string {
	other := func(f Flow) bool { return f.Packets != nil || f.Requests != nil }
	if l.Retransmits == nil && len(l.Flows) > 0 && !slices.ContainsFunc(l.Flows, func(f Flow) bool { return !other(f) }) {
		return ""
	}
	if l.Retransmits == nil {
		return "retr -   "
	}
	return fmt.Sprintf("retr %-4d", *l.Retransmits)
}

// cpuText returns "CPU local 51% (max 98%)", or in short "CPU local 51/98%".
func cpuText(ends []CPU, long bool) string {
	var parts []string
	for _, e := range ends {
		form := "%s %s/%s%%"
		if long {
			form = "%s %s%% (max %s%%)"
		}
		parts = append(parts, fmt.Sprintf(form, doc.Clean(e.Name), pctText(e.MachinePct), pctText(e.MaxCorePct)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "CPU " + strings.Join(parts, " | ")
}

func pctText(v *float64) string {
	if v == nil || math.IsNaN(*v) {
		return "  -"
	}
	return fmt.Sprintf("%3.0f", *v)
}

// barText returns "[######----] " and "7 s left".
func barText(l State) (bar, left string) {
	if l.TotalNs <= 0 {
		return "", ""
	}
	done := min(max(float64(l.ElapsedNs)/float64(l.TotalNs), 0), 1)
	full := int(done * barWidth)
	rest := math.Ceil(float64(max(l.TotalNs-l.ElapsedNs, 0)) / result.Second)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "] ", fmt.Sprintf("%.0f s left", rest)
}
