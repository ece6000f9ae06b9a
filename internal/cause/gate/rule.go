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
	Words      string   // other words for it, in lower case
	About      string   // what is judged, and the facts used
	Warns      string   // when it warns; "" never
	Fails      string   // when it fails; "" never
	Why        string   // why it matters, with a figure; one line
	Source     string   // where thresholds and figures come from
	Fix        string   // what to do, in words; the gate has the commands
	Cause      string   // id of the cause of a slow result that it stands for
	Checklist  []string // lines of the checklist that it covers
	Hypervisor bool     // about what a hypervisor reports of a guest
	Receives   bool     // it matters for data that the host receives; else for data that it sends

	// One of these judges. Each is called once for each subject, and returns nil if the rule does not apply.
	Host      func(*scene.Host) *Finding // a host
	Face      func(*scene.Face) *Finding // an interface that the traffic passes
	Path      func(*scene.Scene) *Finding
	Direction func(*scene.Direction) *Finding // a direction of the path
}

// Finding is the outcome of a rule for one subject. Unlike a diagnose.Outcome it has no place, confidence or evidence:
// the subject is its place, and a condition before traffic is a fact, not a measured limit.
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

// NotChecked names the missing fact, and why it is missing.
func NotChecked(what, why string) *Finding {
	return found(measure.GateNotChecked, "%s: %s", what, why)
}

// FailIf fails if the condition holds, else it warns.
func FailIf(void bool, format string, args ...any) *Finding {
	if void {
		return Fail(format, args...)
	}
	return Warn(format, args...)
}

// Because replaces the rule's reason with one that has the figures of this case.
func (f *Finding) Because(format string, args ...any) *Finding {
	f.why = fmt.Sprintf(format, args...)
	return f
}

// Do adds the fix.
func (f *Finding) Do(r scene.Fix) *Finding { f.fix = r; return f }

// Off names the offloads concerned; fixed means that the driver supports none of them.
func (f *Finding) Off(names []string, fixed bool) *Finding {
	f.off, f.fixed = names, fixed
	return f
}

// As sets another cause than the rule's.
func (f *Finding) As(cause string) *Finding { f.cause = cause; return f }

// judge applies the rule to all its subjects.
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

// gate fills in the fields that are the same for all findings of the rule.
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

// LongestLine limits a fact, which can hold names from an untrusted host, in characters.
const LongestLine = 240

// line converts a text to one line of printable characters.
func line(text string) string { return unit.Line(text, LongestLine) }
