package diagnose

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// senderRules are the causes that keep a sender from offering more.
func senderRules() []Rule {
	return []Rule{
		{
			Cause: "app-limited", TCP: true, UDP: true, Title: "the sender does not offer more", judge: appLimited, packets: packetsAppLimited,
			Seen:  "small messages keep the sender's CPU in system calls, or nothing waits in its socket while neither window is full; in captures: nothing is under way and the window is open, half of the time or more",
			Apart: "messages of 1 MiB", Mends: "send in blocks of 64 KiB or more", Effect: "0.74 to 13.8 Gb/s by larger messages",
			Source: "methods.md, Traps; checklist C-19", Tests: []string{largeMessages, captured}, Brings: []string{"sender-cpu", "slow-reader"},
		},
		{
			Cause: "paced", TCP: true, Title: "the sender paces itself", judge: paced, packets: packetsPaced,
			Seen:  "the congestion control paces, the pacing rate is the goodput, the congestion window is not full, nothing is lost, the CPUs are free, the link is not full; up to 2.5 Gb/s within a site only where a CPU is full or the pacing would let more go; in a capture at the sender: segments leave one by one, though nothing holds them (possible)",
			Apart: "the same under cubic or reno", Mends: "cubic on LAN and loopback, or bbr with the qdisc fq", Effect: "15 to 43 Gb/s on loopback",
			Source: "tcp_info.tcpi_pacing_rate; net/ipv4/tcp_bbr.c", Tests: []string{otherControl}, Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
	}
}

// smallMessage is what a call should move at least (C-19: at least 8 KB blocks, best 64 KB).
const smallMessage = 16 << 10

// usualMessage is from where on larger ones are known to bring nothing (C-19).
const usualMessage = 64 << 10

func appLimited(f *flow) *outcome {
	if f.isUDP() {
		return askedDatagrams(f)
	}
	if f.cell.Spec.Rate > 0 {
		return f.asIsAsked()
	}
	if large := f.experiment(largeMessages); large != nil && f.smallBlocks() {
		return f.tooSmall(large)
	}
	t, known := f.sender.threads()
	if f.message() > 0 && f.message() < smallMessage && known && t.run+t.wait > threadBar {
		return likely("messages of %s keep the sender in system calls", unit.Size(f.message())).
			at(measure.Where{Place: measure.AtTool, EndPoint: f.sender.name}).
			by(below(f.sender.proof("bytes a call", float64(f.message()), "bytes"), smallMessage), above(f.sender.proof("sender's thread on a CPU or waiting for one", t.run+t.wait, "pct"), threadBar)).
			mend(advise(f.sender, "send in blocks of 64 KiB or more (-l)"))
	}
	return f.starved()
}

// tooSmall judges messages by what larger ones carry, at the end whose are the smaller.
func (f *flow) tooSmall(large *measure.Cell) *outcome {
	g := f.against(large)
	if g.Times < gainBar {
		return no("messages of 1 MiB carry %s, no more", unit.Rate(rateOf(large)))
	}
	end, bytes, do := f.sender, f.message(), "send"
	if recv := f.cell.Length.Recv; recv > 0 && recv < bytes {
		end, bytes, do = f.receiver, recv, "read"
	}
	return likely("the messages of %s are too small: with 1 MiB %s pass", unit.Size(bytes), unit.Rate(rateOf(large))).
		at(measure.Where{Place: measure.AtTool, EndPoint: end.name}).by(end.proof("bytes a call", float64(bytes), "bytes")).
		gains(f.receiver.proof("goodput of messages of 1 MiB over this", 0, ""), g).
		costs(0, "with messages of 1 MiB "+unit.Rate(rateOf(large))+" pass", "the same traffic with -l 1M").mend(advise(end, do+" in blocks of 64 KiB or more (-l)"))
}

// smallBlocks tells whether either end moves less a call than is known to be enough.
func (f *flow) smallBlocks() bool {
	return f.message() < usualMessage || isSmall(f.cell.Length.Recv)
}

// isSmall tells of a length that was asked for, and that larger ones may beat.
func isSmall(length int64) bool { return length > 0 && length < usualMessage }

// starved judges a sender that has nothing to send by the whole of its
// counters: the app_limited bit alone misleads (methods.md, Traps).
func (f *flow) starved() *outcome {
	idle, ok := f.sender.idlePct()
	if !ok {
		return f.sender.lacks("how often it had nothing to send")
	}
	t, known := f.sender.threads()
	again, _ := f.againPct()
	rwnd, _, _ := f.windowHeld()
	switch {
	case idle < 50:
		return no("data waited in the sender's socket, or a window was full, %s of the time", unit.Percent(100-idle))
	case known && t.blocked > blockedBar:
		return no("the sender was blocked in send(): it had more")
	case rwnd > rwndBar || again > 0.1:
		return no("the sender was held up by the receiver's window or by loss")
	case f.sender.isFull():
		return no("the sender's CPU is full: its thread ran or waited to run %s of the time", unit.Percent(t.run+t.wait))
	case f.receiver.isFull():
		return no("the receiver's CPU is full: it takes no more")
	}
	return likely("the sender had nothing to send %s of the time", unit.Percent(idle)).at(f.sender.where()).
		by(above(f.sender.proof("nothing waits and no window is full", idle, "pct"), 50)).
		mend(advise(f.sender, "see what the program at the sender waits for"))
}

// asIsAsked is the finding of a flow that carries the rate it was asked for.
func (f *flow) asIsAsked() *outcome {
	bps, _ := f.goodput()
	rate := float64(f.cell.Spec.Rate)
	o := certain("it is the rate that was asked for (-b %s)", unit.Rate(rate)).well().at(measure.Where{Place: measure.AtTool, EndPoint: f.sender.name}).
		by(f.sender.proof("rate asked for", rate, "bps"))
	again, _ := f.againPct()
	switch {
	case bps > 0.97*rate:
		return o
	case bps > 0.93*rate && again < againBar && !f.hasQueue():
		o.confidence, o.text = measure.Likely, fmt.Sprintf("it is nearly the rate that was asked for (-b %s), and nothing on the path is full", unit.Rate(rate))
		return o
	}
	return no("the rate that was asked for was not reached")
}

// idlePct is the share of the readings in which the sender had nothing to send
// while both windows had room.
func (e *end) idlePct() (float64, bool) {
	var all []float64
	for _, s := range e.streams() {
		if s.Course != nil && s.Course.Idle != nil {
			all = append(all, *s.Course.Idle)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return mean(all), true
}

// message is how many bytes the sender hands to one call.
func (f *flow) message() int64 {
	for _, s := range f.sender.streams() {
		if s.Length > 0 {
			return s.Length
		}
	}
	return f.cell.Length.Send
}

// paces tells the congestion controls whose segments leave at a rate of their own.
func paces(control string) bool { return control == "bbr" || control == "bbr2" || control == "bbr3" }

func paced(f *flow) *outcome {
	if bound := f.cell.Spec.MaxRate; bound > 0 {
		return f.boundBy(bound)
	}
	if f.cell.Spec.Rate > 0 { // app-limited says it
		return nil
	}
	used := f.congestion()
	if used == "" {
		return f.sender.lacks("the congestion control")
	}
	if !paces(used) {
		return no("%s does not pace", used)
	}
	if other := f.experiment(otherControl); other != nil && !paces(controlOf(other)) { // a route may name a control that overrides the socket's
		g := f.against(other)
		if g.Times < gainBar {
			return no("%s carries %s, no more", other.Spec.Congestion, unit.Rate(rateOf(other)))
		}
		return likely("%s paces itself: %s carries %s", used, other.Spec.Congestion, unit.Rate(rateOf(other))).at(f.sender.where()).
			gains(f.receiver.proof("goodput under "+other.Spec.Congestion+" over this", 0, ""), g).
			costs(0, other.Spec.Congestion+" carries "+unit.Rate(rateOf(other)), "the same traffic with -C "+other.Spec.Congestion).
			by(f.pacingProofs()...).mend(f.useControl(other.Spec.Congestion))
	}
	again, _ := f.againPct()
	loaded, base, known := f.rtt()
	rate, ok := f.pacing()
	all := float64(len(f.sender.streams())) * rate
	bps, _ := f.goodput()
	more := all > 1.6*bps
	switch {
	case !ok || !known:
		return f.sender.lacks("tcp_info.pacing_rate_bytes_per_s")
	case f.linkIsFull():
		return no("%s paces, and the link is full all the same", used)
	case !more && base < nearNs && bps <= easyRate && !f.sender.isFull() && !f.receiver.isFull():
		return no("%s paces: at %s no CPU is full that its small bursts would cost", used, unit.Rate(bps))
	case again > bbrBar:
		return no("%s of the segments had to be sent again: they are lost, not paced", unit.Percent(again))
	case more && base > nearNs:
		return no("%s would let %s go", used, unit.Rate(all))
	case f.isShaped(more):
		return no("%s would let %s go, and a shaper or a queue lets no more pass", used, unit.Rate(all))
	case base > nearNs && (again > 1 || loaded > 3*base && loaded > base+2e6): // near hosts lose by bbr's own bursts
		return no("the path is full: its queue is, or it loses")
	}
	o := possible("%s paces the sender at %s a stream", used, unit.Rate(rate))
	if base < nearNs {
		o.confidence = measure.Likely
		if more {
			o.text = fmt.Sprintf("%s paces the sender: to a near host its small bursts cost more than they save", used)
		}
	}
	return o.at(f.sender.where()).by(f.pacingProofs()...).mend(f.useControl("cubic"))
}

// nearNs is a round trip in ns, as on a LAN or within a host, under which pacing
// costs more than it saves: small bursts take more of the CPUs too.
const nearNs = 1e6

// easyRate is up to where a CPU makes small bursts besides, in bit/s.
const easyRate = 2.5e9

// mayBePaced tells that a control that paces sends to a near host, and no other
// was tried: then a full CPU may be what the pacing costs.
func (f *flow) mayBePaced() bool {
	base, ok := f.baseRTT()
	other := f.experiment(otherControl)
	return paces(f.congestion()) && ok && base < nearNs && (other == nil || paces(controlOf(other))) && f.cell.Spec.Rate == 0
}

// controlOf is the congestion control that a cell's sender used: what its
// kernel says, else what was asked for.
func controlOf(c *measure.Cell) string {
	for _, r := range c.Runs {
		for _, f := range r.Flows {
			if f.Sender != nil && len(f.Sender.Streams) > 0 && f.Sender.Streams[0].Congestion != "" {
				return f.Sender.Streams[0].Congestion
			}
		}
	}
	return c.Spec.Congestion
}

func (f *flow) pacingProofs() []measure.Proof {
	var all []measure.Proof
	if rate, ok := f.pacing(); ok {
		all = append(all, f.sender.proof("tcp_info.pacing_rate, mean of a stream", rate, "bps"))
	}
	if flight, ok := f.inFlight(); ok {
		if cwnd, ok := f.cwnd(); ok {
			all = append(all, below(f.sender.proof("in flight, mean", flight, "bytes"), cwnd))
		}
	}
	return all
}

// boundBy is the finding of a flow that an end point's operator bounds.
func (f *flow) boundBy(bound int64) *outcome {
	bps, _ := f.goodput()
	if bps < 0.9*float64(bound) {
		return no("an end point allows %s, which was not reached", unit.Rate(float64(bound)))
	}
	return certain("an end point allows no more than %s (thru serve --max-rate)", unit.Rate(float64(bound))).
		at(measure.Where{Place: measure.AtTool}).by(f.sender.proof("rate allowed", float64(bound), "bps")).
		mend(advise(f.receiver, "serve with a higher --max-rate"))
}
