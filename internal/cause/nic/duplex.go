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
			Cause: "duplex", TCP: true, UDP: true, Title: "the link sends or receives, never both", Judge: judgeDuplex,
			Seen: "the interface is half duplex", Distinction: "collisions that were counted in this run", Fix: "set autonegotiation at both ends, never at one",
			Effect: "often less than a tenth of the rate", Source: "IEEE 802.3, clause 4; ethtool(8)", Brings: []string{"loss", "bad-link"},
		},
		Gates: []gate.Rule{
			{ID: "duplex", Title: "Duplex", About: "whether the link sends and receives at the same time",
				Fails: "half duplex on an interface of the route", Warns: "half duplex on one that may carry the traffic",
				Why:    "half duplex collides with its own acknowledgements: often less than a tenth of the rate",
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
		o := diagnose.Likely("%s is half duplex: it sends or receives, never both", diagnose.Word(i.Name)).By(e.Proof("half duplex", 1, ""))
		if n := e.NIC(); n != nil {
			if hits, name := diagnose.Counted(n, []string{"collision"}, nil); hits >= diagnose.FewEvents {
				o.Confidence = measure.Certain
				o.By(diagnose.Above(e.Proof(name, hits, "packets"), diagnose.FewEvents))
			}
		}
		if f.LinkIsFull() {
			o.MarkNotBinding()
		}
		return o.At(e.OnPort(i)).AddFix(gateFix(f, "duplex", e, "autonegotiation at both ends"))
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
