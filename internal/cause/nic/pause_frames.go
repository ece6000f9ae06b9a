package nic

import (
	"fmt"

	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// PauseFrames is the cause `pause-frames`.
func PauseFrames() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "pause-frames", TCP: true, UDP: true, Title: "pause frames stop the link", Judge: judgePauseFrames,
			Seen:        "in this run the sender received pause frames, or the receiver sent some",
			Distinction: "no packet is lost; the time that the link was stopped, if the driver counts it", Fix: "find the slow device behind the port: a receiver, or a congested switch",
			Effect: "all flows of that port wait for the slowest", Source: "IEEE 802.3, annex 31B; ethtool -S",
		},
		Propose: []advise.Proposer{ProposePauseFrames},
	}
}

func judgePauseFrames(f *diagnose.Flow) *diagnose.Outcome {
	if f.Sender.NIC() == nil && f.Receiver.NIC() == nil {
		return f.Sender.Lacks("counters of the interface")
	}
	for _, e := range f.Ends() {
		n := e.NIC()
		if n == nil {
			continue
		}
		side := "tx" // the receiver stops its link partner
		if e.Sends() {
			side = "rx" // the sender is stopped
		}
		frames, name := diagnose.Counted(n, []string{"pause", "xoff"}, []string{"duration", "transition", "storm", other(side)})
		if frames > 0 {
			return asPaused(f, e, frames, name, side)
		}
	}
	if len(f.Sender.Ports())+len(f.Receiver.Ports()) == 0 && f.Sender.HasFace() && f.Receiver.HasFace() {
		return nil // software has no flow control
	}
	return diagnose.No("no pause frame stopped this direction")
}

// other returns the opposite direction in the names of a driver's counters.
func other(side string) string {
	if side == "rx" {
		return "tx"
	}
	return "rx"
}

// asPaused judges counted pause frames by the time for which they can have stopped the port.
func asPaused(f *diagnose.Flow, e *diagnose.End, frames float64, name, side string) *diagnose.Outcome {
	o := diagnose.Possible("pause frames stop the link: %s per second", stat.ThreeDigits(perSecond(e, frames))).
		At(e.OnFace()).By(diagnose.Above(e.Proof(name, frames, "packets"), 0)).
		AddFix(diagnose.Advise(e, "find the slow device behind the port: a receiver with a full ring or bus, or a shared switch port"))
	us, timer := diagnose.Counted(e.NIC(), []string{"pause_duration"}, []string{other(side)}) // mlx5 counts it in microseconds
	stood := stat.Pct(us*1e3, float64(e.Span()))
	most := 100.0
	for _, i := range e.Ports() {
		if speed := diagnose.SpeedOf(i); speed > 0 {
			most = 100 * perSecond(e, frames) * pauseBits / speed
		}
	}
	again, _ := f.AgainPct()
	switch {
	case f.LinkIsFull() || most < 1:
		o.MarkNotBinding()
	case us > 0 && stood > 10 && again < diagnose.AgainBar && leavesRoom(f, e, stood):
		o.Confidence = measure.Likely
	case us > 0 && stood > 10 && again < diagnose.AgainBar:
		o.Confidence = measure.Certain
		o.Text = fmt.Sprintf("pause frames stop the link %s of the time", unit.Percent(stood))
		o.By(diagnose.Above(e.Proof(timer, stood, "pct"), 10))
	case us > 0 && stood < 1:
		o.MarkNotBinding()
	case most > 20 && again < diagnose.AgainBar:
		o.Confidence = measure.Likely
	}
	return o
}

// A pause frame stops a port for at most 65535 times 512 bit times (IEEE 802.3, 31B.2): 3.4 ms at 10 Gb/s. So a
// few per second cost nothing.
const pauseBits = 65535 * 512

// leavesRoom reports whether a port that was stopped for so many percent of the time could have carried twice the
// flow's rate in the rest.
func leavesRoom(f *diagnose.Flow, e *diagnose.End, stood float64) bool {
	least := 0.0
	for _, i := range e.Ports() {
		least = max(least, diagnose.SpeedOf(i))
	}
	return least*(1-stood/100) > 2*f.Rate()
}

// ProposePauseFrames makes the port ignore its link partner's pause frames.
func ProposePauseFrames(r advise.Request) []advise.Draft {
	h := r.At
	if h == nil {
		return nil
	}
	face := r.Here(h)
	s := h.State(knob.Pause, face)
	_, now := advise.Pairs(s.Value)
	if now["rx"] != "on" {
		return nil
	}
	d := advise.Change(h, knob.Pause, face, advise.With(s.Value, "autoneg", "off", "rx", "off"), "%s of %s ignores pause frames", face, h.Name)
	d.Risk = "packets are dropped instead of delayed; never use it on a storage network (FCoE, RoCE)"
	return []advise.Draft{d}
}
