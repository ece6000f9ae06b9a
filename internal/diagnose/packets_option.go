package diagnose

import (
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// passing is a SYN or SYN-ACK as it was seen on its way, in that order.
type passing struct {
	name string
	end  *end // that sent it
	at   []*spot
	as   []*measure.Opening
}

// handshake is the SYN and the SYN-ACK of the flow at every capture; false where
// no capture has both.
func (f *flow) handshake() (syn, synack passing, ok bool) {
	spots := slices.Clone(f.spots)
	if x := f.crossing; x != nil {
		spots = []*spot{x.left, x.right}
	}
	var opener *bool
	for _, s := range spots { // from the sender to the receiver
		for _, c := range s.conns {
			if c.SYN == nil || c.SYNACK == nil || c.FromOpened == nil || opener != nil && *opener != *c.FromOpened {
				continue
			}
			opener = c.FromOpened
			syn.at, syn.as = append(syn.at, s), append(syn.as, c.SYN)
			synack.at, synack.as = append(synack.at, s), append(synack.as, c.SYNACK)
			break
		}
	}
	if opener == nil {
		return syn, synack, false
	}
	syn.name, synack.name = "SYN", "SYN-ACK"
	syn.end, synack.end = f.sender, f.receiver
	back := &synack
	if !*opener {
		syn.end, synack.end = f.receiver, f.sender
		back = &syn
	}
	slices.Reverse(back.at)
	slices.Reverse(back.as)
	return syn, synack, true
}

// absence is where an option of TCP went missing.
type absence struct {
	where   measure.Where
	how     string
	sure    bool // of the place
	next    string
	at      *spot
	packets []int64
}

// lacking finds where an option is not offered, or is taken out: at the first
// place where it is missing. gone is nil where both ends have it; false where
// the handshake does not tell.
func (f *flow) lacking(of func(*measure.SYN) *bool) (gone *absence, ok bool) {
	syn, synack, ok := f.handshake()
	if !ok {
		return nil, false
	}
	for _, p := range []passing{syn, synack} {
		for i, o := range p.as {
			has := of(&o.SYN)
			switch {
			case has == nil:
				return nil, false
			case *has:
				continue
			case i > 0:
				return &absence{where: measure.Where{Place: measure.AtPath}, how: "a device on the way takes it out of the " + p.name, sure: true,
					at: p.at[i], packets: []int64{o.Packet}}, true
			case p.at[0].place == p.end.place:
				return &absence{where: p.end.where(), how: p.end.name + " does not offer it", sure: true, at: p.at[0], packets: []int64{o.Packet}}, true
			}
			return &absence{where: measure.Where{Place: measure.AtPath}, how: fmt.Sprintf("%s does not offer it, or a device on the way takes it out of the %s", p.end.name, p.name),
				next: "a capture at " + p.end.name + ": whether its " + p.name + " has it", at: p.at[0], packets: []int64{o.Packet}}, true
		}
	}
	return nil, true
}

// optionGone judges an option of TCP by the handshake: it holds where the option
// is off.
func (f *flow) optionGone(of func(*measure.SYN) *bool, what string) (*outcome, measure.Where) {
	gone, ok := f.lacking(of)
	switch {
	case !ok:
		return missing("the options of both ends", "the handshake is not in the capture"), measure.Where{}
	case gone == nil:
		return no("both ends use %s", what), measure.Where{}
	}
	o := certain("%s: off (%s)", what, gone.how).at(gone.where).by(gone.at.proof("the option in the handshake", 0, "", gone.packets...))
	if !gone.sure {
		o.confidence = measure.Likely
		o.then(gone.next)
	}
	return o, gone.where
}

func packetsScaling(f *flow) *outcome {
	o, where := f.optionGone(func(s *measure.SYN) *bool { return s.HasScale }, "TCP window scaling")
	if o.state != holds {
		return o
	}
	o.text += ": no window is larger than 64 KiB"
	s := f.anySpot()
	held, known := s.windowHeld()
	switch {
	case s.closedPct() >= closedBar:
		o.beside() // a larger window would be full of unread data too
	case known && held.binds:
		o.by(held.proof)
	case known || s.data.New <= plainWindow: // too little passed to fill such a window
		o.beside()
	default:
		o.confidence = measure.Likely
	}
	if loaded, _, ok := s.rtt(); ok {
		bound := stat.WindowRate(plainWindow, int64(loaded)) * float64(len(s.conns))
		o.costs(bound, "without it "+unit.Rate(bound)+" at most", fmt.Sprintf("65535 bytes * 8 / %s", unit.Duration(int64(loaded))))
	}
	return o.mend(f.switchOn("net.ipv4.tcp_window_scaling", where))
}

func packetsSACK(f *flow) *outcome {
	o, where := f.optionGone(func(s *measure.SYN) *bool { return s.SACK }, "selective acknowledgements (SACK)")
	if o.state != holds {
		return o
	}
	s := f.anySpot()
	again, counted := s.againPct()
	queue, told := s.stands()
	switch {
	case !counted && s.data.Again.N > 0:
		o.confidence = measure.Likely
	case !counted || again < againBar || f.linkIsFull() || told && queue && again < 0.05:
		o.beside()
	default:
		o.by(above(s.proof("sent again, of the payload", again, "pct", s.data.Again.Packets...), againBar), s.count("sent again after a timeout", s.data.Timeout))
		o.text += fmt.Sprintf(", and %s of the data had to be sent again", unit.Percent(again))
		if loaded, _, ok := s.rtt(); s.data.Timeout.N == 0 && (!ok || s.rate() > s.mathis(loaded, again)/2) {
			o.confidence = measure.Likely // it is off; that the rate hangs on it is not shown
		}
	}
	return o.costs(0, "each loss in a window costs a round trip of its own, or a timeout of 200 ms", "RFC 2018").
		mend(f.switchOn("net.ipv4.tcp_sack", where))
}

func packetsTimestamps(f *flow) *outcome {
	o, where := f.optionGone(func(s *measure.SYN) *bool { return s.Timestamps }, "TCP timestamps")
	if o.state != holds {
		return o
	}
	return o.beside().costs(0, "the round trip is sampled once a window; above 4 GiB a window old segments pass for new ones", "RFC 7323, sections 4 and 5").
		mend(f.switchOn("net.ipv4.tcp_timestamps", where))
}

func packetsProxy(f *flow) *outcome {
	if f.crossing != nil {
		return f.proxyCrossed(f.crossing)
	}
	s := f.spot(measure.AtSender, measure.AtPath, "")
	if s == nil {
		return missing("sequence numbers at both ends", "one capture is not enough; a second one at the other end would tell")
	}
	if o := f.proxyByTTL(s); o != nil {
		return o
	}
	return f.proxyByTime(s)
}

// proxyCrossed compares a connection at two places: one that a box ends and opens
// anew has other sequence numbers and options behind it.
func (f *flow) proxyCrossed(x *crossed) *outcome {
	changed := func(what string) (measure.Change, bool) {
		for _, c := range x.conns {
			if i := slices.IndexFunc(c.Changed, func(c measure.Change) bool { return c.What == what }); i >= 0 {
				return c.Changed[i], true
			}
		}
		return measure.Change{}, false
	}
	numbers, other := changed(changedNumbers)
	if len(x.conns) == 0 {
		return missing("a connection that is in both captures", "none is")
	}
	if !other {
		return no("sequence numbers pass unchanged")
	}
	o := likely("the sequence numbers differ at the two places: a box ends TCP and opens it anew, or a firewall replaces them").
		by(measure.Proof{EndPoint: x.left.EndPoint, Counter: "sequence numbers that differ at the places", Value: 1, Packets: numbers.Packets[:min(1, len(numbers.Packets))], Capture: x.left.name()}).
		mend(advise(nil, "find the accelerator, load balancer or firewall that ends TCP, and have it let these ports pass"))
	syn, synack, ok := f.handshake()
	if ok && (differs(syn) || differs(synack)) {
		o.confidence = x.sure()
		o.text = "a box on the way ends TCP and opens it anew: its sequence numbers and options differ at the two places"
	}
	return o
}

// changedNumbers is what a Change calls sequence numbers that differ.
const changedNumbers = "sequence numbers"

// differs tells whether a packet of the handshake is another one at the second
// place: a clamp changes the MSS alone.
func differs(p passing) bool {
	return len(p.as) > 1 && (rewritten(&p.as[0].SYN, &p.as[1].SYN) || rewritten(&p.as[1].SYN, &p.as[0].SYN))
}

// proxyByTTL judges an answer to the SYN that came over another number of
// routers than all that followed.
func (f *flow) proxyByTTL(s *spot) *outcome {
	c := s.main()
	if c.SYNACK == nil || c.FromOpened == nil || !*c.FromOpened || len(c.Acks.TTLs) == 0 || c.SYNACK.TTL == 0 {
		return nil
	}
	if c.Acks.TTLs[0] == c.SYNACK.TTL || len(c.Acks.TTLs) > 2 { // several ways
		return nil
	}
	return possible("the SYN was answered with a TTL of %d, what follows has %d: something else answered it", c.SYNACK.TTL, c.Acks.TTLs[0]).
		by(s.proof("TTL of the SYN-ACK", float64(c.SYNACK.TTL), "", c.SYNACK.Packet)).beside().
		then("a capture at the other end: whether its handshake is the same").
		mend(advise(nil, "find the firewall or load balancer that answers for the other end (a SYN proxy)"))
}

// proxyByTime judges an answer to the SYN that came much sooner than any to data.
func (f *flow) proxyByTime(s *spot) *outcome {
	c := s.main()
	const open = "sequence numbers at both ends"
	if c.SYNACK == nil || c.OpenFarNs == nil || c.RTT == nil || c.RTT.Samples < leastSamples || c.FromOpened == nil || !*c.FromOpened || *c.OpenFarNs <= 0 {
		return captureAt(measure.AtReceiver, open)
	}
	hs, data := float64(*c.OpenFarNs), float64(c.RTT.Min)
	slow := 0.0 // what a full segment takes to leave on a slow link
	if bps := s.rate(); bps > 0 {
		slow = 2 * s.mss() * 8e9 / bps
	}
	if hs > data/2 || data-hs < proxyBar+slow {
		return captureAt(measure.AtReceiver, open)
	}
	return possible("something nearer may answer for the other end: the SYN was answered after %s, data after %s at least", unit.Duration(int64(hs)), unit.Duration(int64(data))).
		by(below(s.proof("from the SYN to its answer", hs, "ns", c.SYNACK.Packet), data/2)).beside().
		then("a capture at the other end: whether its sequence numbers and options are the same").
		mend(advise(nil, "find the accelerator, load balancer or firewall that ends TCP, and have it let these ports pass"))
}
