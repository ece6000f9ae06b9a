package store

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bounds of an entry: what others have written must not make a list endless.
const (
	mostNames = 20_000 // hosts, and pairs: a mesh of 128 hosts has 16,256
	mostTitle = 1_000  // characters
)

// EntryOf is what is known of a document without reading it again. ID, KeptAt and
// Bytes are what a store adds.
func EntryOf(doc *measure.Document, title string) Entry {
	e := Entry{
		StartedAt: doc.StartedAt.UTC(), ElapsedNs: doc.ElapsedNs, Command: doc.Command, Title: unit.Line(title, mostTitle),
		Hosts: hostsOf(doc), Pairs: pairsOf(doc), Labels: map[string]string{}, Verdict: verdictOf(doc), Thru: doc.Thru,
	}
	for _, l := range labelsOf(doc) {
		e.Labels[l.key] = strings.TrimPrefix(e.Labels[l.key]+", "+l.value, ", ")
	}
	if doc.Plan != nil {
		e.Plan = doc.Plan.Name
	}
	if doc.Error != nil {
		e.Error = cmp.Or(doc.Error.Message, "failed")
	}
	if c := mainCell(doc); c != nil {
		e.Goodput = &c.Goodput.Value
	}
	return e
}

// hostsOf are the names of end points and of the machines behind them.
func hostsOf(doc *measure.Document) []string {
	var all []string
	for _, p := range doc.EndPoints {
		all = append(all, p.Name)
		if p.Facts != nil && p.Facts.Hostname != nil {
			all = append(all, *p.Facts.Hostname)
		}
	}
	return once(all)
}

// pairsOf are the pairs that were measured, or were to be; of a check those whose
// path was looked at.
func pairsOf(doc *measure.Document) []string {
	var all []string
	if len(doc.Cells) == 0 {
		for _, p := range doc.Paths {
			all = append(all, measure.PairName(p.From, p.To))
		}
	}
	for _, c := range doc.Cells {
		all = append(all, measure.PairName(c.From, c.To))
	}
	return once(all)
}

// once leaves out what is empty or was there before, and what is beyond mostNames.
func once(names []string) []string {
	seen, all := map[string]bool{"": true}, []string{}
	for _, n := range names {
		if !seen[n] && len(all) < mostNames {
			all = append(all, n)
		}
		seen[n] = true
	}
	return all
}

// label is one of a result or of an end point. End points may differ in the
// value of a key.
type label struct{ key, value string }

// labelsOf are all labels, those of the result before those of its end points.
func labelsOf(doc *measure.Document) []label {
	var all []label
	add := func(labels map[string]string) {
		for k, v := range labels {
			if l := (label{k, v}); !slices.Contains(all, l) && len(all) < mostTitle {
				all = append(all, l)
			}
		}
	}
	add(doc.Labels)
	own := len(all)
	for _, p := range doc.EndPoints {
		add(p.Labels)
	}
	byText := func(a, b label) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value)) }
	slices.SortFunc(all[:own], byText)
	slices.SortFunc(all[own:], byText)
	return all
}

// verdictOf is the document's own; of a check that of its gates. A refusal by a
// gate (exit code 3) is a verdict too.
func verdictOf(doc *measure.Document) string {
	switch {
	case doc.Verdict != nil && doc.Verdict.Pass:
		return Pass
	case doc.Verdict != nil, doc.Error != nil && doc.Error.ExitCode == fault.Verdict:
		return Fail
	case doc.Command == "check" && doc.Error == nil && len(doc.Gates) > 0:
		return Pass
	}
	return NoVerdict
}

// mainCell is the first with a figure that is a result of its own: neither
// beside another, nor to tell causes apart. Bulk data comes before requests.
func mainCell(doc *measure.Document) *measure.Cell {
	var asked *measure.Cell
	for i := range doc.Cells {
		c := &doc.Cells[i]
		switch {
		case c.Goodput == nil || c.Beside || c.Experiment != "" && c.Experiment != "base":
		case c.Spec.Traffic == measure.Bulk:
			return c
		case asked == nil:
			asked = c
		}
	}
	return asked
}

// words is the text that Filter.Text is looked for in.
func words(e Entry) string {
	all := append([]string{e.Title, e.Plan}, e.Hosts...)
	for k, v := range e.Labels {
		all = append(all, k+"="+v)
	}
	return strings.ToLower(strings.Join(all, "\n"))
}
