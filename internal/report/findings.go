package report

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bounds of what a page shows of one direction, so that foreign documents keep it small.
const (
	maxFindings  = 8
	maxProofs    = 8
	maxCommands  = 6
	maxCauses    = 80 // ruled out, or not checked
	longestCause = 60 // characters of an id
	longestWhy   = 200
	longestOrder = 1000 // characters of a command
)

// diagnosis is why the flow of one direction carries no more, ready to print.
type diagnosis struct {
	Way      string // "local -> b"; "" where one says it for all
	Findings []finding
	More     int       // findings over maxFindings
	OfMany   bool      // it is of one flow of many
	RuledOut []doc.Row // cause and the figure against it
	Open     []unsettled
}

// finding is one cause with what it was seen by.
type finding struct {
	Cause, Confidence, Where, BecauseOf, Summary string

	Said     bool // the answer has said it
	Healthy  bool
	Evidence []string
	Effect   string
	Next     string
	Advice   string
	Host     string   // where the commands are to be run
	At       string   // "at b:"
	Commands []string // whole
	Risk     string
	Source   string
}

// unsettled is a cause that could not be checked.
type unsettled struct{ Cause, Fact, Why, Tests, Capture string }

// newDiagnoses are those of the direction that is answered first and of the
// one back, or one for both where they say the same.
func newDiagnoses(d *measure.Document) (all []diagnosis) {
	if isCheck(d) || d.Command == "ladder" {
		return nil
	}
	if isSilent(d) {
		return silentDiagnoses(d)
	}
	if isFleet(d) || isTransfer(d) {
		if found := wholeFindings(d); len(found) > 0 {
			all = append(all, newDiagnosis(measure.Diagnosis{Findings: found}, nil))
		}
		return all
	}
	first, back, _ := mainCells(d)
	if first == nil || len(first.Findings) == 0 && (back == nil || len(back.Findings) == 0) {
		if len(d.Findings) > 0 {
			all = append(all, newDiagnosis(measure.Diagnosis{Findings: d.Findings}, nil))
		}
		return all
	}
	first, back = worseFirst(first, back)
	for _, c := range []*measure.Cell{first, back} {
		if c != nil && len(c.Findings) > 0 && (c == first || !sameFindings(c.Findings, first.Findings)) {
			x := newDiagnosis(c.Diagnosis, capturedFlow(c))
			x.Way = pathName(c)
			all = append(all, x)
		}
	}
	switch {
	case len(all) == 1 && back != nil && len(back.Findings) > 0:
		all[0].Way += " and back"
	case len(all) == 1:
		all[0].Way = ""
	}
	return all
}

// sameFindings tells whether two directions are held by the same, at the same
// place, with the same to be done.
func sameFindings(a, b []measure.Finding) bool {
	return slices.EqualFunc(a, b, func(x, y measure.Finding) bool {
		x.Where.From, x.Where.To, y.Where.From, y.Where.To = "", "", "", ""
		return x.Cause == y.Cause && x.Confidence == y.Confidence &&
			(x.Healthy && y.Healthy || reflect.DeepEqual(x.Where, y.Where) && reflect.DeepEqual(x.Remedy, y.Remedy))
	})
}

func newDiagnosis(from measure.Diagnosis, flow *measure.Flow) diagnosis {
	d := diagnosis{More: max(0, len(from.Findings)-maxFindings)}
	for i := range from.Findings[:min(len(from.Findings), maxFindings)] {
		d.Findings = append(d.Findings, newFinding(&from.Findings[i], flow))
	}
	for _, x := range from.RuledOut[:min(len(from.RuledOut), maxCauses)] {
		d.RuledOut = append(d.RuledOut, doc.Row{Name: doc.CleanUpTo(x.Cause, longestCause), Value: doc.CleanUpTo(x.Why, longestWhy)})
	}
	for _, x := range from.NotChecked[:min(len(from.NotChecked), maxCauses)] {
		d.Open = append(d.Open, unsettled{doc.CleanUpTo(x.Cause, longestCause), doc.CleanUpTo(x.Fact, longestWhy),
			doc.CleanUpTo(x.Why, longestWhy), doc.CleanUpTo(strings.Join(x.Tests, ", "), longestWhy), x.Capture})
	}
	return d
}

func newFinding(f *measure.Finding, flow *measure.Flow) finding {
	v := finding{Cause: doc.CleanUpTo(f.Cause, longestCause), Confidence: doc.CleanUpTo(f.Confidence, longestCause), Where: whereText(f.Where),
		BecauseOf: doc.CleanUpTo(f.BecauseOf, longestCause), Summary: doc.Clean(f.Summary), Healthy: f.Healthy, Next: doc.Clean(f.Next), Source: sourceText(f.Source)}
	for i := range f.Evidence[:min(len(f.Evidence), maxProofs)] {
		p := worded(f.Evidence[i], flow)
		v.Evidence = append(v.Evidence, proofIn(&p, barWords(flow)))
	}
	if e := f.Effect; e != nil {
		v.Effect = doc.Clean(e.Text)
		if e.From != "" {
			v.Effect += " (from " + doc.Clean(e.From) + ")"
		}
	}
	if r := f.Remedy; r != nil {
		v.Advice, v.Risk = doc.Clean(r.Advice), doc.Clean(r.Risk)
		for _, c := range r.Commands[:min(len(r.Commands), maxCommands)] {
			v.Commands = append(v.Commands, doc.CleanUpTo(c, longestOrder))
		}
		if r.EndPoint != "" && len(v.Commands) > 0 {
			v.Host = doc.Clean(r.EndPoint)
			v.At = atHosts(v.Host)
		}
	}
	return v
}

// atHosts is what stands before commands: "at a and b:".
func atHosts(names ...string) string { return "at " + strings.Join(names, " and ") + ":" }

// whereText says "receiver b, CPU 3, eth0", "receiver b, esx1", "path local -> b", "thru itself".
func whereText(w measure.Where) string {
	place := doc.Clean(w.Place)
	switch {
	case w.Place == measure.AtTool:
		place = "thru itself"
	case w.Place == measure.AtPath && w.From != "" && w.To != "":
		place += " " + doc.Clean(w.From+" -> "+w.To)
	case w.EndPoint != "":
		place += " " + doc.Clean(w.EndPoint)
	}
	cpu := ""
	if w.CPU != nil {
		cpu = fmt.Sprintf("CPU %d", *w.CPU)
	}
	return doc.Join(strings.TrimSpace(place), cpu, doc.Clean(w.Interface), doc.Clean(w.Below))
}

// barWords is how the value is told that a proof is judged by: what must be
// above it, and what below.
func barWords(flow *measure.Flow) (words [2]string) {
	if flow != nil && flow.Captures[0].File != "" {
		return [2]string{" (over %s counts)", " (below %s counts)"}
	}
	return [2]string{" (bar %s)", " (bar: below %s)"}
}

func proofIn(p *measure.Proof, bar [2]string) string {
	name, of := shareOf(doc.Clean(p.Counter))
	s := shortName(name, p.Unit) + " " + valueText(p.Value, p.Unit)
	if of != "" {
		s += " of " + shortName(of, p.Unit)
	}
	switch {
	case p.Threshold != nil && p.Above:
		s += fmt.Sprintf(bar[0], valueText(*p.Threshold, p.Unit))
	case p.Threshold != nil:
		s += fmt.Sprintf(bar[1], valueText(*p.Threshold, p.Unit))
	}
	if p.SpanNs > 0 {
		s += " in " + unit.Duration(p.SpanNs)
	}
	s += numbersText(p.Packets, p.Capture)
	if p.Note != "" {
		s += ": " + doc.Clean(p.Note)
	}
	return s
}

// shareOf splits what the value is a share of from "rwnd_limited_us of
// busy_time_us" and "unread in the socket, of its room". Other words stay whole.
func shareOf(counter string) (name, of string) {
	if name, of, ok := strings.Cut(counter, ", of "); ok {
		return name, of
	}
	if name, of, ok := strings.Cut(counter, " of "); ok && !strings.Contains(name, " ") {
		return name, of
	}
	return counter, ""
}

// shortName is a counter without the structure its first word stands in, and
// without the unit that stands behind the value.
func shortName(s, in string) string {
	first, rest := s, ""
	if i := strings.IndexAny(s, " ,/"); i >= 0 {
		first, rest = s[:i], s[i:]
	}
	for _, rollup := range []string{".summation", ".average"} { // of vSphere: the words before it are the counter
		if name, ok := strings.CutSuffix(first, rollup); ok {
			return name + rest
		}
	}
	return withoutUnit(first[1+strings.LastIndexByte(strings.TrimSuffix(first, "."), '.'):], in) + rest
}

func withoutUnit(s, in string) string {
	suffixes := []string{"_" + in}
	switch in {
	case "pct":
		suffixes = append(suffixes, "_us", "_ns", "_bytes", "_bps") // a share of them
	case "ns":
		suffixes = append(suffixes, "_us")
	}
	for _, suffix := range suffixes {
		if rest, ok := strings.CutSuffix(s, suffix); ok && rest != "" {
			return rest
		}
	}
	return s
}

// valueText prints a value of a Proof in its unit.
func valueText(v float64, in string) string {
	if !(math.Abs(v) < 1e15) {
		return doc.Digits(v)
	}
	switch in {
	case "pct":
		if v > 0 && v < 0.01 { // loss counts far below what a percent is usually told to
			return fmt.Sprintf("%.2g%%", v)
		}
		return unit.Percent(v)
	case "bps":
		return unit.Rate(v)
	case "bytes":
		return unit.Size(int64(math.Round(v)))
	case "ns":
		return unit.Duration(int64(math.Round(v)))
	case yesOrNo:
		if v == 0 {
			return "no"
		}
		return "yes"
	case "per_s":
		return plainNumber(v) + "/s"
	case "":
		return plainNumber(v)
	}
	if v == 1 {
		in = strings.TrimSuffix(in, "s")
	}
	return plainNumber(v) + " " + doc.Clean(in)
}

// plainNumber prints counts whole, with their thousands apart, and others to three digits.
func plainNumber(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 1000 {
		return unit.Count(int64(math.Round(v)))
	}
	return doc.Digits(v)
}

// groups are the causes that were not checked, by what is missing.
func (d diagnosis) groups() (all []doc.Gap) {
	for _, u := range d.Open {
		all = doc.AddGap(all, u.Cause, u.Fact)
	}
	return all
}

// ids are the causes that are ruled out.
func (d diagnosis) ids() (all []string) {
	for _, r := range d.RuledOut {
		all = append(all, r.Name)
	}
	return all
}

// heldText is the binding finding of a cell in one line: "receiver-cpu (certain): the receiver's CPU 3 is full".
func heldText(c *measure.Cell) string {
	if len(c.Findings) == 0 {
		return ""
	}
	f := newFinding(&c.Findings[0], capturedFlow(c))
	return f.Cause + " (" + f.Confidence + "): " + f.Summary
}
