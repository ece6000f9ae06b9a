package nic

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/internal/unit"
)

// LinkNegotiatedLow is the cause `link-negotiated-low`.
func LinkNegotiatedLow() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "link-negotiated-low", TCP: true, UDP: true, Title: "the link has negotiated less than it supports", Judge: judgeLinkNegotiatedLow,
			Seen:        "the interface has negotiated less than it and its link partner support, or less than --link-rate states",
			Distinction: "it limits the rate only if the link is full at this speed", Fix: "check cable, optics and autonegotiation at both ends",
			Effect: "1 of 10 Gb/s", Source: "ethtool(8); IEEE 802.3, clause 28", Brings: []string{"link-rate", "shaper"},
		},
		Gates: []gate.Rule{
			{ID: "link-speed", Words: "speed autoneg negotiation", Title: "Speed of the link",
				About:  "the link speed against --link-rate, and against what the adapter and its link partner support; the nominal speed of virtio, vmxnet3 and veth is no limit",
				Warns:  "the link has negotiated less than both of its ends support",
				Fails:  "--link-rate is above the speed of the route's interface",
				Why:    "a link carries no more than it has negotiated: 1 Gb/s gives at most 941 Mb/s of TCP at MTU 1500",
				Source: "IEEE 802.3 (frames of 1538 bytes for 1500); ethtool(8)", Fix: "check cable, optics and autonegotiation at both ends",
				Checklist: []string{"C-24", "A-07", "B-20"}, Face: gateLinkSpeed},
		},
	}
}

func judgeLinkNegotiatedLow(f *diagnose.Flow) *diagnose.Outcome {
	return eachPort(f, "speed of the interfaces", "no interface of the route runs slower than it and its link partner support", func(e *diagnose.End, i *measure.Interface) *diagnose.Outcome {
		speed, could := diagnose.SpeedOf(i), 0.0
		if i.MaxBps != nil && i.PeerBps != nil {
			could = float64(min(*i.MaxBps, *i.PeerBps))
		}
		if c := f.Cell.Ceiling; c != nil && c.LinkFrom == "stated" && len(e.Ports()) == 1 {
			could = max(could, float64(c.LinkBps))
		}
		switch {
		case speed == 0:
			return e.Lacks("speed of " + diagnose.Word(i.Name))
		case could <= speed && i.PeerBps == nil && i.MaxBps != nil && float64(*i.MaxBps) > speed && fills(f, speed):
			return asSlow(f, diagnose.Possible("%s runs at %s of the %s that it supports; what its link partner supports is not known", diagnose.Word(i.Name), unit.Rate(speed), unit.Rate(float64(*i.MaxBps))), e, i)
		case could <= speed:
			return nil
		}
		o := asSlow(f, diagnose.Certain("%s has negotiated %s; %s are possible", diagnose.Word(i.Name), unit.Rate(speed), unit.Rate(could)), e, i)
		if !fills(f, speed) {
			o.MarkNotBinding()
		}
		return o
	})
}

// fills reports whether the flow uses all of a link of that speed: 90% of it, without headers.
func fills(f *diagnose.Flow, speed float64) bool {
	bps, ok := f.Goodput()
	return ok && speed > 0 && bps >= 0.9*speed
}

// asSlow adds what a link below its possible speed costs.
func asSlow(f *diagnose.Flow, o *diagnose.Outcome, e *diagnose.End, i *measure.Interface) *diagnose.Outcome {
	o.At(e.OnPort(i)).By(e.Proof("negotiated speed", diagnose.SpeedOf(i), "bps")).
		Costs(diagnose.SpeedOf(i), "at most "+unit.Rate(diagnose.SpeedOf(i))+" including all headers", "negotiated speed")
	if i.MaxBps != nil {
		o.By(e.Proof("highest supported speed", float64(*i.MaxBps), "bps"))
	}
	return o.AddFix(gateFix(f, "link-negotiated-low", e, "switch autonegotiation on at both ends; check cable, optics and the switch port"))
}

func gateLinkSpeed(f *scene.Face) *gate.Finding {
	if !f.Device() && f.Speed() == 0 {
		return nil // no wire: nothing to judge, and nothing missing
	}
	want := f.Wanted()
	switch {
	case scene.IsTrue(f.Nominal) && want > 0:
		return gate.NotChecked(fmt.Sprintf("whether %s carries %s", f.Name, gate.Rate(want)), "its speed is nominal ("+f.DriverName()+")")
	case scene.IsTrue(f.Nominal):
		return gate.Pass("%s has only a nominal speed (%s), which is no limit", f.Name, f.DriverName())
	case f.Speed() == 0:
		return gate.Missing(f, "speed of "+f.Name, "speed_bps")
	}
	if bad := tooSlow(f, want); bad != nil {
		return bad
	}
	if f.MaxBps != nil && f.PeerBps != nil && f.Speed() < min(*f.MaxBps, *f.PeerBps) {
		could := min(*f.MaxBps, *f.PeerBps)
		return gate.Warn("%s has negotiated %s; it and its link partner support %s", f.Name, gate.Rate(f.Speed()), gate.Rate(could)).
			Because("the link carries %.3g%% of what it supports", 100*float64(f.Speed())/float64(could)).Do(Renegotiate(f))
	}
	if f.MaxBps != nil && f.Speed() < *f.MaxBps {
		return gate.Pass("%s runs at %s; it supports %s, what its link partner supports is not known", f.Name, gate.Rate(f.Speed()), gate.Rate(*f.MaxBps))
	}
	return gate.Pass("%s runs at %s", f.Name, gate.Rate(f.Speed()))
}

// tooSlow compares the speed with the wanted rate.
func tooSlow(f *scene.Face, want int64) *gate.Finding {
	if want <= 0 {
		return nil
	}
	if want > f.Speed() {
		return gate.FailIf(f.Firm, "%s wanted, but %s runs at %s", gate.Rate(want), f.Name, gate.Rate(f.Speed())).
			Because("a link never carries more than its speed").Do(Renegotiate(f))
	}
	mtu := 1500
	if f.MTU != nil && *f.MTU > 0 {
		mtu = *f.MTU
	}
	wire := float64(want) * float64(mtu+layer1Bytes) / float64(mtu+layer2Bytes)
	if f.Host.Subject.LinkL2 && wire > float64(f.Speed()) {
		return gate.Warn("%s of frames take %s on the wire, but %s runs at %s", gate.Rate(want), gate.Rate(wire), f.Name, gate.Rate(f.Speed())).
			Because("preamble, checksum and gap take %d bytes per frame", layer1Bytes-layer2Bytes)
	}
	return nil
}

// Bytes around an IP packet on Ethernet, for a rate that is counted at layer 2 (stat.Link): its header; and with
// FCS, preamble and gap.
const (
	layer2Bytes = 14
	layer1Bytes = 38
)
