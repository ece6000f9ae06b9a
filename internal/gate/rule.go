package gate

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Rule is one condition of the catalogue.
type Rule struct {
	ID        string   // stable, kebab-case
	Title     string   // what it is about
	About     string   // what is judged, with the facts that it takes
	Warns     string   // when it warns; "" never
	Fails     string   // when it fails; "" never
	Why       string   // why it matters, with a figure; one line
	Source    string   // where thresholds and figures come from
	Remedy    string   // what to do, in words; the gate has the commands
	Cause     string   // id of the cause that it would be of a slow result
	Checklist []string // lines of the checklist that it answers

	// One of these judges. Each is called once for all that it is about, and
	// returns nil where the rule does not apply.
	host func(*host) *finding // a host
	face func(*face) *finding // an interface that the traffic passes
	path func(*scene) *finding
	way  func(*way) *finding // a direction of the path
}

// Catalogue is every rule, in the order in which gates of the same state are shown.
func Catalogue() []Rule { return rules() }

// rules are the families, in the order of a packet's way: what it leaves by,
// the path, what the hosts make of it.
func rules() []Rule {
	return slices.Concat(endRules(), linkRules(), bondRules(), pcieRules(), driverRules(), mtuRules(), pathRules(), tcpRules(),
		bufferRules(), congestionRules(), offloadRules(), queueRules(), interruptRules(), ringRules(),
		cpuRules(), powerRules(), cgroupRules(), memoryRules(), loadRules(), firewallRules(), clockRules(), belowRules())
}

// finding is the outcome of a rule for one subject.
type finding struct {
	status, fact, why, cause string
	fix                      remedy
}

func found(status, format string, args ...any) *finding {
	return &finding{status: status, fact: fmt.Sprintf(format, args...)}
}

// pass, warn and fail word what was found.
func pass(format string, args ...any) *finding { return found(measure.GatePass, format, args...) }
func warn(format string, args ...any) *finding { return found(measure.GateWarn, format, args...) }
func fail(format string, args ...any) *finding { return found(measure.GateFail, format, args...) }

// notChecked names what is missing, and why.
func notChecked(what, why string) *finding {
	return found(measure.GateNotChecked, "%s: %s", what, why)
}

// failIf is a failure where the condition holds, else a warning.
func failIf(void bool, format string, args ...any) *finding {
	if void {
		return fail(format, args...)
	}
	return warn(format, args...)
}

// because replaces the rule's reason by one with the figures of this case.
func (f *finding) because(format string, args ...any) *finding {
	f.why = fmt.Sprintf(format, args...)
	return f
}

// do adds what to do.
func (f *finding) do(r remedy) *finding { f.fix = r; return f }

// as names another cause than the rule's.
func (f *finding) as(cause string) *finding { f.cause = cause; return f }

// judge applies the rule to all that it is about.
func (r Rule) judge(sc *scene) []measure.Gate {
	var gates []measure.Gate
	add := func(f *finding, at measure.Gate) {
		if f != nil {
			gates = append(gates, r.gate(sc, f, at))
		}
	}
	for _, h := range sc.judged() {
		if r.host != nil {
			add(r.host(h), measure.Gate{EndPoint: h.name})
		}
		for _, i := range h.faces {
			if r.face != nil {
				add(r.face(i), measure.Gate{EndPoint: h.name, Interface: i.Name})
			}
		}
	}
	if sc.subject.Path == nil {
		if s := sc.subject; s.NoPath != "" && len(s.Ends) > 1 && (r.path != nil || r.way != nil) {
			add(notChecked("the path", s.NoPath), measure.Gate{From: s.Ends[0].Name, To: s.Ends[1].Name})
		}
		return gates
	}
	if r.path != nil {
		add(r.path(sc), measure.Gate{From: sc.subject.Path.From, To: sc.subject.Path.To})
	}
	for _, w := range sc.ways() {
		if r.way != nil {
			add(r.way(w), measure.Gate{From: w.from, To: w.to})
		}
	}
	return gates
}

// gate fills in what the rule says of all its findings.
func (r Rule) gate(sc *scene, f *finding, g measure.Gate) measure.Gate {
	g.ID, g.Status, g.Checklist = r.ID, f.status, slices.Clone(r.Checklist)
	g.Fact, g.Why, g.Cause = line(f.fact), r.Why, r.Cause
	if f.why != "" {
		g.Why = line(f.why)
	}
	if f.cause != "" {
		g.Cause = f.cause
	}
	if h := sc.host(cmp.Or(f.fix.at, g.EndPoint)); h != nil {
		f.fix = h.sparing(f.fix)
	}
	g.Advice, g.Remedy, g.Risk = f.fix.advice, f.fix.lines, f.fix.risk
	if len(g.Remedy) > 0 {
		g.RemedyAt = cmp.Or(f.fix.at, g.EndPoint)
	}
	return g
}

// longestLine bounds a fact, which can hold names from a foreign host, in characters.
const longestLine = 240

// line makes one line of printable text.
func line(text string) string { return unit.Line(text, longestLine) }
