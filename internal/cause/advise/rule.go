package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Rule says what to change where a cause of a slow result was found, or a gate
// names it.
type Rule struct {
	Cause   string             // of a finding, or of a gate (docs/causes.md)
	Urgent  int                // order of its gates among those that are urgent, from 1 on; 0: it is not
	Gates   []gate.Rule        // that name it
	Propose []Proposer         // in order
	Tight   func(Request) bool // a gate asks for what is known to bind: its changes come right after those of the first finding, and again after others were kept; nil of most causes
	// LastResort is what to suppose of a direction that carries next to nothing, after all
	// else; nil of most causes.
	LastResort func(*Direction) *measure.Finding
}

// Proposer lists the changes that help against what asks for one.
type Proposer func(Request) []Draft

// Draft is a change that a rule asks for.
type Draft struct {
	Settings []measure.Setting
	Test     *measure.TestOptions
	Id       string // of a test's option, of words, or of another way to set the same knob
	Title    string
	expect   string // "" where the knob's own effect is what to expect
	Bps      float64
	Source   string
	Risk     string      // more than the knob's own
	late     bool        // after all that the gates ask for
	Once     bool        // never again after something like it was kept
	from, to *scene.Host // direction for whose sake it is; nil: whichever carries less
	words    *measure.Commands
	only     string // why thru does not do it itself, beside what its settings say
}

// Request is a finding or a gate that asks for a change.
type Request struct {
	*advice
	Cause     string
	Finding   *measure.Finding // one of these
	Gate      *measure.Gate
	Direction *Direction  // direction that it is about, or one that the host takes part in; nil: none is known
	At        *scene.Host // whose it is; nil: of the path
	iface     string
}

// byUrgency orders gates by what their causes may cost, the most first: what keeps a
// rate down to a window a round trip, what loses, what takes CPU. Others follow.
func (sc *advice) byUrgency(a, b *measure.Gate) int {
	place := func(g *measure.Gate) int {
		i := slices.IndexFunc(sc.rules, func(r Rule) bool { return r.Cause == g.Cause && r.Urgent > 0 })
		if i < 0 {
			return math.MaxInt
		}
		return sc.rules[i].Urgent
	}
	return cmp.Compare(place(a), place(b))
}

// isTight tells of a request by a gate of what is known to bind.
func (sc *advice) isTight(r Request) bool {
	return r.Direction != nil && slices.ContainsFunc(sc.rules, func(x Rule) bool { return x.Cause == r.Cause && x.Tight != nil && x.Tight(r) })
}

// isOfTight tells of a gate whose cause may be known to bind, receives of one that matters
// for what its host receives.
func (sc *advice) isOfTight(id string) bool {
	return sc.hasGate(func(r Rule, g gate.Rule) bool { return g.ID == id && r.Tight != nil })
}
func (sc *advice) receives(id string) bool {
	return sc.hasGate(func(_ Rule, g gate.Rule) bool { return g.ID == id && g.Receives })
}

func (sc *advice) hasGate(fits func(Rule, gate.Rule) bool) bool {
	return slices.ContainsFunc(sc.rules, func(r Rule) bool {
		return slices.ContainsFunc(r.Gates, func(g gate.Rule) bool { return fits(r, g) })
	})
}

// requests in order: findings, gates that fail, gates that warn, and what is tried where
// next to nothing passes. Buffers that hold less than the path needs come right after the
// first finding: where several faults are there at once, the others hide them.
func (sc *advice) requests() []Request {
	var first, all []Request
	for _, f := range sc.findings() {
		if !f.Healthy && f.Cause != measure.CauseNone && f.Cause != "" && f.Summary != "" {
			all = append(all, sc.asFinding(f))
		}
	}
	first, all = slices.Clone(all[:min(1, len(all))]), all[min(1, len(all)):]
	for _, status := range []string{measure.GateFail, measure.GateWarn} {
		var gates []*measure.Gate
		for i := range sc.doc.Gates {
			if g := &sc.doc.Gates[i]; g.Status == status && g.ID != "" {
				gates = append(gates, g)
			}
		}
		slices.SortStableFunc(gates, sc.byUrgency)
		for _, g := range gates {
			if r := sc.asGate(g); sc.isTight(r) {
				first = append(first, r)
			} else {
				all = append(all, r)
			}
		}
	}
	return slices.Concat(first, all, sc.lastResorts())
}

// lastResorts are asked for each direction. What a finding has asked for already stays
// where it is.
func (sc *advice) lastResorts() (all []Request) {
	for _, r := range sc.rules {
		for _, w := range sc.directions {
			if r.LastResort == nil {
				continue
			}
			if f := r.LastResort(w); f != nil {
				all = append(all, sc.asFinding(f))
			}
		}
	}
	return all
}

// findings of the last measurement of each direction, the one that needs help
// most first; those of the whole where the cells have none.
func (sc *advice) findings() (all []*measure.Finding) {
	for _, w := range sc.directions {
		if w.Cell != nil {
			for i := range w.Cell.Findings {
				all = append(all, &w.Cell.Findings[i])
			}
		}
	}
	for i := range sc.doc.Findings {
		if len(sc.directions) == 0 || !slices.ContainsFunc(sc.directions, func(w *Direction) bool { return w.Cell != nil && len(w.Cell.Findings) > 0 }) {
			all = append(all, &sc.doc.Findings[i])
		}
	}
	return all
}

func (sc *advice) asFinding(f *measure.Finding) Request {
	r := Request{advice: sc, Cause: f.Cause, Finding: f, iface: f.Where.Interface}
	if f.Where.From != "" && f.Where.To != "" {
		r.Direction = sc.direction(f.Where.From, f.Where.To)
	} else if len(sc.directions) > 0 {
		r.Direction = sc.directions[0]
	}
	switch w := f.Where; {
	case w.EndPoint != "":
		r.At = sc.Named(w.EndPoint)
	case r.Direction != nil && w.Place == measure.AtSender:
		r.At = r.Direction.From
	case r.Direction != nil && w.Place == measure.AtReceiver:
		r.At = r.Direction.To
	}
	return r
}

// asGate takes for a gate of a host the direction that it matters for: of what
// it receives that to it, else that from it.
func (sc *advice) asGate(g *measure.Gate) Request {
	r := Request{advice: sc, Cause: g.Cause, Gate: g, iface: g.Interface}
	if g.EndPoint != "" {
		r.At = sc.Named(g.EndPoint)
	}
	receives := sc.receives(g.ID)
	for _, w := range sc.directions {
		ends := w.From == r.At && !receives || w.To == r.At && receives
		if g.From != "" && (w.From.Name == g.From && w.To.Name == g.To) || g.From == "" && ends {
			r.Direction = w
			return r
		}
	}
	if len(sc.directions) > 0 {
		r.Direction = sc.directions[0]
	}
	return r
}

// drafts are what the rules of the cause ask for, and the words of its remedy
// where there is no other, or the fault lies between the hosts.
func (r Request) drafts() []Draft {
	var list []Draft
	if r.Direction != nil {
		for _, x := range r.rules {
			if x.Cause != r.Cause {
				continue
			}
			for _, propose := range x.Propose {
				list = append(list, propose(r)...)
			}
		}
	}
	// It is judged where the fault is: in the direction of the finding, or in that
	// which the host of the gate receives.
	for i, d := range list {
		if d.from == nil && len(d.Settings) > 0 && (r.Finding != nil || r.Direction.To == r.At) {
			list[i] = d.ForDirection(r.Direction)
		}
	}
	// A setting helps against a fault of the path, and the fault is still there.
	if len(list) == 0 {
		return r.words()
	}
	if r.Finding != nil && r.Finding.Where.Place == measure.AtPath {
		for _, d := range r.words() {
			d.words.Set, d.Risk = nil, "" // what can be set is proposed already
			d.only = "it is a fault of the path: a setting of a host helps against it, and does not mend it"
			if d.words.Words != "" {
				list = append(list, d)
			}
		}
	}
	return list
}

// Here is the interface that a request is about at a host: the one that it
// names, else that of the route.
func (r Request) Here(h *scene.Host) string {
	if r.iface != "" && h == r.At {
		return r.iface
	}
	return r.Direction.Face(h)
}

// words are the remedy where no setting cures it; nothing where there is none.
func (r Request) words() []Draft {
	d := Draft{only: "no setting of a host that thru knows cures it"}
	c := measure.Commands{}
	switch {
	case r.Finding != nil && r.Finding.BecauseOf != "": // the cause that brings it along is the one to mend
		return nil
	case r.Finding != nil && r.Finding.Fix != nil:
		m := r.Finding.Fix
		c = measure.Commands{EndPoint: m.EndPoint, Platform: m.Platform, Set: m.Commands, Words: m.Advice}
		d.Risk = m.Risk
	case r.Gate != nil:
		c = measure.Commands{EndPoint: r.Gate.FixAt, Set: r.Gate.Fix, Words: r.Gate.Advice}
		if h := r.Host(c.EndPoint); h != nil && len(c.Set) > 0 {
			c.Platform = h.System
		}
		d.Risk = r.Gate.Risk
	}
	if len(c.Set) == 0 && c.Words == "" {
		return nil
	}
	if c.EndPoint == "" && r.At != nil {
		c.EndPoint = r.At.Name
	}
	c.Words, c.Set = line(c.Words), slices.Clone(c.Set)
	d.Title = c.Words
	if d.Title == "" {
		d.Title = "by hand: " + line(strings.Join(c.Set, "; "))
	}
	d.words, d.Id = &c, r.place()
	return []Draft{d}
}

// place names what a request is about: "policer@a->b", "cpu-quota@b".
func (r Request) place() string {
	name := r.Cause
	if name == "" && r.Gate != nil {
		name = r.Gate.ID
	}
	switch {
	case r.At != nil && r.iface != "":
		return name + "@" + r.At.Name + ":" + r.iface
	case r.At != nil:
		return name + "@" + r.At.Name
	case r.Gate != nil && r.Gate.From != "":
		return name + "@" + r.Gate.From + "->" + r.Gate.To
	case r.Direction != nil:
		return name + "@" + r.Direction.From.Name + "->" + r.Direction.To.Name
	}
	return name
}

// Change is a draft of one setting.
func Change(h *scene.Host, id, iface, value, title string, args ...any) Draft {
	return Draft{Settings: []measure.Setting{h.Setting(id, iface, value)}, Title: fmt.Sprintf(title, args...)}
}

// ForDirection says for which direction it is.
func (d Draft) ForDirection(w *Direction) Draft {
	d.from, d.to = w.From, w.To
	return d
}

// Bring says what to expect, and what that is computed from. A rate of 0 is not known.
func (d Draft) Bring(bps float64, source, format string, args ...any) Draft {
	d.Bps, d.Source, d.expect = sane(bps), source, fmt.Sprintf(format, args...)
	return d
}

// AtLast has it come after all that the gates ask for.
func (d Draft) AtLast() Draft { d.late = true; return d }

// And joins two drafts into one change.
func (d Draft) And(o Draft, title string, args ...any) Draft {
	d.Settings, d.Title = append(slices.Clone(d.Settings), o.Settings...), fmt.Sprintf(title, args...)
	return d
}

// Name of a draft: "tcp-rmem@b", "tso@a:eth0", "tcp-rmem@b+tcp-wmem@a", "streams=4",
// "coalescing@b:eth0=50".
func (d Draft) Name() string {
	if len(d.Settings) == 0 || d.Id != "" {
		return d.Id
	}
	var parts []string
	for _, s := range d.Settings {
		parts = append(parts, knobKey(s))
	}
	slices.Sort(parts) // the same whichever end asked for it
	return strings.Join(parts, "+")
}

// knobKey is the knob of a setting, where it is: "tso@a:eth0".
func knobKey(s measure.Setting) string {
	if s.Interface != "" && s.Knob != knob.RouteCongestion {
		return s.Knob + "@" + s.EndPoint + ":" + s.Interface
	}
	return s.Knob + "@" + s.EndPoint
}

// wasKept tells whether a change of the same knob was kept.
func (sc *advice) wasKept(s measure.Setting) bool {
	return slices.ContainsFunc(sc.kept, func(id string) bool {
		for part := range strings.SplitSeq(id, "+") {
			if name, _, _ := strings.Cut(part, "="); name == knobKey(s) {
				return true
			}
		}
		return false
	})
}

// TakesBack tells whether a setting would undo what was kept: what was shown to
// help stands against a gate's rule of thumb, and an offload that was switched off
// against every wish for less work.
func (r Request) TakesBack(s measure.Setting) bool {
	if r.wasKept(s) && (r.Gate != nil || knob.Offload(s.Knob) != "" && s.Value == "on") {
		return true
	}
	return slices.ContainsFunc(knob.Kept(r.Named(s.EndPoint).Facts), func(c measure.Changed) bool { return knob.TakesBack(c, s) })
}

// changes tells whether a draft differs from what is there.
func (sc *advice) changes(d Draft) bool {
	return len(d.Settings) == 0 || slices.ContainsFunc(d.Settings, func(s measure.Setting) bool {
		now := sc.Named(s.EndPoint).State(s.Knob, s.Interface)
		return !now.Known || !knob.Same(now.Value, s.Value) && !(knob.Offload(s.Knob) != "" && now.Is(s.Value))
	})
}

// isLike tells whether what was kept sets one of the draft's knobs.
func (d Draft) isLike(kept string) bool {
	for part := range strings.SplitSeq(kept, "+") {
		name, _, _ := strings.Cut(part, "@")
		if slices.ContainsFunc(d.Settings, func(s measure.Setting) bool { return s.Knob == name }) {
			return true
		}
	}
	return false
}

// longestLine bounds a text that can hold names from a foreign host, in characters.
const longestLine = 300

// line makes one line of printable text.
func line(text string) string { return unit.Line(text, longestLine) }
