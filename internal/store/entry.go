package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Bounds of an entry: foreign documents must not make a list endless.
const (
	mostNames = 20_000  // hosts, and pairs: a mesh of 128 hosts has 16,256
	mostTitle = 1_000   // characters, also of an error
	mostName  = 300     // characters of a name, and of a label's key and value; an address has at most 253
	mostText  = 2 << 20 // bytes of all hosts, and of all pairs
)

// mostPair is the length of a pair of two names, both truncated.
const mostPair = 2*(mostName+len("...")) + len(" -> ")

// shortName truncates a name for entry and index.
func shortName(text string) string { return unit.Line(text, mostName) }

// EntryOf returns the facts of a document for lists. A store adds ID, KeptAt and
// Bytes.
func EntryOf(doc *measure.Document, title string) Entry {
	e := Entry{
		StartedAt: doc.StartedAt.UTC(), ElapsedNs: doc.ElapsedNs, Command: doc.Command, Title: title,
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
	e.Goodput = goodputOf(doc)
	return e.bounded()
}

// goodputOf returns the goodput of the main cell, or of the last run of a transfer; nil
// where there is none.
func goodputOf(doc *measure.Document) *float64 {
	if t := doc.Transfer; t != nil {
		for _, r := range slices.Backward(t.Runs) {
			if r.Bps != nil {
				return &r.Bps.Value
			}
		}
		return nil
	}
	if c := mainCell(doc); c != nil {
		return &c.Goodput.Value
	}
	return nil
}

// bounded returns the entry with printable text, truncated for a list.
func (e Entry) bounded() Entry {
	e.Title, e.Error = unit.Line(e.Title, mostTitle), unit.Line(e.Error, mostTitle)
	e.Command, e.Plan, e.Thru = shortName(e.Command), shortName(e.Plan), shortName(e.Thru)
	e.Hosts, e.Pairs = once(e.Hosts, mostName), once(e.Pairs, mostPair)
	labels := e.Labels
	e.Labels = map[string]string{}
	for k, v := range labels {
		e.Labels[shortName(k)] = unit.Line(v, mostTitle) // of several values
	}
	return e
}

// idForm is the form of the ids that ids returns.
var idForm = unit.Pattern(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{4,64}$`)

// check returns what is wrong with an entry that was read for an id.
func (e Entry) check(id string) error {
	switch {
	case !idForm().MatchString(id):
		return fmt.Errorf("%.40q is not an id", id)
	case e.ID != id:
		return fmt.Errorf("the entry of %s names %.40q", id, e.ID)
	case e.Verdict != Pass && e.Verdict != Fail && e.Verdict != Inconclusive && e.Verdict != NoVerdict:
		return fmt.Errorf("the verdict of %s is %.40q, which is not known", id, e.Verdict)
	}
	return checkTime(e.StartedAt)
}

// hostsOf returns the names of the end points and their machines, and of a transfer's
// server.
func hostsOf(doc *measure.Document) []string {
	var all []string
	for _, p := range doc.EndPoints {
		all = append(all, p.Name)
		if p.Facts != nil && p.Facts.Hostname != nil {
			all = append(all, *p.Facts.Hostname)
		}
	}
	if doc.Transfer != nil {
		from, to := doc.Transfer.Ends()
		all = append(all, from, to)
	}
	for _, v := range doc.Inventories {
		all = append(all, v.Source)
		for _, h := range v.Hosts {
			all = append(all, h.Name)
		}
	}
	return once(all, mostName)
}

// pairsOf returns the pairs that were measured, or planned; of a check those with a
// probed path, of a transfer first its sender and receiver.
func pairsOf(doc *measure.Document) []string {
	var all []string
	if doc.Transfer != nil {
		from, to := doc.Transfer.Ends()
		all = append(all, measure.PairName(shortName(from), shortName(to)))
	}
	if len(doc.Cells) == 0 {
		for _, p := range doc.Paths {
			all = append(all, measure.PairName(shortName(p.From), shortName(p.To)))
		}
	}
	for _, c := range doc.Cells {
		all = append(all, measure.PairName(shortName(c.From), shortName(c.To)))
	}
	return once(all, mostPair)
}

// once truncates names to most characters, and drops empty and repeated ones, and those
// beyond mostNames or mostText.
func once(names []string, most int) []string {
	seen, all, left := map[string]bool{"": true}, []string{}, mostText
	for _, n := range names {
		if n = unit.Line(n, most); seen[n] {
			continue
		}
		if left -= len(n); left < 0 || len(all) == mostNames {
			break
		}
		seen[n] = true
		all = append(all, n)
	}
	return all
}

// label is a label of a result or of an end point. End points may have different
// values of a key.
type label struct{ key, value string }

// labelsOf returns all labels, those of the result before those of its end points.
func labelsOf(doc *measure.Document) []label {
	var all []label
	add := func(labels map[string]string) {
		for k, v := range labels {
			if l := (label{shortName(k), shortName(v)}); !slices.Contains(all, l) && len(all) < mostTitle {
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

// verdictOf returns the document's verdict; of a check that of its gates. A failed gate
// (exit code 3) is a verdict too. An interrupted measurement has not passed.
func verdictOf(doc *measure.Document) string {
	switch {
	case doc.Verdict != nil && doc.Verdict.Pass && doc.BrokeOff():
		return NoVerdict
	case doc.Verdict != nil && doc.Verdict.Pass:
		return Pass
	case doc.Verdict != nil && doc.Verdict.Inconclusive:
		return Inconclusive
	case doc.Verdict != nil, doc.Error != nil && doc.Error.ExitCode == fault.Verdict:
		return Fail
	case doc.Command == "check" && doc.Error == nil && len(doc.Gates) > 0:
		return Pass
	}
	return NoVerdict
}

// mainCell returns the first cell with its own result: neither a baseline nor an
// experiment. Bulk data comes before requests.
func mainCell(doc *measure.Document) *measure.Cell {
	var asked *measure.Cell
	for i := range doc.Cells {
		c := &doc.Cells[i]
		switch {
		case c.Goodput == nil || c.Baseline || c.Experiment != "" && c.Experiment != "base":
		case c.Spec.Traffic == measure.Bulk:
			return c
		case asked == nil:
			asked = c
		}
	}
	return asked
}

// words returns the text that Filter.Text is searched in.
func words(e Entry) string {
	all := append([]string{e.Title, e.Plan}, e.Hosts...)
	for k, v := range e.Labels {
		all = append(all, k+"="+v)
	}
	return strings.ToLower(strings.Join(all, "\n"))
}
