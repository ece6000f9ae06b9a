package hypervisor

import (
	"slices"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Conditions returns the gates of a cause at an end point, "" for the path, that did not pass: those of the
// document, or else those judged from its facts.
func Conditions(f *diagnose.Flow, cause, endPoint string) []measure.Gate {
	return unit.Filtered(JudgedGates(f), func(g measure.Gate) bool {
		return g.Cause == cause && g.EndPoint == endPoint && (g.Status == measure.GateWarn || g.Status == measure.GateFail)
	})
}

// JudgedGates returns all gates of the document, or judges them from its facts if its version stored none. It
// leaves out the hypervisor gates: the rules read the inventory themselves. Each rule of a flow reads the same slice.
func JudgedGates(f *diagnose.Flow) []measure.Gate {
	if f.Gates == nil && len(f.Doc.Gates) > 0 {
		f.Gates = slices.DeleteFunc(slices.Clone(f.Doc.Gates), func(g measure.Gate) bool { return gate.IsHypervisorGateBy(f.Cat.Gates, g.ID) })
	}
	if f.Gates == nil {
		s := scene.Subject{Path: f.Path(), Streams: f.Cell.Streams, UDP: f.IsUDP()}
		for _, e := range f.Ends() {
			if e.Known {
				s.Ends = append(s.Ends, scene.End{Name: e.Name, Facts: e.Facts, Route: e.Route(), Shared: f.Cell.From == f.Cell.To})
			}
		}
		f.Gates = gate.Judge(s, f.Cat.Gates)
	}
	return f.Gates
}

// GateOutcome returns the outcome of a cause's gates at this end if none of them warns; nil if it does not apply
// to this host.
func GateOutcome(e *diagnose.End, cause string) *diagnose.Outcome {
	if !e.Known {
		return e.Lacks("facts of the host")
	}
	var passed, open *measure.Gate
	all := JudgedGates(e.Flow)
	for i := range all {
		g := &all[i]
		switch {
		case g.Cause != cause || g.EndPoint != e.Name:
		case g.Status == measure.GatePass && passed == nil:
			passed = g
		case g.Status == measure.GateNotChecked && open == nil:
			open = g
		}
	}
	switch {
	case open != nil:
		return diagnose.Missing(open.Fact, "it was not read")
	case passed != nil:
		return diagnose.No("at the %s: %s", e.Place, passed.Fact)
	}
	return nil
}

// Gated returns the outcome of a cause's gate at an end: the condition that it warns about, else that of
// GateOutcome.
func Gated(e *diagnose.End, cause string) (o *diagnose.Outcome, warns bool) {
	if gates := Conditions(e.Flow, cause, e.Name); len(gates) > 0 {
		return Condition(e, gates[0]), true
	}
	return GateOutcome(e, cause), false
}

// Fix returns the fix of the first of the gates that has one, else otherwise.
func Fix(e *diagnose.End, gates []measure.Gate, otherwise *measure.Fix) *measure.Fix {
	for _, g := range gates {
		if len(g.Fix) > 0 || g.Advice != "" {
			return e.FixOf(g)
		}
	}
	return otherwise
}

// Condition returns a gate that warns as a cause that may cost something.
func Condition(e *diagnose.End, g measure.Gate) *diagnose.Outcome {
	w := e.Where()
	w.Interface = g.Interface
	o := diagnose.Possible("at the %s: %s", e.Place, g.Fact).At(w)
	o.By(measure.Proof{EndPoint: e.Name, Counter: "gate " + g.ID, Value: 1, Note: diagnose.Line(g.Fact)})
	return o.AddFix(e.FixOf(g))
}

// Symptom makes a condition likely if this run shows its effect, and else marks it as not binding.
func Symptom(o *diagnose.Outcome, shown bool) *diagnose.Outcome {
	if shown {
		o.Confidence = measure.Likely
		return o
	}
	return o.MarkNotBinding()
}

// WorksFully reports whether a CPU of the end is full while the flow could carry more.
func WorksFully(e *diagnose.End) bool { return e.Flow.IsAll() == nil && e.IsFull() }
