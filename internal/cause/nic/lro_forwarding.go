package nic

import (
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/knob"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
)

// LROForwarding is the cause `lro-forwarding`.
func LROForwarding() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "lro-forwarding", TCP: true, UDP: true, Title: "LRO on a host that forwards packets", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeLROForwarding) },
			Seen:        "LRO is on at an interface in a bridge, or on a host that routes",
			Distinction: "the same test with LRO off", Fix: "switch LRO off", Effect: "uploads of guests slow down to a fraction",
			Source: "Linux netdev-features.rst; gate lro-forwarding",
		},
		Gates: []gate.Rule{
			{ID: "lro-forwarding", Title: "LRO on a host that forwards packets", About: "large receive offload if the host routes or the interface is in a bridge",
				Warns:  "LRO is on",
				Why:    "merged packets exceed the MTU of the next link and are dropped: uploads slow down to a fraction",
				Source: "Linux netdev-features.rst", Fix: "switch LRO off (GRO may stay)", Checklist: []string{"C-22"}, Face: gateLROForwarding},
		},
		Propose: []advise.Proposer{proposeLROForwarding},
	}
}

func judgeLROForwarding(e *diagnose.End) *diagnose.Outcome {
	o, warns := hypervisor.Gated(e, "lro-forwarding")
	if !warns {
		return o
	}
	return o.MarkNotBinding() // the end's own packets are not forwarded
}

func gateLROForwarding(f *scene.Face) *gate.Finding {
	if !f.Offloads["large-receive-offload"] {
		return nil
	}
	forwards, known := f.Host.Sysctl("net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding", "net.inet.ip.forwarding")
	bridged := f.Master != nil && isBridge(f.Host, *f.Master)
	switch {
	case bridged:
		return gate.Warn("LRO is on at %s, which is in the bridge %s", f.Name, *f.Master).Do(f.Set(knob.LRO, "off"))
	case forwards != "" && forwards != "0":
		return gate.Warn("LRO is on at %s, and the host routes", f.Name).Do(f.Set(knob.LRO, "off"))
	case !known || forwards == "":
		return gate.Missing(f.Host, "whether the host routes, with LRO on at "+f.Name, "sysctls.net.ipv4.ip_forward", "sysctls.net.inet.ip.forwarding")
	}
	return gate.Pass("LRO is on at %s, and the host forwards nothing", f.Name)
}

// isBridge reports whether the interface of that name is a bridge.
func isBridge(h *scene.Host, name string) bool {
	i := h.Interface(name)
	return i != nil && (i.Bridge != nil || i.Kind != nil && *i.Kind == "bridge")
}

// proposeLROForwarding switches LRO off on a host that forwards packets.
func proposeLROForwarding(r advise.Request) []advise.Draft {
	if r.At == nil || r.Here(r.At) == "" || r.At.State(knob.LRO, r.Here(r.At)).Is("off") {
		return nil
	}
	return []advise.Draft{advise.Change(r.At, knob.LRO, r.Here(r.At), "off", "LRO off at %s of %s, which forwards packets", r.Here(r.At), r.At.Name)}
}
