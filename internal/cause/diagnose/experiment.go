package diagnose

import (
	"fmt"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Base is the experiment to which all others are compared: the requested traffic.
const Base = "base"

// Experiment is a short test that differs from the base in one thing, and so distinguishes causes.
type Experiment struct {
	ID    string        // stable: "streams-8"
	Title string        // what it tries, in a few words
	Time  time.Duration // measured time
	// Vary changes the Spec of the base into that of the experiment; false if it would show nothing here.
	Vary func(f *Flow, s *measure.Spec) bool
}

// Trial is an experiment to run, the causes it is for, and how to run it.
type Trial struct {
	Experiment
	Spec   measure.Spec
	Causes []string      // that it distinguishes
	Rest   time.Duration // idle time before it
	Again  bool          // one more run of an earlier experiment, or of the base in turn with it
	OfBase bool
	Cell   int // index of the cell that gets the run; -1: a new one
}

// Name is the trial's name in the made list of Next.
func (t Trial) Name() string {
	if t.Again {
		return t.ID + " again"
	}
	return t.ID
}

// Next is cause.Next with this catalogue: the experiment that may decide most of the open causes in the least time.
func Next(d *measure.Document, cat *Catalogue, cell int, made []string) (Trial, bool) {
	c := &d.Cells[cell]
	f := NewFlow(cat, d, c)
	if f == nil || Settled(c) || f.isDecidedInside() {
		return Trial{}, false
	}
	if t, worth := f.lengthen(made); worth {
		return t, true
	}
	var trials []Trial
	gain := map[string]float64{} // of each experiment, in causes; the first one counts twice
	for i, cause := range f.open() {
		t, worth := f.trialOf(cause, made)
		switch {
		case !worth:
			continue
		case t.Again && i == 0:
			return t, true
		case i == 0:
			gain[t.Name()]++
		}
		gain[t.Name()]++
		trials = append(trials, t)
	}
	var best Trial
	for _, t := range trials {
		if best.ID == "" || gain[t.Name()]/t.takes() > gain[best.Name()]/best.takes() {
			best = t
		}
	}
	return best, best.ID != ""
}

// trialOf returns the next trial that may decide a cause: one more run of an experiment, or the first of its
// experiments that is not made.
func (f *Flow) trialOf(cause string, made []string) (Trial, bool) {
	r, _ := RuleOf(f.Cat, cause)
	for _, id := range r.Tests {
		if t, worth := f.again(r, id, made); worth {
			return t, true
		}
		x, ok := ExperimentOf(id)
		if slices.Contains(made, id) || !ok || !f.passes(x) {
			continue
		}
		s := quick(f.Cell.Spec, x)
		if !x.Vary(f, &s) {
			continue
		}
		t := Trial{Experiment: x, Spec: s, Causes: decides(f.Cat, id, f.open()), Cell: -1}
		if id == Rested {
			t.Rest, _ = f.restTime()
		}
		return t, true
	}
	return Trial{}, false
}

// takes estimates the seconds that a trial takes.
func (t Trial) takes() float64 {
	const overhead, analysis = 1, 4
	return (t.Rest + time.Duration(t.Spec.Duration)).Seconds() + overhead + analysis*float64(unit.Bit(t.Spec.Capture > 0))
}

// lengthen asks for a longer run before all other experiments if the rate fell within the base: the baseline of
// the others is not steady. A likely loss explains the fall, and datagrams show it sooner.
func (f *Flow) lengthen(made []string) (Trial, bool) {
	x, _ := ExperimentOf(Longer)
	s := quick(f.Cell.Spec, x)
	if slices.Contains(made, Longer) || f.judged("loss").Confidence == measure.Likely || !f.Falls() || !f.staysLow() || !f.mayExplain("token-bucket") || !f.passes(x) || !x.Vary(f, &s) {
		return Trial{}, false
	}
	return Trial{Experiment: x, Spec: s, Causes: []string{"token-bucket"}, Cell: -1}, true
}

// again asks for one more run of an experiment, or of the base, in turn, if its gain may be chance and would
// otherwise make the cause certain.
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
		t.Title = "the original traffic, in turns with: " + t.Title
	}
	return t, o != nil && o.State == Holds && o.Confidence == measure.Certain
}

// indexOf returns the index of a cell in the document; -1 if it has none.
func (f *Flow) indexOf(c *measure.Cell) int {
	for i := range f.Doc.Cells {
		if c == &f.Doc.Cells[i] {
			return i
		}
	}
	return -1
}

// passes reports whether data could pass in an experiment: if none does, more or faster traffic would only wait in
// vain.
func (f *Flow) passes(x Experiment) bool {
	bps, known := f.Goodput()
	return x.ID == SmallSegments || x.ID == Captured || known && bps > 0
}

// Settled reports whether the first finding of a cell is certain, so that no experiment is needed.
func Settled(c *measure.Cell) bool {
	return len(c.Findings) > 0 && c.Findings[0].Confidence == measure.Certain
}

// open returns the causes that an experiment could decide: those that hold without being certain, in their order,
// then those that need one.
func (f *Flow) open() []string {
	var causes []string
	for _, x := range f.Cell.Findings {
		if x.Confidence != measure.Certain && x.BecauseOf == "" {
			causes = append(causes, x.Cause)
		}
	}
	for _, x := range f.Cell.NotChecked {
		if len(x.Tests) > 0 && f.mayExplain(x.Cause) {
			causes = append(causes, x.Cause)
		}
	}
	return causes
}

// mayExplain reports whether a cause without evidence is worth an experiment: nothing likely was found, or that
// cause may be its root, which the evidence does not exclude.
func (f *Flow) mayExplain(cause string) bool {
	r, _ := RuleOf(f.Cat, cause)
	first := f.Cell.Findings
	if len(first) == 0 || first[0].Healthy || first[0].Confidence == measure.Possible {
		return true
	}
	found, _ := RuleOf(f.Cat, first[0].Cause)
	o := found.Apply(f)
	return slices.Contains(r.Brings, found.Cause) && (o == nil || !slices.Contains(o.RuledOutEffects, cause))
}

// decides returns those of the causes that an experiment can decide.
func decides(cat *Catalogue, id string, causes []string) []string {
	var decided []string
	for _, cause := range causes {
		if r, ok := RuleOf(cat, cause); ok && slices.Contains(r.Tests, id) {
			decided = append(decided, cause)
		}
	}
	return decided
}

// RuleOf returns the rule of a cause.
func RuleOf(cat *Catalogue, cause string) (Rule, bool) {
	for _, r := range cat.Causes {
		if r.Cause == cause {
			return r, true
		}
	}
	return Rule{}, false
}

// judged returns what the rule of another cause finds in the flow's counters.
func (f *Flow) judged(cause string) *Outcome {
	r, _ := RuleOf(f.Cat, cause)
	return r.Judge(f)
}

// ExperimentOf returns the experiment of that id.
func ExperimentOf(id string) (Experiment, bool) {
	for _, x := range Experiments() {
		if x.ID == id {
			return x, true
		}
	}
	return Experiment{}, false
}

// quick returns the base's Spec with the short time of the experiment.
func quick(base measure.Spec, x Experiment) measure.Spec {
	base.Duration = int64(x.Time)
	base.Amount, base.Verify, base.BindPort = 0, false, 0
	return base
}

// NextOf words the test that would decide a cause: the first one not yet made that differs from this flow. The
// reader may have other programs than the one that measured.
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
			return fmt.Sprintf("%s, again: the first try failed (%s)", x.Title, why)
		}
		return x.Title
	}
	return ""
}

// nextOfFile words what the reader of a capture file can do next; the test itself is over.
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
		return "`thru explain END POINT` between the two runs the tests that decide"
	}
	return ""
}
