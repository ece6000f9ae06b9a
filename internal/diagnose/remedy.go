package diagnose

import (
	"strings"

	"thru/internal/measure"
)

// advise is a remedy in words; at nil it belongs to no host.
func advise(at *end, text string) *measure.Remedy {
	r := &measure.Remedy{Advice: text}
	if at != nil {
		r.EndPoint = at.name
	}
	return r
}

// word is a name as a shell takes it: one that is no plain word is replaced by
// a word in capitals, which the reader has to fill in.
func word(name string) string {
	plain := name != "" && len(name) <= 64 && name[0] != '-' && !strings.ContainsFunc(name, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune("._:@-", c)
	})
	if plain {
		return name
	}
	return "INTERFACE"
}

// raiseWindow lets a connection of this end have the window that the path needs.
func (f *flow) raiseWindow(e *end, rttNs float64) *measure.Remedy {
	return advise(e, "raise the buffers to twice the bandwidth-delay product")
}

// switchOn turns an option of TCP on where it is off.
func (f *flow) switchOn(setting string, where measure.Where) *measure.Remedy {
	if where.Place == measure.AtPath {
		return advise(nil, "find the device that takes the option out of the SYN, and let it pass")
	}
	return &measure.Remedy{EndPoint: where.EndPoint, Advice: "switch it on"}
}

// useControl chooses another congestion control at the sender.
func (f *flow) useControl(name string) *measure.Remedy { return advise(f.sender, "use "+name) }

// lostOption tells which end did not offer an option of TCP, or that it was
// taken out on the way, by the handshake of the path's probe, else by the
// setting of the hosts. The place is the path where nobody knows.
func (f *flow) lostOption(of func(*measure.SYN) *bool, setting string) (measure.Where, string) {
	p := f.path()
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
				return measure.Where{Place: measure.AtPath}, "a device on the way takes it out"
			case lacks(x.sent) && x.from == p.From:
				return f.placeOf(x.from), x.from + " does not offer it"
			}
		}
	}
	for _, e := range f.ends() {
		if e.facts != nil && e.facts.Sysctls[setting] == "0" {
			return e.where(), setting + " is 0 at " + e.name
		}
	}
	return measure.Where{Place: measure.AtPath}, ""
}

// placeOf is the end of that name.
func (f *flow) placeOf(name string) measure.Where {
	for _, e := range f.ends() {
		if e.name == name {
			return e.where()
		}
	}
	return measure.Where{Place: measure.AtPath}
}
