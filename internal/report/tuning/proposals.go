package tuning

import (
	"fmt"
	"math"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// Proposal is an advised change, ready to print.
type Proposal struct {
	Number int
	Title  string
	Advice string // the title, without a host
	For    string // the reason for it: "finding receive-window, local -> b"
	Why    string
	Expect string
	Source string
	Risk   string
	Cuts   bool
	Change bool   // commands or flags make it; else it is a manual task
	Manual string // why thru does not do it itself
	Flags  string // options of a test with the same effect
	Hosts  []handwork
}

// handwork holds the commands for one host.
type handwork struct {
	At                string // "at b (linux):"; "" if there is only one host
	Words             string
	Set, Undo, Verify []string
}

func newProposal(p *measure.Proposal, number int, several bool) Proposal {
	v := Proposal{
		Number: number, Title: doc.Clean(p.Title), Advice: doc.Clean(p.Title), Why: doc.Clean(p.Why), Expect: doc.Clean(p.Expect),
		Source: result.SourceText(p.Source), Risk: doc.Clean(p.Risk), Cuts: p.Cuts, Change: isChange(p), Manual: doc.Reason(p.OnlySaid),
	}
	switch {
	case p.Cause != "":
		v.For = "finding " + doc.Clean(p.Cause)
	case p.Gate != "":
		v.For = "gate " + doc.Clean(p.Gate)
	}
	if p.From != "" && p.To != "" {
		v.For = doc.Join(v.For, doc.Clean(p.From+" -> "+p.To))
	}
	if p.ExpectBps != nil && !strings.Contains(v.Expect, unit.Rate(*p.ExpectBps)) {
		v.Expect = doc.Join(unit.Rate(*p.ExpectBps), v.Expect)
	}
	if p.Test != nil {
		v.Flags = doc.Clean(p.Test.Flags)
	}
	for _, c := range p.Commands[:min(len(p.Commands), result.MaxLines)] {
		h := handwork{Words: doc.Clean(c.Words), Set: orders(c.Set), Undo: orders(c.Undo), Verify: orders(unit.Unique(c.Verify))}
		if h.Words == v.Title { // advice without commands: the title has it
			h.Words = ""
		}
		if h.Words == "" && len(h.Set) == 0 {
			if several && c.EndPoint != "" && v.Title == v.Advice {
				v.Title += " (at " + doc.Clean(c.EndPoint) + ")"
			}
			continue
		}
		if several && c.EndPoint != "" {
			h.At = "at " + doc.Clean(c.EndPoint)
		}
		if c.Platform != "" && c.Platform != "linux" {
			h.At = strings.TrimSpace(h.At + " (" + doc.Clean(c.Platform) + ")")
		}
		v.Hosts = append(v.Hosts, h)
	}
	return v
}

// danger returns the risk, after a warning that the connection may be cut.
func (p Proposal) danger() string {
	if !p.Cuts {
		return p.Risk
	}
	const cut = "may interrupt the connection to the host for some seconds"
	if p.Risk == "" {
		return cut
	}
	return cut + "; " + p.Risk
}

// sameness is the outcome of comparisons of a state with itself (--aa).
type sameness struct {
	Total, Wrong int      // comparisons, and those that showed a difference
	Counts       string   // "57 equivalent, 3 undecided"
	Most         string   // the largest estimated change, up or down
	Cases        []string // those that showed a difference
}

// falseAlarms is the share of comparisons of a state with itself that may show a difference (docs/tune.md).
const falseAlarms = 2.0 / 60

// isSelfComparison reports whether an attempt compared a state with itself.
func isSelfComparison(a *measure.Attempt) bool {
	return strings.HasPrefix(a.ID, "a-a-") && len(a.Settings) == 0
}

// newSameness counts self-comparisons; nil if the tuning made other attempts.
func newSameness(d *measure.Document) *sameness {
	var compared []*measure.Comparison
	for i := range d.Tuning.Attempts {
		a := &d.Tuning.Attempts[i]
		if !isSelfComparison(a) {
			return nil
		}
		if a.Comparison != nil {
			compared = append(compared, a.Comparison)
		}
	}
	if len(compared) == 0 {
		return nil
	}
	s := &sameness{Total: len(compared)}
	counts := map[string]int{}
	most := 0.0
	for i, c := range compared {
		counts[c.Outcome]++
		if c.ChangePct != nil && math.Abs(*c.ChangePct) > math.Abs(most) {
			most = *c.ChangePct
		}
		if c.Outcome == measure.Improved || c.Outcome == measure.Worse {
			if s.Wrong++; len(s.Cases) < result.MaxProofs {
				s.Cases = append(s.Cases, fmt.Sprintf("comparison %d: %s: %s", i+1, comparedText(c), doc.Clean(c.Outcome)))
			}
		}
	}
	var words []string
	for _, outcome := range []string{measure.Equivalent, measure.Undecided, measure.Improved, measure.Worse, measure.NotCompared} {
		if n := counts[outcome]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, outcome))
		}
	}
	s.Counts, s.Most = strings.Join(words, ", "), unit.Percent(math.Abs(most))
	return s
}

// trusted reports whether no more comparisons show a difference than falseAlarms allows.
func (s *sameness) trusted() bool { return float64(s.Wrong) <= max(falseAlarms*float64(s.Total), 0) }

// text returns the outcome in a sentence.
func (s *sameness) text() string {
	t := unit.Plural(s.Total, "comparison") + " of two equal states: " + s.Counts
	if s.Wrong > 0 && !s.trusted() {
		t += "; at most 2 of 60 may show a difference"
	}
	return t
}

// newRestored lists what a rollback has done, and why anything is left.
func newRestored(changed []measure.Changed) (g doc.Table, left []string) {
	g = doc.Table{Tone: restoredTone, Columns: []doc.Column{{Name: "at", Least: 6}, {Name: "knob"}, {Name: "interface"}, {Name: "set to", Least: 10, Detail: true}, {Name: "before", Least: 10}, {Name: "outcome"}}}
	for _, c := range changed[:min(len(changed), result.MaxTargetRows)] {
		g.Rows = append(g.Rows, []string{doc.OrDash(doc.Clean(c.EndPoint)), doc.Clean(c.Knob), doc.OrDash(doc.Clean(c.Interface)), doc.OrDash(doc.Clean(c.Value)), doc.OrDash(doc.Clean(c.Before)), doc.OrDash(restoredWord(c.Outcome))})
		if c.Error != "" {
			left = append(left, strings.TrimSpace(doc.Clean(c.Knob)+" "+doc.Clean(c.Interface))+at2(c.EndPoint)+": "+doc.Reason(c.Error))
		}
	}
	if n := len(changed) - len(g.Rows); n > 0 {
		g.More = fmt.Sprintf("and %d more, see the JSON document", n)
	}
	return g.WithoutEmpty(), doc.CleanAll(left)
}

func at2(endPoint string) string {
	if endPoint == "" {
		return ""
	}
	return " at " + doc.Clean(endPoint)
}

// restoredWord returns the outcome of undoing a change in words.
func restoredWord(outcome string) string {
	switch outcome {
	case measure.Undone:
		return "restored"
	case measure.Settled:
		return "already restored"
	case measure.Foreign:
		return "not restored: changed by someone else"
	}
	return doc.Clean(outcome)
}

func restoredTone(cell string) doc.Tone {
	switch cell {
	case "restored":
		return doc.ToneGood
	case "failed":
		return doc.ToneBad
	case "not restored: changed by someone else":
		return doc.ToneWarn
	}
	return doc.ToneNone
}

// restoredAnswer returns "all 3 settings are as they were before". An entry without a knob is a journal that
// could not be read in full.
func restoredAnswer(changed []measure.Changed) string {
	n, left := 0, 0
	for _, c := range changed {
		if c.Knob != "" {
			n++
			if c.Outcome != measure.Undone && c.Outcome != measure.Settled {
				left++
			}
		}
	}
	s := settingsAnswer(n, left)
	switch journals := len(changed) - n; {
	case journals == 0:
		return s
	case n == 0:
		return unit.Plural(journals, "journal") + " could not be read completely"
	default:
		return s + "; " + unit.Plural(journals, "journal") + " could not be read completely"
	}
}

func settingsAnswer(n, left int) string {
	switch {
	case n == 0:
		return "nothing to undo: thru has changed nothing here"
	case left > 0:
		return fmt.Sprintf("%d of %d settings are restored, %d %s not", n-left, n, left, doc.Verb(left, "is", "are"))
	case n == 1:
		return "the setting is restored"
	}
	return fmt.Sprintf("all %d settings are restored", n)
}
