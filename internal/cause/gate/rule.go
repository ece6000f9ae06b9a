package gate

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Rule is one condition of the catalogue.
type Rule struct {
	ID         string   // stable, kebab-case
	Title      string   // what it is about
	Words      string   // what else people call it, in small letters
	About      string   // what is judged, with the facts that it takes
	Warns      string   // when it warns; "" never
	Fails      string   // when it fails; "" never
	Why        string   // why it matters, with a figure; one line
	Source     string   // where thresholds and figures come from
	Fix        string   // what to do, in words; the gate has the commands
	Cause      string   // id of the cause that it would be of a slow result
	Checklist  []string // lines of the checklist that it answers
	Hypervisor bool     // of what a hypervisor says of a guest
	Receives   bool     // it matters for what the host receives; else for what it sends

	// One of these judges. Each is called once for all that it is about, and
	// returns nil where the rule does not apply.
	Host      func(*scene.Host) *Finding // a host
	Face      func(*scene.Face) *Finding // an interface that the traffic passes
	Path      func(*scene.Scene) *Finding
	Direction func(*scene.Direction) *Finding // a direction of the path
}

// Finding is the outcome of a rule for one subject.
type Finding struct {
	Status, fact, why, cause string
	fix                      scene.Fix
	off                      []string // offloads
	fixed                    bool
}

func found(status, format string, args ...any) *Finding {
	return &Finding{Status: status, fact: fmt.Sprintf(format, args...)}
}

// Pass is the finding of a gate that passes.
func Pass(format string, args ...any) *Finding { return found(measure.GatePass, format, args...) }

// Warn is the finding of a gate that warns.
func Warn(format string, args ...any) *Finding { return found(measure.GateWarn, format, args...) }

// Fail is the finding of a gate that fails.
func Fail(format string, args ...any) *Finding { return found(measure.GateFail, format, args...) }

// NotChecked names what is missing, and why.
func NotChecked(what, why string) *Finding {
	return found(measure.GateNotChecked, "%s: %s", what, why)
}

// FailIf is a failure where the condition holds, else a warning.
func FailIf(void bool, format string, args ...any) *Finding {
	if void {
		return Fail(format, args...)
	}
	return Warn(format, args...)
}

// Because replaces the rule's reason by one with the figures of this case.
func (f *Finding) Because(format string, args ...any) *Finding {
	f.why = fmt.Sprintf(format, args...)
	return f
}

// Do adds what to do.
func (f *Finding) Do(r scene.Fix) *Finding { f.fix = r; return f }

// Off names the offloads that it is about; fixed where the driver has none of them.
func (f *Finding) Off(names []string, fixed bool) *Finding {
	f.off, f.fixed = names, fixed
	return f
}

// As names another cause than the rule's.
func (f *Finding) As(cause string) *Finding { f.cause = cause; return f }

// judge applies the rule to all that it is about.
func (r Rule) judge(sc *scene.Scene) []measure.Gate {
	var gates []measure.Gate
	add := func(f *Finding, at measure.Gate) {
		if f != nil {
			gates = append(gates, r.gate(sc, f, at))
		}
	}
	for _, h := range sc.Judged() {
		if r.Host != nil {
			add(r.Host(h), measure.Gate{EndPoint: h.Name})
		}
		for _, i := range h.Faces {
			if r.Face != nil {
				add(r.Face(i), measure.Gate{EndPoint: h.Name, Interface: i.Name})
			}
		}
	}
	if sc.Subject.Path == nil {
		if s := sc.Subject; s.NoPath != "" && len(s.Ends) > 1 && (r.Path != nil || r.Direction != nil) {
			add(NotChecked("the path", s.NoPath), measure.Gate{From: s.Ends[0].Name, To: s.Ends[1].Name})
		}
		return gates
	}
	if r.Path != nil {
		add(r.Path(sc), measure.Gate{From: sc.Subject.Path.From, To: sc.Subject.Path.To})
	}
	for _, w := range sc.Directions() {
		if r.Direction != nil {
			add(r.Direction(w), measure.Gate{From: w.From, To: w.To})
		}
	}
	return gates
}

// gate fills in what the rule says of all its findings.
func (r Rule) gate(sc *scene.Scene, f *Finding, g measure.Gate) measure.Gate {
	g.ID, g.Status, g.Checklist = r.ID, f.Status, slices.Clone(r.Checklist)
	g.Fact, g.Why, g.Cause = line(f.fact), r.Why, r.Cause
	g.Off, g.Fixed = f.off, f.fixed
	if f.why != "" {
		g.Why = line(f.why)
	}
	if f.cause != "" {
		g.Cause = f.cause
	}
	if h := sc.Host(cmp.Or(f.fix.End, g.EndPoint)); h != nil {
		f.fix = h.Sparing(f.fix)
	}
	g.Advice, g.Fix, g.Risk = f.fix.Advice, f.fix.Lines, f.fix.Risk
	if len(g.Fix) > 0 {
		g.FixAt = cmp.Or(f.fix.End, g.EndPoint)
	}
	return g
}

// LongestLine bounds a fact, which can hold names from a foreign host, in characters.
const LongestLine = 240

// line makes one line of printable text.
func line(text string) string { return unit.Line(text, LongestLine) }
