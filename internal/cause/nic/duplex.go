package nic

import (
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// Duplex is the cause `duplex`.
func Duplex() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "duplex", TCP: true, UDP: true, Title: "the link is half duplex", Judge: judgeDuplex,
			Seen: "the interface is half duplex", Distinction: "collisions counted in this run", Fix: "set autonegotiation at both ends, never at one only",
			Effect: "often less than a tenth of the rate", Source: "IEEE 802.3, clause 4; ethtool(8)", Brings: []string{"loss", "bad-link"},
		},
		Gates: []gate.Rule{
			{ID: "duplex", Title: "Duplex", About: "whether the link can send and receive at the same time",
				Fails: "half duplex on an interface of the route", Warns: "half duplex on an interface that may carry the traffic",
				Why:    "data collides with its own acknowledgements: often less than a tenth of the rate",
				Source: "IEEE 802.3, clause 4", Fix: "set autonegotiation at both ends", Checklist: []string{"C-24"}, Face: gateDuplex},
		},
	}
}

func judgeDuplex(f *diagnose.Flow) *diagnose.Outcome {
	return eachPort(f, "duplex of the interfaces", "no interface of the route is half duplex", func(e *diagnose.End, i *measure.Interface) *diagnose.Outcome {
		switch {
		case i.Duplex == nil:
			return e.Lacks("duplex of " + diagnose.Word(i.Name))
		case *i.Duplex != "half":
			return nil
		}
		o := diagnose.Likely("%s is half duplex: it cannot send and receive at the same time", diagnose.Word(i.Name)).By(e.Proof("half duplex", 1, ""))
		if n := e.NIC(); n != nil {
			if hits, name := diagnose.Counted(n, []string{"collision"}, nil); hits >= diagnose.FewEvents {
				o.Confidence = measure.Certain
				o.By(diagnose.Above(e.Proof(name, hits, "packets"), diagnose.FewEvents))
			}
		}
		if f.LinkIsFull() {
			o.MarkNotBinding()
		}
		return o.At(e.OnPort(i)).AddFix(gateFix(f, "duplex", e, "set autonegotiation at both ends"))
	})
}

func gateDuplex(f *scene.Face) *gate.Finding {
	if !f.Wired() {
		return nil
	}
	switch {
	case f.Duplex == nil && f.Speed() == 0:
		return nil // the gate of the speed has the reason
	case f.Duplex == nil:
		return gate.Missing(f, "duplex of "+f.Name, "duplex")
	case *f.Duplex == "half":
		return gate.FailIf(f.Firm, "%s is half duplex", f.Name).Do(Renegotiate(f))
	}
	return gate.Pass("%s is %s duplex", f.Name, *f.Duplex)
}
