// Package tuning words what thru tune has tried and kept, what it advises, and what can be set at a host.
package tuning

import (
	"slices"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Limits of what is shown of a tuning, so that foreign documents keep it small.
const (
	maxAttempts   = 100
	maxProposals  = 100
	maxPersistent = 30
	maxFileLines  = 60
)

// View is what `thru tune` has done, or with --dry-run would do, ready to print.
type View struct {
	DryRun     bool
	Expected   string    // expected time, in words
	Ending     string    // why it ended, and how long it took
	In         doc.Scale // of the figures of the journey
	Journey    []stage
	Untuned    []string // end points that were not changed, and why
	Attempts   []attempt
	Advice     []Proposal
	Persistent []persistence
	Undo       []string // commands that restore the original settings
	Flags      string   // options of a test that were kept
	Remains    []string
	Same       *sameness // --aa
	Restored   doc.Table // --rollback
	Left       []string  // settings that a rollback left, and why
}

// New returns the view of a tuning; nil for other documents.
func New(d *measure.Document) *View {
	if !result.IsTuning(d) {
		return nil
	}
	t := d.Tuning
	v := &View{DryRun: t.DryRun, In: journeyScale(d), Journey: newJourney(d), Undo: undoCommands(t), Flags: keptFlags(t), Remains: doc.CleanAll(t.Remains), Same: newSameness(d)}
	if t.ExpectNs > 0 {
		v.Expected = doc.AboutTime(time.Duration(t.ExpectNs))
	}
	if v.Same == nil {
		for i := range t.Attempts[:min(len(t.Attempts), maxAttempts)] {
			v.Attempts = append(v.Attempts, newAttempt(&t.Attempts[i]))
		}
		v.Attempts = foldUntried(v.Attempts)
	}
	for i := range t.Advice[:min(len(t.Advice), maxProposals)] {
		v.Advice = append(v.Advice, newProposal(&t.Advice[i], i+1, len(d.EndPoints) > 1))
	}
	for i := range t.Persistence[:min(len(t.Persistence), maxPersistent)] {
		v.Persistent = append(v.Persistent, newPersistence(&t.Persistence[i]))
	}
	v.Restored, v.Left = newRestored(t.Restored)
	for _, e := range d.EndPoints[:min(len(d.EndPoints), maxPersistent)] {
		if e.NoTune != "" {
			v.Untuned = append(v.Untuned, doc.Clean(e.Name)+": "+doc.Reason(e.NoTune))
		}
	}
	return v
}

// foldUntried merges consecutive changes for which the budget had no time: the advice lists them in full.
func foldUntried(attempts []attempt) (all []attempt) {
	untried := func(a attempt) bool { return a.Outcome == measure.NoTime && a.Figures == "" }
	for i := 0; i < len(attempts); i++ {
		n := 1
		for untried(attempts[i]) && i+n < len(attempts) && untried(attempts[i+n]) && attempts[i+n].Reason == attempts[i].Reason {
			n++
		}
		if n == 1 {
			all = append(all, attempts[i])
			continue
		}
		all = append(all, attempt{Outcome: attempts[i].Outcome, Tone: attempts[i].Tone, Title: unit.Plural(n, "change") + ", listed below", Reason: attempts[i].Reason})
		i += n - 1
	}
	return all
}

// stage is one direction in one state of a tuning.
type stage struct {
	State  string // "initial state", or the change that led to it; "" for a further direction
	Path   string
	Figure string // with its unit, or in the journey's unit
	Range  string
	Change string  // against the first state
	Limit  string  // the cause that limits it
	Words  string  // the same in words
	Bar    float64 // percent of the greatest figure
}

// newJourney lists the states, first to last, with each direction.
func newJourney(d *measure.Document) (all []stage) {
	journey := d.Tuning.Journey
	first, most := map[string]float64{}, 0.0
	in := journeyScale(d)
	for _, m := range journey {
		for _, c := range cellsOf(d, m.Cells) {
			if result.AmountOf(c) > most {
				most = result.AmountOf(c)
			}
		}
	}
	for n, m := range journey[:min(len(journey), maxAttempts)] {
		for i, c := range cellsOf(d, m.Cells) {
			s := stage{Path: result.PathName(c), Figure: in.Number(result.AmountOf(c)), Limit: "-"}
			if i == 0 {
				s.State = stateName(m, n)
			}
			if i < len(m.Causes) {
				s.Limit = limitWord(m.Causes[i])
			}
			if i < len(m.Findings) {
				s.Words = strings.TrimPrefix(doc.Clean(m.Findings[i]), s.Path+": ")
			}
			s.fill(c, in, first)
			if most > 0 {
				s.Bar = stat.Pct(result.AmountOf(c), most)
			}
			all = append(all, s)
		}
	}
	return all
}

// fill adds the range of a figure, and its change from the first one.
func (s *stage) fill(c *measure.Cell, in doc.Scale, first map[string]float64) {
	if c.Goodput == nil {
		s.Figure = "-"
		return
	}
	g := c.Goodput
	if g.High > g.Low {
		s.Range = in.Span(g.Low, g.High)
	}
	key := c.From + "\n" + c.To
	if base, known := first[key]; !known {
		first[key] = g.Value
	} else {
		s.Change = changeOf(base, g.Value)
	}
}

// limitWord names a cause.
func limitWord(cause string) string {
	switch cause {
	case "":
		return "-"
	case measure.CauseNone:
		return "not found"
	}
	return doc.CleanUpTo(cause, result.LongestCause)
}

// changeOf returns the change from one figure to another, "" if the first is zero.
func changeOf(base, value float64) string {
	if base <= 0 {
		return ""
	}
	return unit.Change(100 * (value/base - 1))
}

func stateName(m measure.Milestone, n int) string {
	switch {
	case n == 0 && m.Title == "":
		return "initial state"
	case n == 0 || m.Attempt == nil:
		return doc.Clean(m.Title)
	}
	return "+ " + doc.Clean(m.Title)
}

// journeyScale returns a common unit for all figures, or none if they are too far apart.
func journeyScale(d *measure.Document) doc.Scale {
	least, most := 0.0, 0.0
	for _, m := range d.Tuning.Journey {
		for _, c := range cellsOf(d, m.Cells) {
			if v := result.AmountOf(c); v > 0 && (least == 0 || v < least) {
				least = v
			}
			most = max(most, result.AmountOf(c))
		}
	}
	in := doc.ScaleFor(most)
	if least < 0.1*in.Div {
		return doc.Scale{}
	}
	return in
}

// attempt is a change that was tried, ready to print.
type attempt struct {
	Outcome string
	Tone    doc.Tone
	Title   string
	Figures string // "38.9 -> 181 Mb/s local -> b, +365% (99.4% interval +340..+391%, 9 pairs of runs)"
	Reason  string
	Other   string   // its effect on the other direction
	Guards  []string // figures that got worse
	Proofs  []string // evidence that it was in force, or not
	Why     string   // the reason to try it
	Took    string
}

func newAttempt(a *measure.Attempt) attempt {
	v := attempt{Outcome: doc.Clean(a.Outcome), Title: doc.Clean(a.Title), Figures: comparedText(gainOf(a)), Reason: doc.Reason(a.Reason), Why: doc.Clean(a.Why)}
	if a.ElapsedNs > 0 {
		v.Took = unit.Duration(a.ElapsedNs)
	}
	switch a.Outcome {
	case measure.Kept:
		v.Tone = doc.ToneGood
		if v.Figures != "" { // the figures are the reason
			v.Reason = ""
		}
	case measure.Failed, measure.NotInUse:
		v.Tone = doc.ToneBad
	case measure.Foreign, measure.Declined, measure.NoTime:
		v.Tone = doc.ToneWarn
	}
	if a.OtherDirection != nil {
		v.Other = comparedText(a.OtherDirection)
	}
	for _, c := range []*measure.Comparison{a.Comparison, a.OtherDirection} {
		v.guard(c, a.Outcome == measure.Kept)
	}
	for i := range a.Verified[:min(len(a.Verified), result.MaxProofs)] {
		v.Proofs = append(v.Proofs, proofOf(&a.Verified[i]))
	}
	return v
}

// guard adds the guardrails that the change made worse; for a kept change they are its price.
func (v *attempt) guard(c *measure.Comparison, kept bool) {
	if c == nil {
		return
	}
	for i := range c.Guardrails[:min(len(c.Guardrails), result.MaxProofs)] {
		if g := &c.Guardrails[i]; g.Worse {
			s := result.GuardText(g)
			if kept {
				s = "cost: " + strings.TrimSuffix(s, ": worse")
			}
			v.Guards = append(v.Guards, s)
		}
	}
}

// proofOf returns "read back: 4096 131072 26214400", "window of the connection not seen: ...".
func proofOf(x *measure.Verification) string {
	s := doc.Clean(x.What)
	if x.EndPoint != "" {
		s += " at " + doc.Clean(x.EndPoint)
	}
	switch {
	case x.Holds == nil:
		s += ", not checked"
	case !*x.Holds:
		s += ", NOT in force"
	}
	if x.Fact != "" {
		s += ": " + doc.Clean(x.Fact)
	}
	return s
}

// undoCommands returns the commands that restore the original settings, for each host with kept changes.
func undoCommands(t *measure.Tuning) (all []string) {
	for _, host := range keptHosts(t) {
		all = append(all, strings.TrimSpace("thru tune --rollback "+host))
	}
	return all
}

// keptHosts returns the hosts with kept settings, quoted for a command line; "" is the host where the command
// ran.
func keptHosts(t *measure.Tuning) (hosts []string) {
	for _, a := range t.Attempts {
		if a.Outcome != measure.Kept {
			continue
		}
		for _, s := range a.Settings {
			host := doc.Quote(s.EndPoint)
			if s.EndPoint == "" || s.EndPoint == "local" {
				host = ""
			}
			if !slices.Contains(hosts, host) && len(hosts) < maxPersistent {
				hosts = append(hosts, host)
			}
		}
	}
	slices.Sort(hosts)
	return hosts
}

// keptFlags returns the kept options of a test as typed: for an option that was kept twice the last value.
// Advice that is no flag ("leave -w out") follows in words.
func keptFlags(t *measure.Tuning) string {
	var flags, words []string
	for _, a := range t.Attempts {
		if a.Outcome != measure.Kept || a.Test == nil || a.Test.Flags == "" {
			continue
		}
		text := doc.Clean(a.Test.Flags)
		name, _, _ := strings.Cut(text, " ")
		if !strings.HasPrefix(name, "-") {
			words = append(words, text)
			continue
		}
		flags = append(slices.DeleteFunc(flags, func(f string) bool { return f == name || strings.HasPrefix(f, name+" ") }), text)
	}
	return strings.TrimPrefix(strings.Join(append([]string{strings.Join(flags, " ")}, words...), "; "), "; ")
}

// persistence is what makes kept settings survive a reboot of one host.
type persistence struct {
	At, Manager, File string
	Words             string
	Content           []string // lines of the file
	Commands, Undo    []string
}

func newPersistence(l *measure.Persistence) persistence {
	v := persistence{At: doc.Clean(l.EndPoint), Manager: doc.Clean(l.Manager), File: doc.Clean(l.File), Words: doc.Clean(l.Words)}
	if l.Platform != "" {
		v.Manager = doc.Join(v.Manager, doc.Clean(l.Platform))
	}
	if l.Content != "" {
		for i, line := range strings.Split(strings.TrimRight(l.Content, "\n"), "\n") {
			if i == maxFileLines {
				v.Content = append(v.Content, "...")
				break
			}
			v.Content = append(v.Content, doc.CleanUpTo(line, result.LongestOrder))
		}
	}
	v.Commands, v.Undo = orders(l.Commands), orders(l.Undo)
	return v
}

// Unit returns the unit of the journey's figures.
func (t *View) Unit() string {
	if t.In.Div == 0 {
		return "rate"
	}
	return t.In.Name
}
