package window

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// absence is where an option of TCP went missing.
type absence struct {
	where   measure.Where
	how     string
	sure    bool // of the place
	next    string
	at      *diagnose.Spot
	packets []int64
}

// lacking finds where an option is not offered, or is taken out: at the first
// place where it is missing. gone is nil where both ends have it; false where
// the handshake does not tell.
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
				return &absence{where: measure.Where{Place: measure.AtPath}, how: "a device on the way takes it out of the " + p.Name, sure: true,
					at: p.At[i], packets: []int64{o.Packet}}, true
			case p.At[0].At == p.End.Place:
				return &absence{where: p.End.Where(), how: p.End.Name + " does not offer it", sure: true, at: p.At[0], packets: []int64{o.Packet}}, true
			}
			return &absence{where: measure.Where{Place: measure.AtPath}, how: fmt.Sprintf("%s does not offer it, or a device on the way takes it out of the %s", p.End.Name, p.Name),
				next: "a capture at " + p.End.Name + ": whether its " + p.Name + " has it", at: p.At[0], packets: []int64{o.Packet}}, true
		}
	}
	return nil, true
}

// optionGone judges an option of TCP by the handshake: it holds where the option
// is off.
func optionGone(f *diagnose.Flow, of func(*measure.SYN) *bool, what string) (*diagnose.Outcome, measure.Where) {
	gone, ok := lacking(f, of)
	switch {
	case !ok:
		return diagnose.Missing("the options of both ends", "the handshake is not in the capture"), measure.Where{}
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

func packetsScaling(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionGone(f, func(s *measure.SYN) *bool { return s.HasScale }, "TCP window scaling")
	if o.State != diagnose.Holds {
		return o
	}
	o.Text += ": no window is larger than 64 KiB"
	s := f.AnySpot()
	held, known := s.WindowHeld()
	switch {
	case s.ClosedPct() >= closedBar:
		o.Beside() // a larger window would be full of unread data too
	case known && held.Binds:
		o.By(held.Proof)
	case known || s.Data.New <= plainWindow: // too little passed to fill such a window
		o.Beside()
	default:
		o.Confidence = measure.Likely
	}
	if loaded, _, ok := s.RTT(); ok {
		bound := stat.WindowRate(plainWindow, int64(loaded)) * float64(len(s.Connections))
		o.Costs(bound, "without it "+unit.Rate(bound)+" at most", fmt.Sprintf("65535 bytes * 8 / %s", unit.Duration(int64(loaded))))
	}
	return o.Mend(f.SwitchOn("net.ipv4.tcp_window_scaling", where))
}

func packetsSACK(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionGone(f, func(s *measure.SYN) *bool { return s.SACK }, "selective acknowledgements (SACK)")
	if o.State != diagnose.Holds {
		return o
	}
	s := f.AnySpot()
	again, counted := s.AgainPct()
	queue, told := s.Stands()
	switch {
	case !counted && s.Data.Again.N > 0:
		o.Confidence = measure.Likely
	case !counted || again < diagnose.AgainBar || f.LinkIsFull() || told && queue && again < 0.05:
		o.Beside()
	default:
		o.By(diagnose.Above(s.Proof("sent again, of the payload", again, "pct", s.Data.Again.Packets...), diagnose.AgainBar), s.Count("sent again after a timeout", s.Data.Timeout))
		o.Text += fmt.Sprintf(", and %s of the data had to be sent again", unit.Percent(again))
		if loaded, _, ok := s.RTT(); s.Data.Timeout.N == 0 && (!ok || s.Rate() > s.Mathis(loaded, again)/2) {
			o.Confidence = measure.Likely // it is off; that the rate hangs on it is not shown
		}
	}
	return o.Costs(0, "each loss in a window costs a round trip of its own, or a timeout of 200 ms", "RFC 2018").
		Mend(f.SwitchOn("net.ipv4.tcp_sack", where))
}

func packetsTimestamps(f *diagnose.Flow) *diagnose.Outcome {
	o, where := optionGone(f, func(s *measure.SYN) *bool { return s.Timestamps }, "TCP timestamps")
	if o.State != diagnose.Holds {
		return o
	}
	return o.Beside().Costs(0, "the round trip is sampled once a window; above 4 GiB a window old segments pass for new ones", "RFC 7323, sections 4 and 5").
		Mend(f.SwitchOn("net.ipv4.tcp_timestamps", where))
}
