// Package why words what limits a flow: findings with their evidence and fix, what was ruled out, and what is
// open.
package why

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// maxCauses limits the causes that a page shows as ruled out, or not checked.
const maxCauses = 80

// Diagnosis is why the flow of one direction carries no more, ready to print.
type Diagnosis struct {
	Direction string // "local -> b"; "" if one diagnosis covers all
	Findings  []Finding
	More      int       // number of findings above result.MaxFindings
	OfMany    bool      // it is of one flow of many
	RuledOut  []doc.Row // cause and the figure against it
	Open      []unsettled
}

// Finding is one cause with its evidence.
type Finding struct {
	Cause, Confidence, Where, BecauseOf, Summary string

	Said     bool // the answer contains it
	Healthy  bool
	Evidence []string
	Effect   string
	Next     string
	Advice   string
	Host     string   // where to run the commands
	At       string   // "at b:"
	Commands []string // whole
	Risk     string
	Source   string
	from     *measure.Finding
}

// IsIn reports whether a sentence that words another finding contains the summary of this one.
func (f *Finding) IsIn(sentence *measure.Finding) bool {
	return sentence != nil && f.Cause != measure.CauseNone && f.Cause != result.CauseLinkRate && key(sentence) == key(f.from)
}

// unsettled is a cause that could not be checked.
type unsettled struct{ Cause, Fact, Why, Tests, Capture string }

// New returns a diagnosis ready to print; flow is nil if nothing was captured.
func New(from measure.Diagnosis, flow *measure.Flow) Diagnosis {
	d := Diagnosis{More: max(0, len(from.Findings)-result.MaxFindings)}
	for i := range from.Findings[:min(len(from.Findings), result.MaxFindings)] {
		d.Findings = append(d.Findings, NewFinding(&from.Findings[i], flow))
	}
	for _, x := range from.RuledOut[:min(len(from.RuledOut), maxCauses)] {
		d.RuledOut = append(d.RuledOut, doc.Row{Name: doc.CleanUpTo(x.Cause, result.LongestCause), Value: doc.CleanUpTo(x.Why, result.LongestWhy)})
	}
	for _, x := range from.NotChecked[:min(len(from.NotChecked), maxCauses)] {
		d.Open = append(d.Open, unsettled{doc.CleanUpTo(x.Cause, result.LongestCause), doc.CleanUpTo(x.Fact, result.LongestWhy),
			doc.CleanUpTo(x.Why, result.LongestWhy), doc.CleanUpTo(strings.Join(x.Tests, ", "), result.LongestWhy), x.Capture})
	}
	return d
}

// NewFinding returns a finding ready to print; flow is nil if nothing was captured.
func NewFinding(f *measure.Finding, flow *measure.Flow) Finding {
	v := Finding{from: f, Cause: doc.CleanUpTo(f.Cause, result.LongestCause), Confidence: doc.CleanUpTo(f.Confidence, result.LongestCause), Where: whereText(f.Where),
		BecauseOf: doc.CleanUpTo(f.BecauseOf, result.LongestCause), Summary: doc.Clean(f.Summary), Healthy: f.Healthy, Next: doc.Clean(f.Next), Source: result.SourceText(f.Source)}
	for i := range f.Evidence[:min(len(f.Evidence), result.MaxProofs)] {
		p := worded(f.Evidence[i], flow)
		v.Evidence = append(v.Evidence, proofIn(&p, barWords(flow)))
	}
	if e := f.Effect; e != nil {
		v.Effect = doc.Clean(e.Text)
		if e.From != "" {
			v.Effect += " (from " + doc.Clean(e.From) + ")"
		}
	}
	if r := f.Fix; r != nil {
		v.Advice, v.Risk = doc.Clean(r.Advice), doc.CleanUpTo(r.Risk, doc.MostRisk)
		for _, c := range r.Commands[:min(len(r.Commands), result.MaxCommands)] {
			v.Commands = append(v.Commands, doc.CleanUpTo(c, result.LongestOrder))
		}
		if r.EndPoint != "" && len(v.Commands) > 0 {
			v.Host = doc.Clean(r.EndPoint)
			v.At = AtHosts(v.Host)
		}
	}
	return v
}

// AtHosts returns the words before commands: "at a and b:".
func AtHosts(names ...string) string { return "at " + strings.Join(names, " and ") + ":" }

// whereText returns "receiver b, CPU 3, eth0", "receiver b, esx1", "path local -> b", "thru itself".
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
	return doc.Join(strings.TrimSpace(place), doc.Prefixed("CPU ", doc.Number(w.CPU)), doc.Clean(w.Interface), doc.Clean(w.Below))
}

// barWords returns the words for the threshold of a proof: for a value that must be above it, and for one
// below.
func barWords(flow *measure.Flow) (words [2]string) {
	if flow != nil && flow.Captures[0].File != "" {
		return [2]string{" (threshold > %s)", " (threshold < %s)"}
	}
	return [2]string{" (threshold %s)", " (threshold < %s)"}
}

func proofIn(p *measure.Proof, bar [2]string) string {
	name, of := shareOf(doc.Clean(p.Counter))
	s := shortName(name, p.Unit) + " " + result.ValueText(p.Value, p.Unit)
	if of != "" {
		s += " of " + shortName(of, p.Unit)
	}
	switch {
	case p.Threshold != nil && p.Above:
		s += fmt.Sprintf(bar[0], result.ValueText(*p.Threshold, p.Unit))
	case p.Threshold != nil:
		s += fmt.Sprintf(bar[1], result.ValueText(*p.Threshold, p.Unit))
	}
	if p.SpanNs > 0 {
		s += " in " + unit.Duration(p.SpanNs)
	}
	s += result.NumbersText(p.Packets, p.Capture)
	if p.Note != "" {
		s += ": " + doc.Clean(p.Note)
	}
	return s
}

// shareOf splits the total from "rwnd_limited_us of busy_time_us" and "unread data, of the socket buffer".
// Other names stay whole.
func shareOf(counter string) (name, of string) {
	if name, of, ok := strings.Cut(counter, ", of "); ok {
		return name, of
	}
	if name, of, ok := strings.Cut(counter, " of "); ok && !strings.Contains(name, " ") {
		return name, of
	}
	return counter, ""
}

// shortName returns a counter without its structure and without the unit that follows the value.
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

// groups returns the causes that were not checked, by what is missing.
func (d Diagnosis) groups() (all []doc.Gap) {
	for _, u := range d.Open {
		all = doc.AddGap(all, u.Cause, u.Fact)
	}
	return all
}

// ids returns the causes that are ruled out.
func (d Diagnosis) ids() (all []string) {
	for _, r := range d.RuledOut {
		all = append(all, r.Name)
	}
	return all
}

// LimitText returns the limiting finding of a cell in one line: "receiver-cpu (certain): the receiver's CPU 3
// is full".
func LimitText(c *measure.Cell) string {
	if len(c.Findings) == 0 {
		return ""
	}
	f := NewFinding(&c.Findings[0], result.CapturedFlow(c))
	return f.Cause + " (" + f.Confidence + "): " + f.Summary
}

// key distinguishes findings.
func key(f *measure.Finding) string {
	return f.Cause + "\x00" + whereText(f.Where) + "\x00" + f.Summary
}

// OfWhole returns the findings of the plan as a whole, not of one of its pairs.
func OfWhole(d *measure.Document) []measure.Finding {
	said := map[string]bool{}
	for i := range d.Cells {
		for j := range d.Cells[i].Findings {
			said[key(&d.Cells[i].Findings[j])] = true
		}
	}
	if result.IsTransfer(d) && len(d.Findings) > 0 { // what limits the transfer counts, whatever the network test found
		delete(said, key(&d.Findings[0]))
	}
	return slices.DeleteFunc(slices.Clone(d.Findings), func(f measure.Finding) bool { return said[key(&f)] || f.Cause == measure.CauseNone })
}
