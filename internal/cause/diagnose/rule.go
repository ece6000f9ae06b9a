package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/cause/gate"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Rule is one cause of the catalogue, with how it is recognised.
type Rule struct {
	Cause       string   // stable id, kebab-case
	Title       string   // what it is, in a few words
	Seen        string   // evidence that it is recognised by, with the counters and bars
	Distinction string   // what tells it from its neighbours
	Fix         string   // what to do, in words; the finding has the commands
	Effect      string   // what it costs, with a figure that was measured somewhere
	Source      string   // where counters, thresholds and figures come from
	Tests       []string // experiments that tell, the most telling first
	Brings      []string // causes whose evidence this one brings along: it is their root
	Unseen      string   // what the host of a guest can do that looks like this from inside; with none it stays certain there
	Binds       bool     // it usually binds: where it was not checked, "nothing was found" says little
	UDP         bool     // it is judged for datagrams
	TCP         bool     // it is judged for TCP

	Judge   func(*Flow) *Outcome // by the counters of the ends, the path's probe and experiments
	Packets func(*Flow) *Outcome // by captures of the flow; nil: packets say nothing of it
}

// Catalogue is all that a judgement may look up.
type Catalogue struct {
	Causes []Rule
	Gates  []gate.Rule
}

// state is what a rule found.
type state int

const (
	Holds state = iota
	Excluded
	Unknown
)

// Outcome of a rule for one flow.
type Outcome struct {
	State           state
	Confidence      string // of one that holds
	Text            string // summary; why it is excluded; why the fact is missing
	Fact            string // that is missing
	Healthy         bool
	NotBinding      bool     // it holds, but the rate does not hang on it
	RuledOutEffects []string // causes that often bring it along, and did not here
	Where           measure.Where
	Evidence        []measure.Proof
	Effect          *measure.Effect
	Next            string
	Fix             *measure.Fix
	experiment      bool   // of a fact that is missing: an experiment would tell
	capture         string // and which capture would
}

// HoldsWith is the outcome of a cause that holds, with that confidence.
func HoldsWith(confidence, format string, args ...any) *Outcome {
	return &Outcome{Confidence: confidence, Text: fmt.Sprintf(format, args...)}
}

// Certain is the outcome of a cause that holds. Its words, as those of Likely and
// Possible, are the part of a sentence that follows "4.1 of 10 Gb/s:".
func Certain(format string, args ...any) *Outcome { return HoldsWith(measure.Certain, format, args...) }

// Likely is the outcome of a cause whose neighbours are not ruled out.
func Likely(format string, args ...any) *Outcome { return HoldsWith(measure.Likely, format, args...) }

// Possible is the outcome of a cause of which only a condition holds.
func Possible(format string, args ...any) *Outcome {
	return HoldsWith(measure.Possible, format, args...)
}

// No says what speaks against a cause.
func No(format string, args ...any) *Outcome {
	return &Outcome{State: Excluded, Text: fmt.Sprintf(format, args...)}
}

// Missing says which fact a rule lacks, and why.
func Missing(fact, why string) *Outcome { return &Outcome{State: Unknown, Fact: fact, Text: why} }

// Untried says that an experiment has to tell, or that it failed.
func (f *Flow) Untried(experiment string) *Outcome {
	o := Missing("the experiment "+experiment, "`thru explain` makes it")
	if why := f.failure(experiment); why != "" {
		o.Text = "it failed: " + why
	}
	o.experiment = true
	return o
}

// At says where the cause is.
func (o *Outcome) At(w measure.Where) *Outcome { o.Where = w; return o }

// By adds counters that show it.
func (o *Outcome) By(proofs ...measure.Proof) *Outcome {
	o.Evidence = append(o.Evidence, proofs...)
	return o
}

// Costs says what it costs; a bound of 0 is not known.
func (o *Outcome) Costs(bound float64, text, from string) *Outcome {
	o.Effect = &measure.Effect{Text: text, From: from}
	if bound > 0 {
		o.Effect.BoundBps = &bound
	}
	return o
}

// Then says which test would tell.
func (o *Outcome) Then(next string) *Outcome { o.Next = next; return o }

// AddFix adds the remedy.
func (o *Outcome) AddFix(r *measure.Fix) *Outcome { o.Fix = r; return o }

// Well says that it is no fault.
func (o *Outcome) Well() *Outcome { o.Healthy = true; return o }

// MarkNotBinding says that the rate does not hang on it: something to mend all the same.
func (o *Outcome) MarkNotBinding() *Outcome { o.NotBinding = true; return o }

// Apply judges the rule for a flow; nil where it does not apply.
func (r Rule) Apply(f *Flow) *Outcome { return f.unlessHost(r, r.inside(f)) }

// inside judges it by what is seen at the ends, whatever lies below them.
func (r Rule) inside(f *Flow) *Outcome {
	if f.IsUDP() && !r.UDP || !f.IsUDP() && !r.TCP {
		return nil
	}
	if r.Packets == nil || len(f.CapturePoints) == 0 {
		return r.Judge(f)
	}
	shown := r.Packets(f)
	if shown != nil && f.PacketsOnly() {
		return surer(r.Judge(f), shown)
	}
	return Join(r.Judge(f), shown)
}

// Finding words an outcome for the document.
func (f *Flow) Finding(j Judged) measure.Finding {
	o := j.Outcome
	x := measure.Finding{
		Cause: j.Rule.Cause, Where: o.Where, BecauseOf: j.Because, Confidence: o.Confidence, Summary: Line(o.Text),
		Evidence: Numbers(o.Evidence), Effect: o.Effect, Next: o.Next, Fix: o.Fix, Healthy: o.Healthy, Source: j.Rule.Source,
	}
	if x.Where.Place == "" {
		x.Where.Place = measure.AtPath
	}
	if x.Effect != nil && x.Effect.BoundBps != nil && !IsNumber(*x.Effect.BoundBps) {
		x.Effect.BoundBps = nil
	}
	if x.Effect != nil && x.Effect.BoundBps != nil && f.Rate() > ExceedBar**x.Effect.BoundBps {
		x.Effect = nil // what was carried refutes it
	}
	if x.Where.From == "" {
		x.Where.From, x.Where.To = f.Cell.From, f.Cell.To
	}
	if x.Next == "" && o.Confidence != measure.Certain {
		x.Next = cmp.Or(f.NextOf(j.Rule), f.askHosts(j.Rule, o))
	}
	return x
}

// Numbers leaves out what is no number, which JSON cannot hold: a document of
// absurd figures makes such of them.
func Numbers(proofs []measure.Proof) []measure.Proof {
	return slices.DeleteFunc(proofs, func(p measure.Proof) bool {
		return !IsNumber(p.Value) || p.Threshold != nil && !IsNumber(*p.Threshold)
	})
}

// longestLine bounds a text that can hold names from a foreign host, in characters.
const longestLine = 300

// Line makes one line of printable text.
func Line(text string) string { return unit.Line(text, longestLine) }
