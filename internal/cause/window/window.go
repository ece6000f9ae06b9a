// Package window holds the causes of TCP windows, buffers and options that are too small or missing.
package window

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// mostBuffer is the largest buffer proposed, in bytes.
const mostBuffer = 1 << 30

// raise returns the change that lets a connection of this side have what the path needs in flight. It is never
// less than Linux's own default, nor, if a finding says that the buffer binds, than twice its current size. ok is
// false if it is large enough.
func raise(s advise.Side, w *advise.Direction, binds bool) (d advise.Draft, ok bool) {
	has := s.H.State(s.Knob, "")
	if w.Cell != nil && (s.Part == 1 && w.Cell.Spec.Window.Send > 0 || s.Part > 1 && w.Cell.Spec.Window.Recv > 0) {
		return advise.Draft{}, false // it was set manually: the kernel's maximum does not apply
	}
	want := max(knob.BufferFor(w.Window()), s.Usual)
	if n := has.Number(); binds && n >= want {
		want = 2 * min(n, mostBuffer)
	}
	step := int64(64 << 10)
	if want > 16<<20 {
		step = 1 << 20
	}
	want = min(advise.RoundUp(want, step), mostBuffer)
	if has.Number() >= want {
		return advise.Draft{}, false
	}
	holds := want / s.Part
	d = advise.Change(s.H, s.Knob, "", knob.Sizes(s.Knob, has.Value, want), "%s of up to %s at %s", s.What, unit.Size(holds), s.H.Name).ForDirection(w)
	return expect(s, d, w, holds), true
}

// expect words what the window carries.
func expect(s advise.Side, d advise.Draft, w *advise.Direction, holds int64) advise.Draft {
	carries := w.Carries(holds)
	if carries <= 0 {
		return d
	}
	if w.Ceiling() <= 0 && carries >= anyRate {
		return d.Bring(0, "RFC 6349, section 3.3.1", "no longer a limit: a window of %s is enough for any rate at %s RTT", unit.Size(holds), unit.Duration(w.RTT()))
	}
	text := fmt.Sprintf("up to %s: window %s x 8 / RTT %s", unit.Rate(carries), unit.Size(holds), unit.Duration(w.RTT()))
	if w.Ceiling() > 0 && carries >= w.Ceiling() {
		text = fmt.Sprintf("up to the %s that the link carries: a window of %s is enough at %s RTT", unit.Rate(carries), unit.Size(holds), unit.Duration(w.RTT()))
	}
	if bps, of := w.Rate(); w.Ceiling() <= 0 && bps > 0 && carries > bps { // a window's bound is not a path's rate
		carries, text = bps, fmt.Sprintf("enough for %s, %s: a window of %s at %s RTT", unit.Rate(bps), of, unit.Size(holds), unit.Duration(w.RTT()))
	}
	return d.Bring(carries, "RFC 6349, section 3.3.1", "%s", text)
}

// buffers raises the buffer that binds. If the other end's is too small for the path as well, each alone may show
// no gain: then it proposes the other one, and both together.
func buffers(r advise.Request, own, other advise.Side) []advise.Draft {
	w := r.Direction
	if r.Gate != nil && !w.MayBeLimited() {
		return nil
	}
	var list []advise.Draft
	first, ok := raise(own, w, r.Finding != nil && r.Finding.BecauseOf == "")
	if ok {
		list = append(list, first)
	}
	need := w.Window()
	if held := other.Holds(); need == 0 || held == 0 || held >= need {
		return list
	}
	second, too := raise(other, w, false)
	if too {
		list = append(list, second)
	}
	if ok && too {
		bps := min(first.Bps, second.Bps)
		both := first.And(second, "%s, and %s", first.Title, second.Title)
		text := "both ends' buffers are smaller than the " + unit.Size(need) + " that the path needs"
		if bps > 0 {
			text = "up to " + unit.Rate(bps) + ": " + text
		}
		list = append(list, both.Bring(bps, first.Source, "%s", text))
	}
	return list
}

// switchOn turns an option on at the ends where it is off. Both must offer it, so if both do not it is one change.
// No setting helps against a box on the path that removes it.
func switchOn(r advise.Request, id, what string) []advise.Draft {
	var list []advise.Draft
	for _, h := range advise.Both(r.Direction) {
		s := h.State(id, "")
		if s.Value == "0" || !s.Known && h == r.At {
			list = append(list, advise.Change(h, id, "", "1", "%s on at %s", what, h.Name))
		}
	}
	if len(list) == 0 {
		return nil
	}
	d := list[0]
	for _, o := range list[1:] {
		d = d.And(o, "%s on at both ends", what)
	}
	if id == knob.WindowScaling {
		d = scaled(r, d)
	}
	if r.Finding != nil {
		d = d.ForDirection(r.Direction)
	}
	return []advise.Draft{d}
}

// scaled sets the expected rate to what the buffers let the windows grow to.
func scaled(r advise.Request, d advise.Draft) advise.Draft {
	w := r.Direction
	holds := w.Receiver().Holds()
	if s := w.Sender().Holds(); s > 0 {
		holds = min(holds, s)
	}
	plain, carries := w.Carries(scene.PlainWindow), w.Carries(holds)
	if plain <= 0 || carries <= plain {
		return d
	}
	return d.Bring(carries, "RFC 7323, section 2.2", "up to %s: windows of up to %s instead of 64 KiB, which carry %s at %s RTT",
		unit.Rate(carries), unit.Size(holds), unit.Rate(plain), unit.Duration(w.RTT()))
}

// buffer is one of the two buffers of a host.
type buffer struct {
	most          int64 // bytes that one connection can have in flight with it; 0: not known
	what, of, key string
	sends         bool
}

// holds compares the bytes that one connection can have in flight with what the path needs.
func holds(h *scene.Host, b buffer) *gate.Finding {
	if !h.Known {
		return nil
	}
	if b.most <= 0 {
		return gate.Missing(h, "largest "+b.what, b.key)
	}
	product, why := h.BDP()
	all := float64(b.most) * float64(h.Streams())
	if product == 0 {
		return suffices(h, b, why)
	}
	if product <= all {
		return gate.Pass("%s up to %s (%s); bandwidth-delay product %s", b.what, gate.Size(b.most), b.of, gate.Size(product))
	}
	window := h.NeededWindow()
	together := ""
	if h.Streams() > 1 {
		together = " together"
	}
	return gate.Warn("%s at most %s (%s); bandwidth-delay product %s: %s at %s RTT", b.what, gate.Size(b.most), b.of, gate.Size(product), gate.Rate(h.Rate()), gate.Span(h.RTT())).
		Because("it carries at most %s%s; window needed: %s", gate.Rate(stat.WindowRate(all, h.RTT())), together, gate.Size(window)).
		Do(scene.SetBuffers(h, window, b.sends))
}

// suffices judges a buffer if no rate is known: by the rate that it allows, and by the system's own default.
func suffices(h *scene.Host, b buffer, why string) *gate.Finding {
	carries, text := 0.0, ""
	if h.RTT() > 0 {
		carries = stat.WindowRate(float64(b.most)*float64(h.Streams()), h.RTT())
		text = fmt.Sprintf("it carries %s at %s RTT", gate.Rate(carries), gate.Span(h.RTT()))
	}
	booted := booted(h, b.sends)
	switch {
	case h.RTT() == 0 && h.OnOneMachine():
		return nil // no long path
	case carries >= anyRate:
		return gate.Pass("%s up to %s carries %s at %s RTT", b.what, gate.Size(b.most), gate.Rate(carries), gate.Span(h.RTT()))
	case booted > 0 && b.most < booted/2:
		f := gate.Warn("%s at most %s (%s); the Linux default is %s", b.what, gate.Size(b.most), b.of, gate.Size(booted)).Do(scene.SetBuffer(h, b.sends, h.BootBuffer(b.sends)))
		if text != "" {
			f = f.Because("%s; it was set below the default", text)
		}
		return f
	case text == "":
		return gate.NotChecked("whether a "+b.what+" of "+gate.Size(b.most)+" suffices", why)
	}
	return gate.NotChecked(fmt.Sprintf("whether a %s of %s suffices: %s", b.what, gate.Size(b.most), text), why)
}

// booted returns how many bytes one connection can have in flight with the boot default of that buffer.
func booted(h *scene.Host, sends bool) int64 {
	if sends {
		return h.BootBuffer(sends)
	}
	return h.BootBuffer(sends) / 2
}

// anyRate is a rate that no single connection exceeds, in bit/s.
const anyRate = 100e9

// switched judges a switch of the host. A system without such a switch passes.
func switched(h *scene.Host, s scene.Switch, off func() *gate.Finding) *gate.Finding {
	if h.Known && h.System != "" && len(s.Names[h.System]) == 0 {
		return nil
	}
	on, known := h.IsOn(s)
	switch {
	case !known:
		return gate.Missing(h, s.What, h.Key(s))
	case !on:
		return off()
	}
	return gate.Pass("on: %s", s.What)
}

// option judges one option of a segment as it was sent and as it arrived. An option that was not sent cannot be
// lost: the sending host's gate reports it.
func option(w *scene.Direction, what string, has func(*measure.SYN) *bool, gone func() *gate.Finding) *gate.Finding {
	if w.Sent == nil || w.Seen == nil || has(w.Sent) == nil || has(w.Seen) == nil {
		return gate.MissingOption(w, what)
	}
	switch {
	case !*has(w.Sent):
		return gate.Pass("%s did not offer the option %s", w.From, what)
	case !*has(w.Seen):
		return gone()
	}
	return gate.Pass("the option %s of %s arrives at %s", what, w.From, w.To)
}

// leaveAlone is the fix for a box on the path.
func leaveAlone() scene.Fix {
	return scene.Advise("find the firewall, VPN or WAN accelerator on the path that rewrites TCP, and set it to pass the options unchanged")
}

// optionOff judges a TCP option as the kernel negotiated it: certain if it is off, at the end or on the path where
// it went missing.
func optionOff(f *diagnose.Flow, of func(*measure.TCPInfo) *bool, syn func(*measure.SYN) *bool, option scene.Switch, what, key string) (*diagnose.Outcome, measure.Where) {
	on, known := Option(f, of)
	switch {
	case !known:
		return f.Sender.Lacks("tcp_info." + key), measure.Where{}
	case on:
		return diagnose.No("both ends use %s", what), measure.Where{}
	}
	where, how := f.LostOption(syn, option)
	o := diagnose.Certain("%s: off", what)
	if how != "" {
		o.Text = fmt.Sprintf("%s: off (%s)", what, how)
	}
	return o.At(where).By(f.Sender.Proof("tcp_info."+key, 0, "")), where
}

// absence is where a TCP option went missing.
type absence struct {
	where   measure.Where
	how     string
	sure    bool // of the place
	next    string
	at      *diagnose.CapturePoint
	packets []int64
}

// lacking finds where an option is not offered, or is removed: at the first place where it is missing. gone is nil
// if both ends have it; ok is false if the handshake does not show it.
func lacking(f *diagnose.Flow, of func(*measure.SYN) *bool) (gone *absence, ok bool) {
	syn, synack, ok := f.Handshake()
	if !ok {
		return nil, false
	}
	for _, p := range []diagnose.Passing{syn, synack} {
		for i, o := range p.As {
			has := of(&o.SYN)
			switch {
			case has == nil:
				return nil, false
			case *has:
				continue
			case i > 0:
				return &absence{where: measure.Where{Place: measure.AtPath}, how: "a device on the path removes it from the " + p.Name, sure: true,
					at: p.At[i], packets: []int64{o.Packet}}, true
			case p.At[0].At == p.End.Place:
				return &absence{where: p.End.Where(), how: p.End.Name + " does not offer it", sure: true, at: p.At[0], packets: []int64{o.Packet}}, true
			}
			return &absence{where: measure.Where{Place: measure.AtPath}, how: fmt.Sprintf("%s does not offer it, or a device on the path removes it from the %s", p.End.Name, p.Name),
				next: "a capture at " + p.End.Name + ", to see whether its " + p.Name + " has it", at: p.At[0], packets: []int64{o.Packet}}, true
		}
	}
	return nil, true
}

// optionGone judges a TCP option by the handshake: it holds if the option is off.
func optionGone(f *diagnose.Flow, of func(*measure.SYN) *bool, what string) (*diagnose.Outcome, measure.Where) {
	gone, ok := lacking(f, of)
	switch {
	case !ok:
		return diagnose.NoHandshake("the options of both ends"), measure.Where{}
	case gone == nil:
		return diagnose.No("both ends use %s", what), measure.Where{}
	}
	o := diagnose.Certain("%s: off (%s)", what, gone.how).At(gone.where).By(gone.at.Proof("the option in the handshake", 0, "", gone.packets...))
	if !gone.sure {
		o.Confidence = measure.Likely
		o.Then(gone.next)
	}
	return o, gone.where
}

// closedBar is the percentage of the time above which the receiver's closed window binds.
const closedBar = 10

// fallen returns the percentage of the time in which the main connection's window was below half of its earlier
// size. A kernel does not withdraw offered window space: its window shrinks only when data waits to be read.
func fallen(s *diagnose.CapturePoint) float64 {
	c := s.Main()
	if c.Timeline == nil || c.Unscaled {
		return 0
	}
	most, below, all := int64(0), 0, 0
	for _, w := range c.Timeline.Window {
		switch {
		case w < 0:
			continue
		case 2*w < most:
			below++
		}
		all++
		most = max(most, w)
	}
	return stat.Pct(float64(below), float64(all))
}

// fallenBar is the percentage from which the reader is what fills the window.
const fallenBar = 10

// Evenly finds a sender with a constant amount of data in flight although no window is used up, nothing is lost
// and no queue fills; why is the outcome otherwise.
func Evenly(f *diagnose.Flow) (s *diagnose.CapturePoint, why *diagnose.Outcome) {
	s = f.CapturePoint(measure.AtSender)
	if s == nil {
		return nil, diagnose.CaptureAt(measure.AtSender, "the data in flight")
	}
	c := s.Main()
	h, ok := s.WindowLimited()
	again, counted := s.AgainPct()
	queue, _ := s.Stands()
	idle, known := s.IdlePct()
	switch {
	case !ok || !counted || c.Flight == nil || c.Flight.Mean <= 0 || !known:
		return nil, diagnose.Missing("the share of the window in flight", "the captured packets do not show it")
	case !h.Clear:
		return nil, diagnose.No("the receiver's window was full %s of the time", unit.Percent(h.Pct))
	case again >= diagnose.AgainBar:
		return nil, diagnose.No("%s of the data were retransmitted", unit.Percent(again))
	case queue:
		return nil, diagnose.No("a queue fills: the round trip grows under load")
	case idle > diagnose.IdleBar/2:
		return nil, diagnose.No("the sender had nothing to send %s of the time", unit.Percent(idle))
	}
	return s, nil
}
