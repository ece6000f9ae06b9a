package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Rule is one cause of the catalogue, with how it is recognised.
type Rule struct {
	Cause  string   // stable id, kebab-case
	Title  string   // what it is, in a few words
	Seen   string   // evidence that it is recognised by, with the counters and bars
	Apart  string   // what tells it from its neighbours
	Mends  string   // what to do, in words; the finding has the commands
	Effect string   // what it costs, with a figure that was measured somewhere
	Source string   // where counters, thresholds and figures come from
	Tests  []string // experiments that tell, the most telling first
	Brings []string // causes whose evidence this one brings along: it is their root
	Unseen string   // what the host of a guest can do that looks like this from inside; with none it stays certain there
	UDP    bool     // it is judged for datagrams
	TCP    bool     // it is judged for TCP

	judge   func(*flow) *outcome // by the counters of the ends, the path's probe and experiments
	packets func(*flow) *outcome // by captures of the flow; nil: packets say nothing of it
}

// Catalogue is every rule, in the order in which findings of the same weight
// are shown.
func Catalogue() []Rule { return rules() }

// rules are the families: first what says that the measurement itself is
// wrong, then what keeps data from passing at all, then each end and the path.
func rules() []Rule {
	return slices.Concat(measurementRules(), mtuRules(), quotaRules(), windowRules(), senderRules(), cpuRules(),
		nicRules(), lossRules(), queueRules(), linkRules(), wayRules(), timeRules(), optionRules(), hostRules())
}

// state is what a rule found.
type state int

const (
	holds state = iota
	excluded
	unknown
)

// outcome of a rule for one flow.
type outcome struct {
	state      state
	confidence string // of one that holds
	text       string // summary; why it is excluded; why the fact is missing
	fact       string // that is missing
	healthy    bool
	aside      bool     // it holds, but the rate does not hang on it
	apart      []string // causes that often bring it along, and did not here
	where      measure.Where
	evidence   []measure.Proof
	effect     *measure.Effect
	next       string
	remedy     *measure.Remedy
}

func held(confidence, format string, args ...any) *outcome {
	return &outcome{confidence: confidence, text: fmt.Sprintf(format, args...)}
}

// certain, likely and possible word a cause that holds: the part of a sentence
// that follows "4.1 of 10 Gb/s:".
func certain(format string, args ...any) *outcome  { return held(measure.Certain, format, args...) }
func likely(format string, args ...any) *outcome   { return held(measure.Likely, format, args...) }
func possible(format string, args ...any) *outcome { return held(measure.Possible, format, args...) }

// no says what speaks against a cause.
func no(format string, args ...any) *outcome {
	return &outcome{state: excluded, text: fmt.Sprintf(format, args...)}
}

// missing says which fact a rule lacks, and why.
func missing(fact, why string) *outcome { return &outcome{state: unknown, fact: fact, text: why} }

// untried says that an experiment has to tell, or that it failed.
func (f *flow) untried(experiment string) *outcome {
	if why := f.failure(experiment); why != "" {
		return missing(anExperiment+" "+experiment, "it failed: "+why)
	}
	return missing(anExperiment+" "+experiment, "`thru explain` makes it")
}

// anExperiment begins the name of a fact that an experiment has to tell.
const anExperiment = "the experiment"

// at says where the cause is.
func (o *outcome) at(w measure.Where) *outcome { o.where = w; return o }

// by adds counters that show it.
func (o *outcome) by(proofs ...measure.Proof) *outcome {
	o.evidence = append(o.evidence, proofs...)
	return o
}

// costs says what it costs; a bound of 0 is not known.
func (o *outcome) costs(bound float64, text, from string) *outcome {
	o.effect = &measure.Effect{Text: text, From: from}
	if bound > 0 {
		o.effect.BoundBps = &bound
	}
	return o
}

// then says which test would tell.
func (o *outcome) then(next string) *outcome { o.next = next; return o }

// mend adds the remedy.
func (o *outcome) mend(r *measure.Remedy) *outcome { o.remedy = r; return o }

// well says that it is no fault.
func (o *outcome) well() *outcome { o.healthy = true; return o }

// beside says that the rate does not hang on it: something to mend all the same.
func (o *outcome) beside() *outcome { o.aside = true; return o }

// apply judges the rule for a flow; nil where it does not apply.
func (r Rule) apply(f *flow) *outcome { return f.unlessHost(r, r.inside(f)) }

// inside judges it by what is seen at the ends, whatever lies below them.
func (r Rule) inside(f *flow) *outcome {
	if f.isUDP() && !r.UDP || !f.isUDP() && !r.TCP {
		return nil
	}
	if r.packets == nil || len(f.spots) == 0 {
		return r.judge(f)
	}
	shown := r.packets(f)
	if shown != nil && f.packetsOnly() {
		return surer(r.judge(f), shown)
	}
	return join(r.judge(f), shown)
}

// finding words an outcome for the document.
func (f *flow) finding(j judged) measure.Finding {
	o := j.outcome
	x := measure.Finding{
		Cause: j.rule.Cause, Where: o.where, BecauseOf: j.because, Confidence: o.confidence, Summary: line(o.text),
		Evidence: numbers(o.evidence), Effect: o.effect, Next: o.next, Remedy: o.remedy, Healthy: o.healthy, Source: j.rule.Source,
	}
	if x.Where.Place == "" {
		x.Where.Place = measure.AtPath
	}
	if x.Effect != nil && x.Effect.BoundBps != nil && !isNumber(*x.Effect.BoundBps) {
		x.Effect.BoundBps = nil
	}
	if x.Effect != nil && x.Effect.BoundBps != nil && f.rate() > exceedBar**x.Effect.BoundBps {
		x.Effect = nil // what was carried refutes it
	}
	if x.Where.From == "" {
		x.Where.From, x.Where.To = f.cell.From, f.cell.To
	}
	if x.Next == "" && o.confidence != measure.Certain {
		x.Next = cmp.Or(f.nextOf(j.rule), f.askHosts(j.rule, o))
	}
	return x
}

// numbers leaves out what is no number, which JSON cannot hold: a document of
// absurd figures makes such of them.
func numbers(proofs []measure.Proof) []measure.Proof {
	return slices.DeleteFunc(proofs, func(p measure.Proof) bool {
		return !isNumber(p.Value) || p.Threshold != nil && !isNumber(*p.Threshold)
	})
}

// longestLine bounds a text that can hold names from a foreign host, in characters.
const longestLine = 300

// line makes one line of printable text.
func line(text string) string { return unit.Line(text, longestLine) }
