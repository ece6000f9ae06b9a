package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// gateView is one gate ready to print.
type gateView struct {
	Status    string // as in the document, for a style
	Word      string // "FAIL", "WARN", "pass", "not checked"
	ID        string
	Where     string // "peer, eth0", "local -> peer"
	Fact, Why string
	Advice    string
	At        string   // where to run the commands, if not at the end point
	Fix       []string // commands, whole
	Risk      string
	host      string // where to run the commands
	port      string // interface of a gate of a host
}

// gateList holds gates in the order of their document.
type gateList []gateView

// newGates returns the gates of a document ready to print.
func newGates(d *measure.Document) (all gateList) {
	for _, g := range d.Gates {
		all = append(all, gateView{
			Status: doc.Clean(g.Status), Word: gateWord(g.Status), ID: doc.Clean(g.ID), Where: gatePlace(g), Fact: doc.Clean(g.Fact), Why: doc.Clean(g.Why),
			Advice: doc.Clean(g.Advice), Fix: commandLines(g.Fix), Risk: doc.CleanUpTo(g.Risk, doc.MostRisk), host: doc.Clean(cmp.Or(g.FixAt, g.EndPoint)),
		})
		if v := &all[len(all)-1]; len(v.Fix) > 0 && g.FixAt != "" && g.FixAt != g.EndPoint {
			v.At = "at " + doc.Clean(g.FixAt) + ":"
		}
		if v := &all[len(all)-1]; g.From == "" {
			v.port = doc.Clean(g.Interface)
		}
	}
	switch {
	case result.IsPlanned(d):
		return all.Joined()
	case len(d.EndPoints) == 2:
		return all.ofBoth()
	}
	return all
}

// ofBoth merges gates that report the same for each of two hosts.
func (l gateList) ofBoth() (all gateList) {
	places := map[string]int{} // in all
	for _, g := range l {
		same := g
		same.host, same.Where = "", ""
		key := fmt.Sprint(same)
		if i, found := places[key]; found && g.host != "" && g.At == "" && all[i].host != g.host {
			all[i].host, all[i].Where = "", doc.Join("both hosts", g.port)
			continue
		}
		places[key] = len(all)
		all = append(all, g)
	}
	return all
}

// Joined merges gates that report the same for several hosts.
func (l gateList) Joined() (joined gateList) {
	places := map[string]*doc.Gap{}
	for _, g := range l {
		where := g.Where
		g.Where, g.host = "", ""
		key := fmt.Sprint(g)
		if places[key] == nil {
			places[key] = &doc.Gap{}
			joined = append(joined, g)
		}
		places[key].Facts = append(places[key].Facts, where)
	}
	for i, g := range joined {
		joined[i].Where = places[fmt.Sprint(g)].Text(result.GapFacts)
	}
	return joined
}

// Short merges a gate's findings at several places with the same fix into one row. It gives the reason of a
// gate once, and none if the gate passes.
func (l gateList) Short() (rows gateList) {
	found, said := map[string][]gateView{}, map[string]bool{}
	var marks []string
	for _, g := range l.Joined() {
		if g.Status == measure.GatePass {
			g.Why = ""
		}
		same := g
		same.Fact, same.Where, same.host, same.port = "", "", "", ""
		mark := fmt.Sprint(same)
		if found[mark] == nil {
			marks = append(marks, mark)
		}
		found[mark] = append(found[mark], g)
	}
	for _, m := range marks {
		g := found[m][0]
		var places, facts []string
		for _, x := range found[m] {
			places, facts = append(places, x.Where), append(facts, x.Where+": "+x.Fact)
		}
		if len(facts) > 1 {
			g.Where, g.Fact = doc.Gap{Facts: places}.Text(result.GapFacts), strings.Join(facts[:min(len(facts), result.MaxLines)], "; ")
		}
		if said[g.ID+g.Why] {
			g.Why = ""
		}
		said[g.ID+g.Why] = true
		rows = append(rows, g)
	}
	return rows
}

// commandMost limits a command, in characters; it has to be complete to be copied.
const commandMost = 8192

// commandLines makes commands safe to print; it cuts only those above commandMost.
func commandLines(commands []string) (all []string) {
	for _, c := range commands[:min(len(commands), result.MaxLines)] {
		all = append(all, doc.CleanUpTo(c, commandMost))
	}
	return all
}

// Passed returns the gates that pass.
func (l gateList) Passed() gateList { return l.With(measure.GatePass) }

// maxGateRows limits the gates in one table of a page.
const maxGateRows = 400

// PassedNames names the gates that pass, each once, for paper.
func (l gateList) PassedNames() string {
	var ids []string
	for _, g := range l.Passed() {
		if !slices.Contains(ids, g.ID) && len(ids) < result.MaxLines {
			ids = append(ids, g.ID)
		}
	}
	return strings.Join(ids, ", ")
}

// With returns the gates with one of the given statuses.
func (l gateList) With(status ...string) gateList {
	return slices.DeleteFunc(slices.Clone(l), func(g gateView) bool { return !slices.Contains(status, g.Status) })
}

// gateWord returns the word of a status, in capitals if something must be done.
func gateWord(status string) string {
	switch status {
	case measure.GateFail:
		return "FAIL"
	case measure.GateWarn:
		return "WARN"
	case measure.GatePass:
		return "pass"
	}
	return doc.NotChecked
}

// gatePlace names the end point, interface or path of a gate.
func gatePlace(g measure.Gate) string {
	switch {
	case g.From != "" && g.To != "":
		return doc.Clean(g.From + " -> " + g.To)
	case g.Interface != "":
		return doc.Clean(g.EndPoint + ", " + g.Interface)
	case g.EndPoint != "":
		return doc.Clean(g.EndPoint)
	}
	return "path"
}

func countGates(gates []measure.Gate, status string) int {
	return unit.CountFunc(gates, func(g measure.Gate) bool { return g.Status == status })
}

// gatesAnswer returns the first line of a check.
func gatesAnswer(d *measure.Document) string {
	if len(d.Gates) == 0 {
		return ""
	}
	fails, warns := countGates(d.Gates, measure.GateFail), countGates(d.Gates, measure.GateWarn)
	passes := countGates(d.Gates, measure.GatePass)
	all := []string{fmt.Sprintf("%d ", passes) + doc.Verb(passes, "passes", "pass")}
	if fails == 0 {
		all[0] = unit.Plural(passes, "gate") + doc.Verb(passes, " passes", " pass")
	}
	if warns > 0 {
		all = append(all, fmt.Sprintf("%d ", warns)+doc.Verb(warns, "warns", "warn"))
	}
	if n := countGates(d.Gates, measure.GateNotChecked); n > 0 {
		all = append(all, fmt.Sprintf("%d not checked", n))
	}
	if passes+warns+fails == 0 {
		return "nothing could be checked: " + unit.Plural(len(d.Gates), "gate") + doc.Verb(len(d.Gates), " lacks its fact", " lack their facts")
	}
	if fails > 0 {
		all = append([]string{unit.Plural(fails, "gate") + doc.Verb(fails, " fails", " fail")}, all...)
	}
	answer := "fit to be measured: "
	switch {
	case d.Error != nil && d.Error.ExitCode != fault.Verdict:
		answer = "check incomplete: "
	case fails > 0:
		answer = "not fit to be measured: "
	}
	return answer + strings.Join(all, ", ")
}

// checkTone returns the tone of a check. A gate that was not checked does not count against a host, unless nothing
// could be checked.
func checkTone(d *measure.Document) doc.Tone {
	switch {
	case d.Error != nil || countGates(d.Gates, measure.GateFail) > 0:
		return doc.ToneBad
	case countGates(d.Gates, measure.GateWarn) > 0 || countGates(d.Gates, measure.GatePass) == 0:
		return doc.ToneWarn
	}
	return doc.ToneGood
}

// Cards returns the gates that need action. It does not repeat the reason and risk of the previous gate if
// that is the same gate for the other end or direction.
func (l gateList) Cards() (all []doc.Block) {
	var before gateView
	for _, g := range l {
		if g.Status != measure.GateFail && g.Status != measure.GateWarn {
			continue
		}
		why, risk := g.Why, g.Risk
		if g.ID == before.ID && why == before.Why {
			why = ""
		}
		if g.ID == before.ID && risk == before.Risk {
			risk = ""
		}
		c := doc.Card{Name: g.Word + " " + g.ID, Where: g.Where, Tone: gateWordTone(g.Word), Text: g.Fact}
		c.Say("why", why)
		c.Type("do", g.Fix, g.Advice, g.At)
		c.Say("risk", risk)
		all, before = append(all, c), g
	}
	return all
}

// PassedText names the gates that pass, each once, with the place of those that fail elsewhere.
func (l gateList) PassedText() string {
	var ids []string
	for _, g := range l.Passed() {
		id := g.ID
		if slices.ContainsFunc(l, func(x gateView) bool { return x.ID == id && x.Status != measure.GatePass }) {
			id += " (" + g.Where + ")"
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, ", ")
}

// Unchecked returns the gates that lack a fact, grouped by the reason.
func (l gateList) Unchecked() (groups []doc.Gap) {
	for _, g := range l {
		if g.Status == measure.GateNotChecked {
			groups = doc.AddGap(groups, g.ID+" ("+g.Where+")", g.Fact)
		}
	}
	return groups
}

// Table returns what each gate found, with the commands to run.
func (l gateList) Table() doc.Table {
	t := doc.Table{Tone: gateWordTone, Columns: []doc.Column{{Name: "gate"}, {Name: ""}, {Name: "of"}, {Name: "found"}, {Name: "why it matters"}}}
	for _, g := range l {
		found := append(doc.NonEmpty(g.Fact, g.Advice, g.At), doc.Typed(g.Fix...)...)
		t.Rows = append(t.Rows, []string{g.ID, g.Word, g.Where, doc.Lines(append(found, doc.NonEmpty(g.Risk)...)...), doc.OrDash(g.Why)})
	}
	return t.WithoutEmpty().First(maxGateRows)
}

func gateWordTone(cell string) doc.Tone {
	return map[string]doc.Tone{"FAIL": doc.ToneBad, "WARN": doc.ToneWarn, "pass": doc.ToneGood}[cell]
}
