package diagnose

import (
	"slices"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Passing is a SYN or SYN-ACK as seen at several places along its path, in that order.
type Passing struct {
	Name string
	End  *End // that sent it
	At   []*CapturePoint
	As   []*measure.Opening
}

// Handshake returns the SYN and the SYN-ACK of the flow at every capture; false if no capture has both.
func (f *Flow) Handshake() (syn, synack Passing, ok bool) {
	capturePoints := slices.Clone(f.CapturePoints)
	if x := f.Crossing; x != nil {
		capturePoints = []*CapturePoint{x.Left, x.Right}
	}
	var opener *bool
	for _, s := range capturePoints { // from the sender to the receiver
		for _, c := range s.Connections {
			if c.SYN == nil || c.SYNACK == nil || c.FromOpened == nil || opener != nil && *opener != *c.FromOpened {
				continue
			}
			opener = c.FromOpened
			syn.At, syn.As = append(syn.At, s), append(syn.As, c.SYN)
			synack.At, synack.As = append(synack.At, s), append(synack.As, c.SYNACK)
			break
		}
	}
	if opener == nil {
		return syn, synack, false
	}
	syn.Name, synack.Name = "SYN", "SYN-ACK"
	syn.End, synack.End = f.Sender, f.Receiver
	back := &synack
	if !*opener {
		syn.End, synack.End = f.Receiver, f.Sender
		back = &syn
	}
	slices.Reverse(back.At)
	slices.Reverse(back.As)
	return syn, synack, true
}

// PacketsProxy judges by captures whether a proxy terminates the connection.
func PacketsProxy(f *Flow) *Outcome {
	if f.Crossing != nil {
		return f.proxyCrossed(f.Crossing)
	}
	s := f.CapturePoint(measure.AtSender, measure.AtPath, "")
	if s == nil {
		return SecondCapture("sequence numbers at both ends", "one capture is not enough")
	}
	if o := f.proxyByTTL(s); o != nil {
		return o
	}
	return f.proxyByTime(s)
}

// proxyCrossed compares a connection at two places: behind a box that terminates and reopens it, sequence numbers
// and options differ.
func (f *Flow) proxyCrossed(x *Crossed) *Outcome {
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
		return Missing("a connection that is in both captures", "there is none")
	}
	if !other {
		return No("sequence numbers pass unchanged")
	}
	o := Likely("the sequence numbers differ between the two capture points: a proxy terminates TCP, or a firewall rewrites them").
		By(measure.Proof{EndPoint: x.Left.EndPoint, Counter: "sequence numbers that differ between the capture points", Value: 1, Packets: numbers.Packets[:min(1, len(numbers.Packets))], Capture: x.Left.name()}).
		AddFix(Advise(nil, "find the accelerator, load balancer or firewall that terminates TCP, and let these ports bypass it"))
	syn, synack, ok := f.Handshake()
	if ok && (differs(syn) || differs(synack)) {
		o.Confidence = x.Sure()
		o.Text = "a proxy on the path terminates TCP: sequence numbers and options differ between the two capture points"
	}
	return o
}

// changedNumbers is what a Change calls sequence numbers that differ.
const changedNumbers = "sequence numbers"

// differs reports whether a handshake packet differs at the second place: a clamp changes only the MSS.
func differs(p Passing) bool {
	return len(p.As) > 1 && (Rewritten(&p.As[0].SYN, &p.As[1].SYN) || Rewritten(&p.As[1].SYN, &p.As[0].SYN))
}

// proxyByTTL judges a SYN-ACK that crossed another number of routers than all later packets.
func (f *Flow) proxyByTTL(s *CapturePoint) *Outcome {
	c := s.Main()
	if c.SYNACK == nil || c.FromOpened == nil || !*c.FromOpened || len(c.Acks.TTLs) == 0 || c.SYNACK.TTL == 0 {
		return nil
	}
	if c.Acks.TTLs[0] == c.SYNACK.TTL || len(c.Acks.TTLs) > 2 { // several paths
		return nil
	}
	return Possible("the answer to the SYN has a TTL of %d, later packets have %d: another device answered the SYN", c.SYNACK.TTL, c.Acks.TTLs[0]).
		By(s.Proof("TTL of the SYN-ACK", float64(c.SYNACK.TTL), "", c.SYNACK.Packet)).MarkNotBinding().
		Then("a capture at the other end, to see whether its handshake is the same").
		AddFix(Advise(nil, "find the firewall or load balancer that answers for the other end (a SYN proxy)"))
}

// proxyByTime judges a SYN-ACK that came much sooner than any acknowledgement of data.
func (f *Flow) proxyByTime(s *CapturePoint) *Outcome {
	c := s.Main()
	const open = "sequence numbers at both ends"
	if c.SYNACK == nil || c.OpenFarNs == nil || c.RTT == nil || c.RTT.Samples < leastSamples || c.FromOpened == nil || !*c.FromOpened || *c.OpenFarNs <= 0 {
		return CaptureAt(measure.AtReceiver, open)
	}
	hs, data := float64(*c.OpenFarNs), float64(c.RTT.Min)
	slow := 0.0 // time that a full segment takes to leave on a slow link
	if bps := s.Rate(); bps > 0 {
		slow = 2 * s.MSS() * 8e9 / bps
	}
	if hs > data/2 || data-hs < ProxyBar+slow {
		return CaptureAt(measure.AtReceiver, open)
	}
	return Possible("a nearer device may answer for the other end: the answer to the SYN took %s, that to data at least %s", unit.Duration(int64(hs)), unit.Duration(int64(data))).
		By(UnderBar(s.Proof("time from the SYN to its answer", hs, "ns", c.SYNACK.Packet), data/2)).MarkNotBinding().
		Then("a capture at the other end, to see whether its sequence numbers and options are the same").
		AddFix(Advise(nil, "find the accelerator, load balancer or firewall that terminates TCP, and let these ports bypass it"))
}
