package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// proposal completes a draft: current values, reason, risk, whether thru makes the change, and the commands of the
// manual step.
func (sc *advice) proposal(r Request, d Draft) measure.Proposal {
	p := measure.Proposal{ID: line(d.Name()), Title: line(d.Title), Settings: knob.Ordered(d.Settings), Test: d.Test, Why: line(r.why()), Expect: line(d.expect), Source: d.Source, OnlySaid: line(d.only)}
	if d.from != nil && d.to != nil {
		p.From, p.To = d.from.Name, d.to.Name
	}
	if r.Finding != nil {
		p.Cause = r.Cause
	} else {
		p.Gate = r.Gate.ID
	}
	if d.Bps > 0 {
		p.ExpectBps = new(d.Bps)
	}
	risks := []string{d.Risk}
	for _, s := range p.Settings {
		now := sc.Named(s.EndPoint).State(s.Knob, s.Interface)
		if now.Known {
			b := s
			b.Value = now.Value
			p.Before = append(p.Before, b)
		}
		k, _ := knob.Find(s.Knob)
		p.Cuts = p.Cuts || k.Cuts
		risks = append(risks, k.Risk)
		if p.OnlySaid == "" {
			p.OnlySaid = line(sc.refused(s))
		}
		expectOf(&p, k)
	}
	p.Risk = line(joined(risks))
	p.Commands = sc.commands(d)
	if p.OnlySaid == "" && sc.full() {
		p.OnlySaid = "the link is full in every measured direction: no change can be shown to help"
	}
	return p
}

// expectOf uses the known effect of a knob if nothing was computed.
func expectOf(p *measure.Proposal, k knob.Knob) {
	if p.Expect == "" {
		p.Expect, p.Source = k.Effect, k.Source
	}
}

// joined joins texts, each once.
func joined(texts []string) string {
	return fault.Joined(unit.Unique(texts)...)
}

// why returns the reason with its figures: what was measured, and what was found.
func (r Request) why() string {
	if r.Finding == nil {
		return fmt.Sprintf("%s: %s", r.Gate.Fact, r.Gate.Why)
	}
	text := r.Finding.Summary
	if r.Direction == nil || r.Direction.Cell == nil {
		return text
	}
	route := r.Direction.From.Name + " -> " + r.Direction.To.Name
	if r.Direction.Local() {
		route = "within this host"
	}
	if bps := r.Direction.Goodput(); bps > 0 {
		route = unit.Rate(bps) + " " + route
	}
	if e := r.Finding.Effect; e != nil && e.Text != "" {
		text += " (" + e.Text + ")"
	}
	return route + ": " + text
}

// refused returns why thru does not make a setting itself; "" if it does, or was not asked.
func (sc *advice) refused(s measure.Setting) string {
	h := sc.Named(s.EndPoint)
	if why := refuses(h); why != "" {
		return why
	}
	now := h.State(s.Knob, s.Interface)
	switch {
	case now.Refused != "":
		return now.Refused
	case slices.Contains([]string{knob.Congestion, knob.RouteCongestion, knob.Governor}, s.Knob) && !now.Offers(s.Value):
		return fmt.Sprintf("%s can be %s at %s", s.Knob, strings.Join(strings.Fields(now.Possible), " or "), h.Name)
	case !now.Known && s.Knob == knob.RouteCongestion:
		return "the route that sets the congestion control is not known"
	}
	return ""
}

// refuses returns why thru does not change settings at this host at all; "" if it does, or was not asked.
func refuses(h *scene.Host) string {
	switch {
	case h.Point.Speaks != "":
		return h.Name + " has no thru agent: it speaks " + h.Point.Speaks
	case !h.IsLinux():
		return fmt.Sprintf("thru changes settings on Linux only, and %s runs %s", h.Name, h.System)
	case h.Point.Lost != "":
		return h.Name + " is no longer reachable: " + h.Point.Lost
	case h.Point.NoTune != "":
		return h.Point.NoTune
	}
	return ""
}

// commands returns the manual steps at each host, in the order of the knobs.
func (sc *advice) commands(d Draft) []measure.Commands {
	if d.words != nil {
		return []measure.Commands{*d.words}
	}
	var list []measure.Commands
	for _, name := range ends(knob.Ordered(d.Settings)) {
		h := sc.Named(name)
		c := measure.Commands{EndPoint: name, Platform: h.System}
		c.Platform = cmp.Or(c.Platform, "linux")
		own := slices.DeleteFunc(slices.Clone(d.Settings), func(s measure.Setting) bool { return s.EndPoint != name })
		var words []string
		for _, s := range knob.Ordered(own) {
			w := knob.By(c.Platform, h.Facts, s, h.Value(s.Knob, s.Interface))
			c.Set, c.Verify = append(c.Set, w.Set...), append(c.Verify, w.Verify...)
			c.Undo = append(slices.Clone(w.Undo), c.Undo...)
			words = append(words, w.Words)
		}
		c.Words = line(joined(words))
		list = append(list, c)
	}
	return list
}

// ends returns the end points of the settings, each once, in their order.
func ends(settings []measure.Setting) (names []string) {
	for _, s := range settings {
		if !slices.Contains(names, s.EndPoint) {
			names = append(names, s.EndPoint)
		}
	}
	return names
}
