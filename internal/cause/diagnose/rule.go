package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/cause/gate"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Rule is one cause of the catalogue and how it is recognised.
type Rule struct {
	Cause       string   // stable id, kebab-case
	Title       string   // what it is, in a few words
	Seen        string   // evidence for it, with the counters and thresholds
	Distinction string   // what distinguishes it from similar causes
	Fix         string   // what to do, in words; the finding has the commands
	Effect      string   // what it costs, with a measured figure
	Source      string   // where counters, thresholds and figures come from
	Tests       []string // experiments that decide, the most decisive first
	Brings      []string // causes that are its effects: it is their root
	Unseen      string   // effect of a guest's host that looks like this from inside; without one it stays certain in a guest
	Binds       bool     // it usually binds: if it was not checked, "nothing was found" means little
	UDP         bool     // it is judged for datagrams
	TCP         bool     // it is judged for TCP

	Judge   func(*Flow) *Outcome // by the counters of the ends, the path's probe and experiments
	Packets func(*Flow) *Outcome // by captures of the flow; nil: packets do not show it
}

// Catalogue is all that a judgement may look up.
type Catalogue struct {
	Causes []Rule
	Gates  []gate.Rule
}

// state is the result of a rule.
type state int

const (
	Holds state = iota
	Excluded
	Unknown
)

// Outcome is the result of a rule for one flow. Unlike a gate.Finding, which is a fact about its subject, it claims that
// the cause limits the rate: with a place, a confidence, evidence and a cost.
type Outcome struct {
	State           state
	Confidence      string // of a cause that holds
	Text            string // summary; why it is excluded; why the fact is missing
	Fact            string // that is missing
	Healthy         bool
	NotBinding      bool     // it holds, but does not limit the rate
	RuledOutEffects []string // causes that often bring it along, and are excluded here
	Where           measure.Where
	Evidence        []measure.Proof
	Effect          *measure.Effect
	Next            string
	Fix             *measure.Fix
	experiment      bool   // for a missing fact: an experiment would decide
	capture         string // for a missing fact: the capture that would decide
}

// HoldsWith returns the outcome of a cause that holds, with that confidence.
func HoldsWith(confidence, format string, args ...any) *Outcome {
	return &Outcome{Confidence: confidence, Text: fmt.Sprintf(format, args...)}
}

// Certain returns the outcome of a cause that holds. Its words, as those of Likely and Possible, continue a
// sentence after "4.1 of 10 Gb/s:".
func Certain(format string, args ...any) *Outcome { return HoldsWith(measure.Certain, format, args...) }

// Likely returns the outcome of a cause while similar causes are not ruled out.
func Likely(format string, args ...any) *Outcome { return HoldsWith(measure.Likely, format, args...) }

// Possible returns the outcome of a cause of which only a condition holds.
func Possible(format string, args ...any) *Outcome {
	return HoldsWith(measure.Possible, format, args...)
}

// No returns the outcome of a cause that is excluded, and why.
func No(format string, args ...any) *Outcome {
	return &Outcome{State: Excluded, Text: fmt.Sprintf(format, args...)}
}

// Missing returns which fact a rule lacks, and why.
func Missing(fact, why string) *Outcome { return &Outcome{State: Unknown, Fact: fact, Text: why} }

// Untried returns that an experiment has to decide, or that it failed.
func (f *Flow) Untried(experiment string) *Outcome {
	o := Missing("the experiment "+experiment, "`thru explain` runs it")
	if why := f.failure(experiment); why != "" {
		o.Text = "it failed: " + why
	}
	o.experiment = true
	return o
}

// At sets where the cause is.
func (o *Outcome) At(w measure.Where) *Outcome { o.Where = w; return o }

// By adds the counters that show it.
func (o *Outcome) By(proofs ...measure.Proof) *Outcome {
	o.Evidence = append(o.Evidence, proofs...)
	return o
}

// Costs sets what it costs; a bound of 0 is not known.
func (o *Outcome) Costs(bound float64, text, from string) *Outcome {
	o.Effect = &measure.Effect{Text: text, From: from}
	if bound > 0 {
		o.Effect.BoundBps = &bound
	}
	return o
}

// Then sets the test that would decide.
func (o *Outcome) Then(next string) *Outcome { o.Next = next; return o }

// AddFix adds the fix.
func (o *Outcome) AddFix(r *measure.Fix) *Outcome { o.Fix = r; return o }

// Well marks it as no fault.
func (o *Outcome) Well() *Outcome { o.Healthy = true; return o }

// MarkNotBinding marks a cause that does not limit the rate but should be fixed.
func (o *Outcome) MarkNotBinding() *Outcome { o.NotBinding = true; return o }

// Apply judges the rule for a flow; nil if it does not apply.
func (r Rule) Apply(f *Flow) *Outcome { return f.unlessHost(r, r.inside(f)) }

// inside judges it by what the ends see, regardless of their hypervisors.
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

// Finding converts an outcome to a finding of the document.
func (f *Flow) Finding(j Judged) measure.Finding {
	o := j.Outcome
	x := measure.Finding{
		Cause: j.Rule.Cause, Where: o.Where, BecauseOf: j.Because, Confidence: o.Confidence, Summary: Line(o.Text),
		Evidence: Numbers(o.Evidence), Effect: o.Effect, Next: o.Next, Fix: o.Fix, Healthy: o.Healthy, Source: j.Rule.Source,
	}
	x.Where.Place = cmp.Or(x.Where.Place, measure.AtPath)
	if x.Effect != nil && x.Effect.BoundBps != nil && !IsNumber(*x.Effect.BoundBps) {
		x.Effect.BoundBps = nil
	}
	if x.Effect != nil && x.Effect.BoundBps != nil && f.Rate() > ExceedBar**x.Effect.BoundBps {
		x.Effect = nil // the measured rate refutes it
	}
	if x.Where.From == "" {
		x.Where.From, x.Where.To = f.Cell.From, f.Cell.To
	}
	if x.Next == "" && o.Confidence != measure.Certain {
		x.Next = cmp.Or(f.NextOf(j.Rule), f.askHosts(j.Rule, o))
	}
	return x
}

// Numbers removes NaN and infinities, which JSON cannot hold: they come from documents with absurd figures.
func Numbers(proofs []measure.Proof) []measure.Proof {
	return slices.DeleteFunc(proofs, func(p measure.Proof) bool {
		return !IsNumber(p.Value) || p.Threshold != nil && !IsNumber(*p.Threshold)
	})
}

// longestLine limits a text that can hold names from an untrusted host, in characters.
const longestLine = 300

// Line converts a text to one line of printable characters.
func Line(text string) string { return unit.Line(text, longestLine) }
