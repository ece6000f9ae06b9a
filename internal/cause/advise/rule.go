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

// Rule lists what to change if the cause of a slow result was found, or a gate names it.
type Rule struct {
	Cause   string             // of a finding, or of a gate (docs/causes.md)
	Urgent  int                // position of its gates among the urgent ones, from 1; 0: not urgent
	Gates   []gate.Rule        // that name it
	Propose []Proposer         // in order
	Tight   func(Request) bool // a gate shows a limit known to bind: its changes come right after those of the first finding, and again after others were kept; nil for most causes
	// LastResort is the finding to assume for a direction that carries almost nothing, after everything else; nil
	// for most causes.
	LastResort func(*Direction) *measure.Finding
}

// Proposer lists the changes that help against a finding or gate.
type Proposer func(Request) []Draft

// Draft is a change that a rule asks for.
type Draft struct {
	Settings []measure.Setting
	Test     *measure.TestOptions
	Id       string // of a test option, of an advice in words, or of another way to set the same knob
	Title    string
	expect   string // "" if the knob's own effect is expected
	Bps      float64
	Source   string
	Risk     string      // in addition to the knob's own
	late     bool        // after everything that the gates ask for
	Once     bool        // never again after a similar change was kept
	from, to *scene.Host // direction that it is for; nil: whichever carries less
	words    *measure.Commands
	only     string // why thru does not do it itself, in addition to the reasons of its settings
}

// Request is a finding or a gate that asks for a change.
type Request struct {
	*advice
	Cause     string
	Finding   *measure.Finding // one of these
	Gate      *measure.Gate
	Direction *Direction  // direction that it is about, or one in which the host takes part; nil: not known
	At        *scene.Host // host that it is about; nil: the path
	iface     string
}

// byUrgency orders gates by the possible cost of their causes, the highest first: limits of one window per round
// trip, then loss, then CPU cost. Others follow.
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

// isTight reports whether a request comes from a gate whose limit is known to bind.
func (sc *advice) isTight(r Request) bool {
	return r.Direction != nil && slices.ContainsFunc(sc.rules, func(x Rule) bool { return x.Cause == r.Cause && x.Tight != nil && x.Tight(r) })
}

// isOfTight reports whether a gate's cause may be known to bind.
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

// requests returns, in order: findings, failed gates, warnings, and the last resorts if almost nothing passes.
// Buffers smaller than the path needs come right after the first finding: if there are several faults at once, the
// others hide them.
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

// lastResorts returns the requests of last resort for each direction. A cause that a finding has already requested
// keeps its place.
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

// findings returns those of the last measurement of each direction, the direction most in need of help first;
// those of the whole document if the cells have none.
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

// asGate assigns a gate of a host to the direction that it affects: to the host if it is about receiving, else
// from the host.
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

// drafts returns the changes of the cause's rules, and the fix in words if there are none or the fault is between
// the hosts.
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
	// The change is judged where the fault is: in the direction of the finding, or in the one that the gate's host
	// receives.
	for i, d := range list {
		if d.from == nil && len(d.Settings) > 0 && (r.Finding != nil || r.Direction.To == r.At) {
			list[i] = d.ForDirection(r.Direction)
		}
	}
	// A setting mitigates a fault of the path, but the fault remains.
	if len(list) == 0 {
		return r.words()
	}
	if r.Finding != nil && r.Finding.Where.Place == measure.AtPath {
		for _, d := range r.words() {
			d.words.Set, d.Risk = nil, "" // the settings are proposed already
			d.only = "it is a fault of the path: a setting of a host reduces its effect, but does not fix it"
			if d.words.Words != "" {
				list = append(list, d)
			}
		}
	}
	return list
}

// Here returns the interface at a host that a request is about: the one it names, else that of the route.
func (r Request) Here(h *scene.Host) string {
	if r.iface != "" && h == r.At {
		return r.iface
	}
	return r.Direction.Face(h)
}

// words returns the fix in words if no setting helps; nothing if there is none.
func (r Request) words() []Draft {
	d := Draft{only: "thru knows no setting of a host that fixes it"}
	c := measure.Commands{}
	switch {
	case r.Finding != nil && r.Finding.BecauseOf != "": // fix the root cause instead
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
	d.Title = cmp.Or(c.Words, "manual step: "+line(strings.Join(c.Set, "; ")))
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

// Change returns a draft of one setting.
func Change(h *scene.Host, id, iface, value, title string, args ...any) Draft {
	return Draft{Settings: []measure.Setting{h.Setting(id, iface, value)}, Title: fmt.Sprintf(title, args...)}
}

// ForDirection sets the draft's direction.
func (d Draft) ForDirection(w *Direction) Draft {
	d.from, d.to = w.From, w.To
	return d
}

// Bring sets the expected rate in bit/s and what it is computed from; 0 is not known.
func (d Draft) Bring(bps float64, source, format string, args ...any) Draft {
	d.Bps, d.Source, d.expect = sane(bps), source, fmt.Sprintf(format, args...)
	return d
}

// AtLast moves the draft after everything that the gates ask for.
func (d Draft) AtLast() Draft { d.late = true; return d }

// And joins two drafts into one change.
func (d Draft) And(o Draft, title string, args ...any) Draft {
	d.Settings, d.Title = append(slices.Clone(d.Settings), o.Settings...), fmt.Sprintf(title, args...)
	return d
}

// Name returns a draft's name: "tcp-rmem@b", "tso@a:eth0", "tcp-rmem@b+tcp-wmem@a", "streams=4",
// "coalescing@b:eth0=50".
func (d Draft) Name() string {
	if len(d.Settings) == 0 || d.Id != "" {
		return d.Id
	}
	parts := unit.Mapped(d.Settings, knobKey)
	slices.Sort(parts) // the same for either end's request
	return strings.Join(parts, "+")
}

// knobKey returns the knob of a setting with its place: "tso@a:eth0".
func knobKey(s measure.Setting) string {
	if s.Interface != "" && s.Knob != knob.RouteCongestion {
		return s.Knob + "@" + s.EndPoint + ":" + s.Interface
	}
	return s.Knob + "@" + s.EndPoint
}

// wasKept reports whether a change of the same knob was kept.
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

// TakesBack reports whether a setting would undo a kept change: a measured gain outweighs a gate's rule of thumb,
// and an offload that was switched off stays off however much work it would save.
func (r Request) TakesBack(s measure.Setting) bool {
	if r.wasKept(s) && (r.Gate != nil || knob.Offload(s.Knob) != "" && s.Value == "on") {
		return true
	}
	return slices.ContainsFunc(knob.Kept(r.Named(s.EndPoint).Facts), func(c measure.Changed) bool { return knob.TakesBack(c, s) })
}

// changes reports whether a draft differs from the current values.
func (sc *advice) changes(d Draft) bool {
	return len(d.Settings) == 0 || slices.ContainsFunc(d.Settings, func(s measure.Setting) bool {
		now := sc.Named(s.EndPoint).State(s.Knob, s.Interface)
		return !now.Known || !knob.Same(now.Value, s.Value) && !(knob.Offload(s.Knob) != "" && now.Is(s.Value))
	})
}

// isLike reports whether a kept change sets one of the draft's knobs.
func (d Draft) isLike(kept string) bool {
	for part := range strings.SplitSeq(kept, "+") {
		name, _, _ := strings.Cut(part, "@")
		if slices.ContainsFunc(d.Settings, func(s measure.Setting) bool { return s.Knob == name }) {
			return true
		}
	}
	return false
}

// longestLine limits a text that can hold names from an untrusted host, in characters.
const longestLine = 300

// line converts a text to one line of printable characters.
func line(text string) string { return unit.Line(text, longestLine) }
