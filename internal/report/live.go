package report

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

// Live is what one line of progress is made of.
type Live struct {
	Phase       string     // "ramp" while nothing counts yet; anything else is measured
	AtNs        int64      // end of the interval, since the measured time began; negative in the ramp
	Flows       []LiveFlow // one, or two for bidirectional traffic
	Retransmits *int64     // segments in the interval, of all flows; nil: not known
	Ends        []LiveCPU
	ElapsedNs   int64 // of TotalNs
	TotalNs     int64 // ramp and measured time; 0: not known, no bar
}

// LiveFlow is the data of one direction in the interval. Packets and Lost are
// of datagrams and Requests of requests that were answered: nil where the
// traffic is of another kind.
type LiveFlow struct {
	Name     string // said where there is more than one flow: "back"
	Bytes    int64
	SpanNs   int64  // length of the interval
	Packets  *int64 // datagrams received
	Lost     *int64 // of those that should have come in the interval
	Requests *int64 // then Bytes says nothing
}

// LiveCPU is the load of one host in the interval; nil is not known.
type LiveCPU struct {
	Name       string
	MachinePct *float64
	MaxCorePct *float64
}

const barWidth = 10

// LiveLine formats one line without a newline, in fixed columns. It leaves
// parts out from the right where width (0: no bound) has no room.
func LiveLine(l Live, width int) string {
	columns := []string{liveTime(l)}
	for _, f := range l.Flows {
		columns = append(columns, liveRate(f, len(l.Flows) > 1))
	}
	if c := liveRetransmits(l); c != "" {
		columns = append(columns, c)
	}
	cpu, short := liveCPU(l.Ends, true), liveCPU(l.Ends, false)
	bar, left := liveBar(l)
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

func liveTime(l Live) string {
	if l.Phase == "ramp" {
		return " ramp"
	}
	if l.AtNs%int64(result.Second) > int64(result.Second)/20 && l.AtNs%int64(result.Second) < int64(result.Second)*19/20 {
		return fmt.Sprintf("%3.1f s", float64(l.AtNs)/result.Second)
	}
	return fmt.Sprintf("%3.0f s", float64(l.AtNs)/result.Second)
}

func liveRate(f LiveFlow, named bool) string {
	text := "-"
	switch {
	case f.SpanNs <= 0:
	case f.Requests != nil:
		text = stat.ThreeDigits(float64(*f.Requests)*result.Second/float64(f.SpanNs)) + " answered/s"
	default:
		text = unit.Rate(float64(f.Bytes) * 8 * result.Second / float64(f.SpanNs))
	}
	text = fmt.Sprintf("%9s", text)
	if f.Packets != nil && f.SpanNs > 0 {
		text += fmt.Sprintf(" %9s/s", stat.ThreeDigits(float64(*f.Packets)*result.Second/float64(f.SpanNs)))
	}
	if f.Packets != nil && f.Lost != nil {
		text += fmt.Sprintf("   lost %-6s", liveLoss(*f.Packets, *f.Lost))
	}
	if named {
		text += " " + doc.Clean(f.Name)
	}
	return text
}

// liveLoss is the share of an interval's datagrams that did not come.
func liveLoss(packets, lost int64) string {
	if lost <= 0 {
		return "0%"
	}
	return unit.Percent(100 * float64(lost) / (float64(lost) + float64(max(packets, 0))))
}

// liveRetransmits has its column where any flow could have some.
func liveRetransmits(l Live) string {
	other := func(f LiveFlow) bool { return f.Packets != nil || f.Requests != nil }
	if l.Retransmits == nil && len(l.Flows) > 0 && !slices.ContainsFunc(l.Flows, func(f LiveFlow) bool { return !other(f) }) {
		return ""
	}
	if l.Retransmits == nil {
		return "retr -   "
	}
	return fmt.Sprintf("retr %-4d", *l.Retransmits)
}

// liveCPU is "CPU local 51% (max 98%)", or in short "CPU local 51/98%".
func liveCPU(ends []LiveCPU, long bool) string {
	var parts []string
	for _, e := range ends {
		form := "%s %s/%s%%"
		if long {
			form = "%s %s%% (max %s%%)"
		}
		parts = append(parts, fmt.Sprintf(form, doc.Clean(e.Name), livePct(e.MachinePct), livePct(e.MaxCorePct)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "CPU " + strings.Join(parts, " | ")
}

func livePct(v *float64) string {
	if v == nil || math.IsNaN(*v) {
		return "  -"
	}
	return fmt.Sprintf("%3.0f", *v)
}

// liveBar is "[######----] " and "7 s left".
func liveBar(l Live) (bar, left string) {
	if l.TotalNs <= 0 {
		return "", ""
	}
	done := min(max(float64(l.ElapsedNs)/float64(l.TotalNs), 0), 1)
	full := int(done * barWidth)
	rest := math.Ceil(float64(max(l.TotalNs-l.ElapsedNs, 0)) / result.Second)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "] ", fmt.Sprintf("%.0f s left", rest)
}
