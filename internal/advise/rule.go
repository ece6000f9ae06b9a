package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// rule says what to change where a cause of a slow result was found, or a gate
// names it.
type rule struct {
	cause   string // of a finding, or of a gate (docs/causes.md)
	propose func(request) []draft
}

// rules are the families. Causes that no setting cures have none: for them the
// remedy of the finding or of the gate is passed on in words.
func rules() []rule {
	return slices.Concat(bufferRules(), optionRules(), mtuRules(), offloadRules(), queueRules(), cpuRules(), controlRules(), testRules())
}

// draft is a change that a rule asks for.
type draft struct {
	settings []measure.Setting
	test     *measure.TestOptions
	id       string // of a test's option, of words, or of another way to set the same knob
	title    string
	expect   string // "" where the knob's own effect is what to expect
	bps      float64
	source   string
	risk     string // more than the knob's own
	late     bool   // after all that the gates ask for
	once     bool   // never again after something like it was kept
	from, to *host  // direction for whose sake it is; nil: whichever carries less
	words    *measure.Commands
	only     string // why thru does not do it itself, beside what its settings say
}

// request is a finding or a gate that asks for a change.
type request struct {
	*scene
	cause   string
	finding *measure.Finding // one of these
	gate    *measure.Gate
	way     *way  // direction that it is about, or one that the host takes part in; nil: none is known
	at      *host // whose it is; nil: of the path
	iface   string
}

// costly are causes that gates name, by what they may cost, the most first: what keeps
// a rate down to a window a round trip, what loses, what takes CPU. Others follow.
func costly() []string {
	return []string{"window-scaling-off", "receive-window", "send-buffer", "jumbo-mismatch", "mtu-black-hole", "sack-off", "offloads-off", "too-few-queues"}
}

// byCost orders gates so.
func byCost(a, b *measure.Gate) int {
	place := func(g *measure.Gate) int {
		if i := slices.Index(costly(), g.Cause); i >= 0 {
			return i
		}
		return len(costly())
	}
	return cmp.Compare(place(a), place(b))
}

// requests in order: findings, gates that fail, gates that warn, and what is tried where
// next to nothing passes. Buffers that hold less than the path needs come right after the
// first finding: where several faults are there at once, the others hide them.
func (sc *scene) requests() []request {
	var first, all []request
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
		slices.SortStableFunc(gates, byCost)
		for _, g := range gates {
			if r := sc.asGate(g); r.isTight() {
				first = append(first, r)
			} else {
				all = append(all, r)
			}
		}
	}
	return slices.Concat(first, all, sc.stalls())
}

// findings of the last measurement of each direction, the one that needs help
// most first; those of the whole where the cells have none.
func (sc *scene) findings() (all []*measure.Finding) {
	for _, w := range sc.ways {
		if w.cell != nil {
			for i := range w.cell.Findings {
				all = append(all, &w.cell.Findings[i])
			}
		}
	}
	for i := range sc.doc.Findings {
		if len(sc.ways) == 0 || !slices.ContainsFunc(sc.ways, func(w *way) bool { return w.cell != nil && len(w.cell.Findings) > 0 }) {
			all = append(all, &sc.doc.Findings[i])
		}
	}
	return all
}

func (sc *scene) asFinding(f *measure.Finding) request {
	r := request{scene: sc, cause: f.Cause, finding: f, iface: f.Where.Interface}
	if f.Where.From != "" && f.Where.To != "" {
		r.way = sc.way(f.Where.From, f.Where.To)
	} else if len(sc.ways) > 0 {
		r.way = sc.ways[0]
	}
	switch w := f.Where; {
	case w.EndPoint != "":
		r.at = sc.named(w.EndPoint)
	case r.way != nil && w.Place == measure.AtSender:
		r.at = r.way.from
	case r.way != nil && w.Place == measure.AtReceiver:
		r.at = r.way.to
	}
	return r
}

// asGate takes for a gate of a host the direction that it matters for: of what
// it receives that to it, else that from it.
func (sc *scene) asGate(g *measure.Gate) request {
	r := request{scene: sc, cause: g.Cause, gate: g, iface: g.Interface}
	if g.EndPoint != "" {
		r.at = sc.named(g.EndPoint)
	}
	receives := slices.Contains([]string{"receive-window", "queues", "queue-spread", "rss", "rings", "irq-spread", "numa", "interrupt-moderation"}, g.ID)
	for _, w := range sc.ways {
		ends := w.from == r.at && !receives || w.to == r.at && receives
		if g.From != "" && (w.from.name == g.From && w.to.name == g.To) || g.From == "" && ends {
			r.way = w
			return r
		}
	}
	if len(sc.ways) > 0 {
		r.way = sc.ways[0]
	}
	return r
}

// drafts are what the rules of the cause ask for, and the words of its remedy
// where there is no other, or the fault lies between the hosts.
func (r request) drafts() []draft {
	var list []draft
	if r.way != nil {
		for _, x := range rules() {
			if x.cause == r.cause {
				list = append(list, x.propose(r)...)
			}
		}
	}
	// It is judged where the fault is: in the direction of the finding, or in that
	// which the host of the gate receives.
	for i, d := range list {
		if d.from == nil && len(d.settings) > 0 && (r.finding != nil || r.way.to == r.at) {
			list[i] = d.forWay(r.way)
		}
	}
	// A setting helps against a fault of the path, and the fault is still there.
	if len(list) == 0 {
		return r.words()
	}
	if r.finding != nil && r.finding.Where.Place == measure.AtPath {
		for _, d := range r.words() {
			d.words.Set, d.risk = nil, "" // what can be set is proposed already
			d.only = "it is a fault of the path: a setting of a host helps against it, and does not mend it"
			if d.words.Words != "" {
				list = append(list, d)
			}
		}
	}
	return list
}

// here is the interface that a request is about at a host: the one that it
// names, else that of the route.
func (r request) here(h *host) string {
	if r.iface != "" && h == r.at {
		return r.iface
	}
	return r.way.face(h)
}

// words are the remedy where no setting cures it; nothing where there is none.
func (r request) words() []draft {
	d := draft{only: "no setting of a host that thru knows cures it"}
	c := measure.Commands{}
	switch {
	case r.finding != nil && r.finding.BecauseOf != "": // the cause that brings it along is the one to mend
		return nil
	case r.finding != nil && r.finding.Remedy != nil:
		m := r.finding.Remedy
		c = measure.Commands{EndPoint: m.EndPoint, Platform: m.Platform, Set: m.Commands, Words: m.Advice}
		d.risk = m.Risk
	case r.gate != nil:
		c = measure.Commands{EndPoint: r.gate.RemedyAt, Set: r.gate.Remedy, Words: r.gate.Advice}
		if h := r.host(c.EndPoint); h != nil && len(c.Set) > 0 {
			c.Platform = h.os
		}
		d.risk = r.gate.Risk
	}
	if len(c.Set) == 0 && c.Words == "" {
		return nil
	}
	if c.EndPoint == "" && r.at != nil {
		c.EndPoint = r.at.name
	}
	c.Words, c.Set = line(c.Words), slices.Clone(c.Set)
	d.title = c.Words
	if d.title == "" {
		d.title = "by hand: " + line(strings.Join(c.Set, "; "))
	}
	d.words, d.id = &c, r.place()
	return []draft{d}
}

// place names what a request is about: "policer@a->b", "cpu-quota@b".
func (r request) place() string {
	name := r.cause
	if name == "" && r.gate != nil {
		name = r.gate.ID
	}
	switch {
	case r.at != nil && r.iface != "":
		return name + "@" + r.at.name + ":" + r.iface
	case r.at != nil:
		return name + "@" + r.at.name
	case r.gate != nil && r.gate.From != "":
		return name + "@" + r.gate.From + "->" + r.gate.To
	case r.way != nil:
		return name + "@" + r.way.from.name + "->" + r.way.to.name
	}
	return name
}

// set is a setting of a host.
func (h *host) set(id, iface, value string) measure.Setting {
	return measure.Setting{EndPoint: h.name, Knob: id, Interface: iface, Value: value}
}

// change is a draft of one setting.
func change(h *host, id, iface, value, title string, args ...any) draft {
	return draft{settings: []measure.Setting{h.set(id, iface, value)}, title: fmt.Sprintf(title, args...)}
}

// forWay says for which direction it is.
func (d draft) forWay(w *way) draft {
	d.from, d.to = w.from, w.to
	return d
}

// bring says what to expect, and what that is computed from. A rate of 0 is not known.
func (d draft) bring(bps float64, source, format string, args ...any) draft {
	d.bps, d.source, d.expect = sane(bps), source, fmt.Sprintf(format, args...)
	return d
}

// atLast has it come after all that the gates ask for.
func (d draft) atLast() draft { d.late = true; return d }

// and joins two drafts into one change.
func (d draft) and(o draft, title string, args ...any) draft {
	d.settings, d.title = append(slices.Clone(d.settings), o.settings...), fmt.Sprintf(title, args...)
	return d
}

// name of a draft: "tcp-rmem@b", "tso@a:eth0", "tcp-rmem@b+tcp-wmem@a", "streams=4",
// "coalescing@b:eth0=50".
func (d draft) name() string {
	if len(d.settings) == 0 || d.id != "" {
		return d.id
	}
	var parts []string
	for _, s := range d.settings {
		parts = append(parts, spot(s))
	}
	slices.Sort(parts) // the same whichever end asked for it
	return strings.Join(parts, "+")
}

// spot is the knob of a setting, where it is: "tso@a:eth0".
func spot(s measure.Setting) string {
	if s.Interface != "" && s.Knob != knob.RouteCongestion {
		return s.Knob + "@" + s.EndPoint + ":" + s.Interface
	}
	return s.Knob + "@" + s.EndPoint
}

// wasKept tells whether a change of the same knob was kept.
func (sc *scene) wasKept(s measure.Setting) bool {
	return slices.ContainsFunc(sc.kept, func(id string) bool {
		for part := range strings.SplitSeq(id, "+") {
			if name, _, _ := strings.Cut(part, "="); name == spot(s) {
				return true
			}
		}
		return false
	})
}

// takesBack tells whether a setting would undo what was kept: what was shown to
// help stands against a gate's rule of thumb, and an offload that was switched off
// against every wish for less work.
func (r request) takesBack(s measure.Setting) bool {
	if r.wasKept(s) && (r.gate != nil || isOffload(s.Knob) && s.Value == "on") {
		return true
	}
	return slices.ContainsFunc(knob.Kept(r.named(s.EndPoint).facts), func(c measure.Changed) bool { return knob.TakesBack(c, s) })
}

// changes tells whether a draft differs from what is there.
func (sc *scene) changes(d draft) bool {
	return len(d.settings) == 0 || slices.ContainsFunc(d.settings, func(s measure.Setting) bool {
		now := sc.named(s.EndPoint).state(s.Knob, s.Interface)
		return !now.known || !knob.Same(now.value, s.Value) && !(isOffload(s.Knob) && now.is(s.Value))
	})
}

// isLike tells whether what was kept sets one of the draft's knobs.
func (d draft) isLike(kept string) bool {
	for part := range strings.SplitSeq(kept, "+") {
		name, _, _ := strings.Cut(part, "@")
		if slices.ContainsFunc(d.settings, func(s measure.Setting) bool { return s.Knob == name }) {
			return true
		}
	}
	return false
}

// longestLine bounds a text that can hold names from a foreign host, in characters.
const longestLine = 300

// line makes one line of printable text.
func line(text string) string { return unit.Line(text, longestLine) }
