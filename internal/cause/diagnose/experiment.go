package diagnose

import (
	"fmt"
	"slices"
	"time"

	"thru/internal/measure"
)

// Base is the experiment that all others are held against: the traffic that
// was asked for.
const Base = "base"

// Experiment is a short test that differs from the base in one thing, and so
// tells causes apart.
type Experiment struct {
	ID    string        // stable: "streams-8"
	Title string        // what it tries, in a few words
	Time  time.Duration // measured time
	// vary makes the Spec of the base the one of the experiment; false where
	// it would tell nothing here.
	Vary func(f *Flow, s *measure.Spec) bool
}

// Trial is an experiment that is to be made, for whose sake, and how.
type Trial struct {
	Experiment
	Spec   measure.Spec
	Causes []string      // that it is to tell
	Rest   time.Duration // before it, without traffic
	Again  bool          // one more run of an experiment that was made, or of the base in turn with it
	OfBase bool
	Cell   int // index of the cell that the run is of; -1: one of its own
}

// Name is what Next is told in made of the trials that are not to come again.
func (t Trial) Name() string {
	if t.Again {
		return t.ID + " again"
	}
	return t.ID
}

// Next is Next by these rules.
func Next(d *measure.Document, cat *Catalogue, cell int, made []string) (Trial, bool) {
	c := &d.Cells[cell]
	f := NewFlow(cat, d, c)
	if f == nil || Settled(c) || f.isDecidedInside() {
		return Trial{}, false
	}
	if t, worth := f.lengthen(made); worth {
		return t, true
	}
	for _, cause := range open(c) {
		r, _ := RuleOf(cat, cause)
		for _, id := range r.Tests {
			if t, worth := f.again(r, id, made); worth {
				return t, true
			}
			if slices.Contains(made, id) {
				continue
			}
			x, ok := ExperimentOf(id)
			if !ok || !f.passes(x) {
				continue
			}
			s := quick(c.Spec, x)
			if !x.Vary(f, &s) {
				continue
			}
			t := Trial{Experiment: x, Spec: s, Causes: decides(cat, id, open(c)), Cell: -1}
			if id == Rested {
				t.Rest, _ = f.restTime()
			}
			return t, true
		}
	}
	return Trial{}, false
}

// lengthen is a longer run before all other experiments, of a rate that fell
// within the base: what others would be held against is not steady.
func (f *Flow) lengthen(made []string) (Trial, bool) {
	x, _ := ExperimentOf(Longer)
	s := quick(f.Cell.Spec, x)
	if slices.Contains(made, Longer) || !f.falls() || !f.passes(x) || !x.Vary(f, &s) {
		return Trial{}, false
	}
	return Trial{Experiment: x, Spec: s, Causes: []string{"token-bucket"}, Cell: -1}, true
}

// again is one more run of an experiment, or of the base, in turn: where its gain may
// be chance, and would make the cause certain were it none.
func (f *Flow) again(r Rule, id string, made []string) (Trial, bool) {
	c := f.Experiment(id)
	if c == nil {
		return Trial{}, false
	}
	t, gain := Trial{Causes: []string{r.Cause}, Again: true}, f.Against(c)
	t.Experiment, _ = ExperimentOf(id)
	if !gain.Open() || slices.Contains(made, t.Name()) {
		return Trial{}, false
	}
	f.supposed = id
	o := r.Apply(f)
	f.supposed = ""
	t.OfBase, t.Spec, t.Cell = gain.NextIsBase(), c.Spec, f.indexOf(c)
	if t.OfBase {
		t.Spec, t.Cell = quick(f.Cell.Spec, t.Experiment), f.indexOf(f.inTurn(c))
		t.Title = "the traffic itself, in turn with: " + t.Title
	}
	return t, o != nil && o.State == Holds && o.Confidence == measure.Certain
}

// indexOf a cell in the document; -1 without one.
func (f *Flow) indexOf(c *measure.Cell) int {
	for i := range f.Doc.Cells {
		if c == &f.Doc.Cells[i] {
			return i
		}
	}
	return -1
}

// passes tells whether data could pass in an experiment: where none does, more
// of the same or a faster one would only wait for it in vain.
func (f *Flow) passes(x Experiment) bool {
	bps, known := f.Goodput()
	return x.ID == SmallSegments || x.ID == Captured || known && bps > 0
}

// Settled tells whether the first finding of a cell is certain, so that no
// experiment is needed.
func Settled(c *measure.Cell) bool {
	return len(c.Findings) > 0 && c.Findings[0].Confidence == measure.Certain
}

// open are the causes that an experiment could tell something of: those that
// hold without being certain, in their order, then those that wait for one.
func open(c *measure.Cell) []string {
	var causes []string
	for _, x := range c.Findings {
		if x.Confidence != measure.Certain && x.BecauseOf == "" {
			causes = append(causes, x.Cause)
		}
	}
	for _, x := range c.NotChecked {
		if len(x.Tests) > 0 {
			causes = append(causes, x.Cause)
		}
	}
	return causes
}

// decides are those of the causes that an experiment tells something of.
func decides(cat *Catalogue, id string, causes []string) []string {
	var told []string
	for _, cause := range causes {
		if r, ok := RuleOf(cat, cause); ok && slices.Contains(r.Tests, id) {
			told = append(told, cause)
		}
	}
	return told
}

// RuleOf is the rule of a cause.
func RuleOf(cat *Catalogue, cause string) (Rule, bool) {
	for _, r := range cat.Causes {
		if r.Cause == cause {
			return r, true
		}
	}
	return Rule{}, false
}

// judged is what the rule of another cause says of the flow by its counters.
func (f *Flow) judged(cause string) *Outcome {
	r, _ := RuleOf(f.Cat, cause)
	return r.Judge(f)
}

// ExperimentOf is the experiment of that id.
func ExperimentOf(id string) (Experiment, bool) {
	for _, x := range Experiments() {
		if x.ID == id {
			return x, true
		}
	}
	return Experiment{}, false
}

// quick is a Spec like the base's, as short as the experiment is.
func quick(base measure.Spec, x Experiment) measure.Spec {
	base.Duration = int64(x.Time)
	base.Amount, base.Verify, base.BindPort = 0, false, 0
	return base
}

// NextOf words the test that would tell a cause for certain: the first that was
// not made and that differs from this flow. Who reads it may have other
// programs than the one that measured.
func (f *Flow) NextOf(r Rule) string {
	if f.PacketsOnly() {
		return f.nextOfFile(r)
	}
	for _, id := range r.Tests {
		x, ok := ExperimentOf(id)
		if !ok || f.Experiment(id) != nil {
			continue
		}
		s := quick(f.Cell.Spec, x)
		s.Engine = measure.Native
		if !x.Vary(f, &s) {
			continue
		}
		if why := f.failure(id); why != "" {
			return fmt.Sprintf("%s, again: it was not checked, as it failed (%s)", x.Title, why)
		}
		return x.Title
	}
	return ""
}

// nextOfFile words what the reader of a capture can do next: the test itself is
// over.
func (f *Flow) nextOfFile(r Rule) string {
	one := len(f.CapturePoints) == 1
	switch {
	case one && r.Packets != nil && f.CapturePoints[0].At == measure.AtSender:
		return "a capture at the receiver too"
	case one && r.Packets != nil && f.CapturePoints[0].At == measure.AtReceiver:
		return "a capture at the sender too"
	case one && r.Packets != nil:
		return "a capture at each end"
	case len(r.Tests) > 0:
		return "`thru explain END POINT` between the two makes the tests that tell"
	}
	return ""
}
