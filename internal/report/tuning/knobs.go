package tuning

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// HowEnded explains why the tuning ended, and its time against the expected one.
func (t *View) HowEnded(why, elapsed string) string {
	if why == "" || t.Expected == "" {
		return why
	}
	if t.DryRun {
		return why + "; trying the changes would take about " + t.Expected
	}
	return why + "; took " + elapsed + ", expected " + t.Expected
}

// Knobs prints what can be set at the end points, and why some knobs cannot be set.
func Knobs(w io.Writer, points []measure.EndPoint, o text.Options) error {
	p := text.New(o)
	for i, e := range points {
		if i > 0 {
			p.WriteByte('\n')
		}
		knobs(p, e)
	}
	return p.Flush(w)
}

// knobs prints the knobs of one end point.
func knobs(p *text.Printer, e measure.EndPoint) {
	name := doc.Clean(e.Name)
	switch {
	case len(e.Knobs) == 0 && e.NoTune == "":
		p.Wrap(text.Bold, 0, "", name+": no setting is available")
		return
	case e.NoTune != "":
		p.Wrap(text.Bold, 0, "", name+": "+doc.Reason(e.NoTune))
	default:
		p.Wrap(text.Bold, 0, "", name+": "+unit.Plural(len(e.Knobs), "knob"))
	}
	g := doc.Table{Columns: []doc.Column{{Name: "knob"}, {Name: "interface", Least: 12}, {Name: "now", Least: 10}, {Name: "settable", Least: 10}}}
	var refused []doc.Gap
	for _, k := range e.Knobs[:min(len(e.Knobs), maxKnobs)] {
		row := []string{doc.Clean(k.Knob), doc.OrDash(doc.Clean(k.Interface)), doc.OrDash(doc.CleanUpTo(k.Value, result.LongestWhy)), settableText(k)}
		if e.NoTune != "" { // none can be set, whatever the host supports
			row[3] = "-"
		} else if k.Refused != "" {
			refused = doc.AddGap(refused, strings.TrimSpace(doc.Clean(k.Knob)+" "+doc.Clean(k.Interface)), doc.Reason(doc.CleanUpTo(k.Refused, result.LongestWhy)))
		}
		g.Rows = append(g.Rows, row)
	}
	if n := len(e.Knobs) - len(g.Rows); n > 0 {
		g.More = fmt.Sprintf("and %d more, see --json", n)
	}
	if len(g.Rows) > 0 {
		p.Grid(g.WithoutEmpty())
	}
	for _, r := range refused {
		p.Wrap("", 15, "  cannot be set", r.Text(result.MaxLines))
	}
}

// settableText returns what a knob can be set to: "no", "yes" if its values are not known in advance, "up to
// 65535" for numbers, else all values.
func settableText(k measure.KnobState) string {
	possible := doc.CleanUpTo(k.Possible, result.LongestWhy)
	switch {
	case k.Refused != "":
		return "no"
	case possible == "":
		return "yes"
	case isBound(k.Value, k.Possible):
		return "up to " + possible
	}
	return possible
}

// isBound reports whether possible is the maximum of a value: it has the same words, and other numbers.
func isBound(value, possible string) bool {
	now, most := strings.Fields(value), strings.Fields(possible)
	if len(now) != len(most) {
		return false
	}
	numbers := 0
	for i := range now {
		_, is := strconv.ParseUint(now[i], 10, 64)
		_, was := strconv.ParseUint(most[i], 10, 64)
		if (is == nil) != (was == nil) || is != nil && now[i] != most[i] {
			return false
		}
		if is == nil {
			numbers++
		}
	}
	return numbers > 0
}

// maxKnobs limits the knobs of one end point that are listed.
const maxKnobs = 400
