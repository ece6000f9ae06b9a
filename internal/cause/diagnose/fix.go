package diagnose

import (
	"fmt"

	"thru/internal/cause/knob"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Advise returns a fix in words; with nil it belongs to no host.
func Advise(at *End, text string) *measure.Fix {
	r := &measure.Fix{Advice: text}
	if at != nil {
		r.EndPoint = at.Name
	}
	return r
}

// Machine returns the end's host, to word fixes for it.
func (e *End) Machine() *scene.Host { return scene.HostOf(e.Name, e.Facts) }
func (e *End) Adapter() *scene.Face { return e.Machine().FaceOf(e.FaceName()) }

// FaceName returns the interface by which the end reaches the other; "" if it is not known.
func (e *End) FaceName() string {
	if r := e.Route(); r != nil {
		return r.Interface
	}
	return ""
}

// SpreadInterrupts spreads the packets that the end receives over more CPUs.
func (e *End) SpreadInterrupts() *measure.Fix {
	f := e.Adapter()
	return f.Host.Fix(scene.Interrupts(f))
}

// Word quotes a name for a shell: one that is no plain word is replaced by a placeholder in capitals, which the
// reader fills in.
func Word(name string) string { return knob.Interface("linux", name) }

// RaiseWindow gives a connection of this end the window that the path needs: for the rate of its link, or for
// twice the goodput if that is not known.
func (f *Flow) RaiseWindow(e *End, rttNs float64) *measure.Fix {
	bps, ok := f.Goodput()
	rate, of := 2*bps, "twice the goodput"
	if f.Cell.Ceiling != nil && f.Cell.Ceiling.LinkBps > 0 {
		rate, of, ok = float64(f.Cell.Ceiling.LinkBps), unit.Rate(float64(f.Cell.Ceiling.LinkBps)), true
	}
	window := int64(0)
	if ok && rttNs < 1e12 {
		window = scene.NeededWindow(rate, int64(rttNs), f.Cell.Streams, int64(f.Segment()))
	}
	if window == 0 {
		return Advise(e, "raise the buffers to three times the bandwidth-delay product")
	}
	for _, s := range e.Streams() {
		if s.Window.Usable > window { // never reduce the current setting
			return Advise(e, fmt.Sprintf("%s at a round trip of %s needs a window of %s, and the buffer has room for %s: look for another limit", of, unit.Duration(int64(rttNs)), unit.Size(window), unit.Size(s.Window.Usable)))
		}
	}
	h := e.Machine()
	r := h.Fix(scene.Window(h, window, e.Sends()))
	need := fmt.Sprintf("%s at a round trip of %s needs a window of %s", of, unit.Duration(int64(rttNs)), unit.Size(window))
	if f.Cell.Streams > 1 {
		need += fmt.Sprintf(" for each of %d streams", f.Cell.Streams)
	}
	if beyond := scene.Beyond(window); beyond != "" {
		r.Advice = need + "; " + beyond
	} else if len(r.Commands) > 0 {
		r.Advice = need
	}
	return r
}

// SwitchOn turns a TCP option on where it is off.
func (f *Flow) SwitchOn(option scene.Switch, where measure.Where) *measure.Fix {
	for _, e := range f.Ends() {
		if where.Place == e.Place {
			h := e.Machine()
			return h.Fix(h.Set(option.Knob, "", "1").Or("switch " + option.What + " on"))
		}
	}
	return Advise(nil, "check at both ends whether the option is on, and switch it on where it is off; if both offer it, find the device between them that removes it from the SYN")
}

// UseControl chooses another congestion control at the sender.
func (f *Flow) UseControl(name string) *measure.Fix {
	h := f.Sender.Machine()
	r := h.Set(knob.Congestion, "", name).Or(scene.Command("set the congestion control of new connections to %s", name))
	if h.System == "linux" && len(r.Lines) > 0 {
		r.Risk += "; if the kernel refuses it (in a container), set it in the route: " +
			scene.Command("`ip route replace ... congctl %s`, with the rest of the route from `ip route get`", name)
	}
	return h.Fix(r)
}

// LostOption returns which end did not offer a TCP option, or that the path removed it, by the handshake of the
// path's probe, or else by the hosts' settings. If that is not known, the place is the path.
func (f *Flow) LostOption(of func(*measure.SYN) *bool, option scene.Switch) (measure.Where, string) {
	p, setting := f.Path(), knob.Sysctl(option.Knob)
	if p != nil && p.Handshake != nil {
		hs := p.Handshake
		for _, x := range []struct {
			sent, seen *measure.SYN
			from       string
		}{{hs.SYNSent, hs.SYNSeen, p.From}, {hs.SYNACKSent, hs.SYNACKSeen, p.To}} {
			has := func(s *measure.SYN) bool { return s != nil && of(s) != nil && *of(s) }
			lacks := func(s *measure.SYN) bool { return s != nil && of(s) != nil && !*of(s) }
			switch {
			case has(x.sent) && lacks(x.seen):
				return measure.Where{Place: measure.AtPath}, "a device on the path removes it"
			case lacks(x.sent) && (x.from == p.From || has(hs.SYNSeen)): // an end that is not offered the option does not offer it either
				return f.placeOf(x.from), x.from + " does not offer it"
			}
		}
	}
	for _, e := range f.Ends() {
		if e.Sysctls[setting] == "0" {
			return e.Where(), setting + " is 0 at " + e.Name
		}
	}
	return measure.Where{Place: measure.AtPath}, ""
}

// placeOf returns the end of that name.
func (f *Flow) placeOf(name string) measure.Where {
	for _, e := range f.Ends() {
		if e.Name == name {
			return e.Where()
		}
	}
	return measure.Where{Place: measure.AtPath}
}
