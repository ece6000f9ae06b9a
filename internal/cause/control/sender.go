// Package control holds the causes of the sender itself: what the program offers, and
// what its congestion control paces.
package control

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/loss"
	"thru/internal/cause/queue"
	"thru/internal/cause/window"
	"thru/internal/measure"
	"thru/internal/unit"
)

// SenderCauses are the causes that keep a sender from offering more.
func SenderCauses() []diagnose.Rule {
	return []diagnose.Rule{
		{
			Cause: "app-limited", TCP: true, UDP: true, Title: "the sender does not offer more", Judge: appLimited, Packets: window.PacketsAppLimited,
			Seen:  "small messages keep the sender's CPU in system calls, or nothing waits in its socket while neither window is full; in captures: nothing is under way and the window is open, half of the time or more",
			Apart: "messages of 1 MiB", Mends: "send in blocks of 64 KiB or more", Effect: "0.74 to 13.8 Gb/s by larger messages",
			Source: "methods.md, Traps; checklist C-19", Tests: []string{diagnose.LargeMessages, diagnose.Captured}, Brings: []string{"sender-cpu", "slow-reader"},
		},
		{
			Cause: "paced", TCP: true, Title: "the sender paces itself", Judge: paced, Packets: window.PacketsPaced,
			Seen:  "the congestion control paces, the pacing rate is the goodput, the congestion window is not full, nothing is lost, the CPUs are free, the link is not full; up to 2.5 Gb/s within a site only where a CPU is full; in a capture at the sender: segments leave one by one, though nothing holds them (possible)",
			Apart: "the same under cubic or reno", Mends: "cubic on LAN and loopback, or bbr with the qdisc fq", Effect: "15 to 43 Gb/s on loopback",
			Source: "tcp_info.tcpi_pacing_rate; net/ipv4/tcp_bbr.c", Tests: []string{diagnose.OtherControl}, Brings: []string{"sender-cpu", "receiver-cpu", "single-flow"},
		},
	}
}

// smallMessage is what a call should move at least (C-19: at least 8 KB blocks, best 64 KB).
const smallMessage = 16 << 10

func appLimited(f *diagnose.Flow) *diagnose.Outcome {
	if f.IsUDP() {
		return loss.AskedDatagrams(f)
	}
	if f.Cell.Spec.Rate > 0 {
		return f.AsIsAsked()
	}
	if large := f.Experiment(diagnose.LargeMessages); large != nil && smallBlocks(f) {
		return tooSmall(f, large)
	}
	t, known := f.Sender.Threads()
	if message(f) > 0 && message(f) < smallMessage && known && t.Run+t.Wait > diagnose.ThreadBar {
		return diagnose.Likely("messages of %s keep the sender in system calls", unit.Size(message(f))).
			At(measure.Where{Place: measure.AtTool, EndPoint: f.Sender.Name}).
			By(diagnose.Below(f.Sender.Proof("bytes a call", float64(message(f)), "bytes"), smallMessage), diagnose.Above(f.Sender.Proof("sender's thread on a CPU or waiting for one", t.Run+t.Wait, "pct"), diagnose.ThreadBar)).
			Mend(diagnose.Advise(f.Sender, "send in blocks of 64 KiB or more (-l)"))
	}
	return starved(f)
}

// tooSmall judges messages by what larger ones carry, at the end whose are the smaller.
func tooSmall(f *diagnose.Flow, large *measure.Cell) *diagnose.Outcome {
	g := f.Against(large)
	if g.Times < diagnose.GainBar {
		return diagnose.No("messages of 1 MiB carry %s, no more", unit.Rate(diagnose.RateOf(large)))
	}
	end, bytes, do := f.Sender, message(f), "send"
	if recv := f.Cell.Length.Recv; recv > 0 && recv < bytes {
		end, bytes, do = f.Receiver, recv, "read"
	}
	return diagnose.Likely("the messages of %s are too small: with 1 MiB %s pass", unit.Size(bytes), unit.Rate(diagnose.RateOf(large))).
		At(measure.Where{Place: measure.AtTool, EndPoint: end.Name}).By(end.Proof("bytes a call", float64(bytes), "bytes")).
		Gains(f.Receiver.Proof("goodput of messages of 1 MiB over this", 0, ""), g).
		Costs(0, "with messages of 1 MiB "+unit.Rate(diagnose.RateOf(large))+" pass", "the same traffic with -l 1M").Mend(diagnose.Advise(end, do+" in blocks of 64 KiB or more (-l)"))
}

// smallBlocks tells whether either end moves less a call than is known to be enough.
func smallBlocks(f *diagnose.Flow) bool {
	return message(f) < diagnose.UsualMessage || diagnose.IsSmall(f.Cell.Length.Recv)
}

// starved judges a sender that has nothing to send by the whole of its
// counters: the app_limited bit alone misleads (methods.md, Traps).
func starved(f *diagnose.Flow) *diagnose.Outcome {
	idle, ok := IdlePct(f.Sender)
	if !ok {
		return f.Sender.Lacks("how often it had nothing to send")
	}
	t, known := f.Sender.Threads()
	again, _ := f.AgainPct()
	rwnd, _, _ := f.WindowHeld()
	switch {
	case idle < 50:
		return diagnose.No("data waited in the sender's socket, or a window was full, %s of the time", unit.Percent(100-idle))
	case known && t.Blocked > diagnose.BlockedBar:
		return diagnose.No("the sender was blocked in send(): it had more")
	case rwnd > diagnose.RwndBar || again > 0.1:
		return diagnose.No("the sender was held up by the receiver's window or by loss")
	case f.Sender.IsFull():
		return diagnose.No("the sender's CPU is full: its thread ran or waited to run %s of the time", unit.Percent(t.Run+t.Wait))
	case f.Receiver.IsFull():
		return diagnose.No("the receiver's CPU is full: it takes no more")
	}
	return diagnose.Likely("the sender had nothing to send %s of the time", unit.Percent(idle)).At(f.Sender.Where()).
		By(diagnose.Above(f.Sender.Proof("nothing waits and no window is full", idle, "pct"), 50)).
		Mend(diagnose.Advise(f.Sender, "see what the program at the sender waits for"))
}

// IdlePct is the share of the readings in which the sender had nothing to send
// while both windows had room.
func IdlePct(e *diagnose.End) (float64, bool) {
	var all []float64
	for _, s := range e.Streams() {
		if s.Course != nil && s.Course.Idle != nil {
			all = append(all, *s.Course.Idle)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return diagnose.Mean(all), true
}

// message is how many bytes the sender hands to one call.
func message(f *diagnose.Flow) int64 {
	for _, s := range f.Sender.Streams() {
		if s.Length > 0 {
			return s.Length
		}
	}
	return f.Cell.Length.Send
}

func paced(f *diagnose.Flow) *diagnose.Outcome {
	if bound := f.Cell.Spec.MaxRate; bound > 0 {
		return boundBy(f, bound)
	}
	if f.Cell.Spec.Rate > 0 { // app-limited says it
		return nil
	}
	used := f.Congestion()
	if used == "" {
		return f.Sender.Lacks("the congestion control")
	}
	if !diagnose.Paces(used) {
		return diagnose.No("%s does not pace", used)
	}
	if other := f.Experiment(diagnose.OtherControl); other != nil && !diagnose.Paces(diagnose.ControlOf(other)) { // a route may name a control that overrides the socket's
		g := f.Against(other)
		if g.Times < diagnose.GainBar {
			return diagnose.No("%s carries %s, no more", other.Spec.Congestion, unit.Rate(diagnose.RateOf(other)))
		}
		return diagnose.Likely("%s paces itself: %s carries %s", used, other.Spec.Congestion, unit.Rate(diagnose.RateOf(other))).At(f.Sender.Where()).
			Gains(f.Receiver.Proof("goodput under "+other.Spec.Congestion+" over this", 0, ""), g).
			Costs(0, other.Spec.Congestion+" carries "+unit.Rate(diagnose.RateOf(other)), "the same traffic with -C "+other.Spec.Congestion).
			By(pacingProofs(f)...).Mend(f.UseControl(other.Spec.Congestion))
	}
	again, _ := f.AgainPct()
	loaded, base, known := f.RTT()
	rate, ok := f.Pacing()
	all := float64(len(f.Sender.Streams())) * rate
	bps, _ := f.Goodput()
	more := all > 1.6*bps
	switch {
	case !ok || !known:
		return f.Sender.Lacks("tcp_info.pacing_rate_bytes_per_s")
	case f.LinkIsFull():
		return diagnose.No("%s paces, and the link is full all the same", used)
	case base < diagnose.NearNs && bps <= easyRate && !f.Sender.IsFull() && !f.Receiver.IsFull():
		return diagnose.No("%s paces: at %s no CPU is full that its small bursts would cost", used, unit.Rate(bps))
	case again > diagnose.BbrBar:
		return diagnose.No("%s of the segments had to be sent again: they are lost, not paced", unit.Percent(again))
	case more && base > diagnose.NearNs:
		return diagnose.No("%s would let %s go", used, unit.Rate(all))
	case queue.IsShaped(f, more):
		return diagnose.No("%s would let %s go, and a shaper or a queue lets no more pass", used, unit.Rate(all))
	case base > diagnose.NearNs && (again > 1 || loaded > 3*base && loaded > base+2e6): // near hosts lose by bbr's own bursts
		return diagnose.No("the path is full: its queue is, or it loses")
	}
	o := diagnose.Possible("%s paces the sender at %s a stream", used, unit.Rate(rate))
	if base < diagnose.NearNs {
		o.Confidence = measure.Likely
		if more {
			o.Text = fmt.Sprintf("%s paces the sender: to a near host its small bursts cost more than they save", used)
		}
	}
	return o.At(f.Sender.Where()).By(pacingProofs(f)...).Mend(f.UseControl("cubic"))
}

// easyRate is up to where a CPU makes small bursts besides, in bit/s.
const easyRate = 2.5e9

func pacingProofs(f *diagnose.Flow) []measure.Proof {
	var all []measure.Proof
	if rate, ok := f.Pacing(); ok {
		all = append(all, f.Sender.Proof("tcp_info.pacing_rate, mean of a stream", rate, "bps"))
	}
	if flight, ok := f.InFlight(); ok {
		if cwnd, ok := f.Cwnd(); ok {
			all = append(all, diagnose.Below(f.Sender.Proof("in flight, mean", flight, "bytes"), cwnd))
		}
	}
	return all
}

// boundBy is the finding of a flow that an end point's operator bounds.
func boundBy(f *diagnose.Flow, bound int64) *diagnose.Outcome {
	bps, _ := f.Goodput()
	if bps < 0.9*float64(bound) {
		return diagnose.No("an end point allows %s, which was not reached", unit.Rate(float64(bound)))
	}
	return diagnose.Certain("an end point allows no more than %s (thru serve --max-rate)", unit.Rate(float64(bound))).
		At(measure.Where{Place: measure.AtTool}).By(f.Sender.Proof("rate allowed", float64(bound), "bps")).
		Mend(diagnose.Advise(f.Receiver, "serve with a higher --max-rate"))
}
