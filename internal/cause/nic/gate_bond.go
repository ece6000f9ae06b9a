package nic

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/measure"
)

// BondGates judge groups of interfaces, and the switches and tunnels of the kernel.
func BondGates() []gate.Rule {
	return []gate.Rule{
		{ID: "bond", Title: "Link aggregation", About: "members of a bond, its LACP groups and its hash policy",
			Warns:  "a member is down, or in another LACP group than the bond's; or the policy hashes addresses of layer 2 alone",
			Why:    "one flow never exceeds one member, and layer 2 hashing keeps all flows between two hosts on one",
			Source: "Linux Documentation/networking/bonding.rst; IEEE 802.1AX", Remedy: "layer3+4 hashing, LACP at the switch",
			Cause: "lag-one-member", Checklist: []string{"A-03", "A-09"}, Face: bond},
		{ID: "virtual-switch", Title: "Virtual switch", About: "bridges on the way, and the threads that move guests' packets",
			Warns:  "a thread that moves guests' packets (vhost) fills 80% of a CPU while no test runs",
			Why:    "each guest's packets pass one thread of the host: when it is full, so is the guest's network",
			Source: "the catalogue of causes (vswitch); C-25", Remedy: "multi-queue vhost, or SR-IOV", Cause: "vswitch", Checklist: []string{"C-25", "C-28"}, Host: virtualSwitch},
		{ID: "tunnel", Title: "Tunnel", About: "tunnels on the route: their headers against the MTU of what they lie on",
			Warns:  "the tunnel's MTU and its headers exceed the MTU below",
			Why:    "a wrapped packet above the MTU below is split in two or dropped; the ceiling falls with each header",
			Source: "RFC 7348 (50 bytes for VXLAN over IPv4)", Remedy: "the MTU below less the headers", Cause: "mtu-black-hole", Checklist: []string{"C-21"}, Face: tunnel},
	}
}

func bond(f *gate.Face) *gate.Finding {
	if f.Bond == nil {
		return nil
	}
	var down, apart []string
	main := f.Bond.Aggregate
	for _, m := range f.Bond.Members {
		if !m.Up {
			down = append(down, m.Name)
		} else if main != nil && m.Aggregate != nil && *m.Aggregate != *main {
			apart = append(apart, m.Name)
		}
	}
	switch {
	case len(f.Bond.Members) == 0:
		return gate.Warn("%s has no members", f.Name)
	case len(down) > 0:
		return gate.Warn("%s of %s carry nothing: down", strings.Join(down, ", "), f.Name).
			Because("%d of %d members carry the traffic", len(f.Bond.Members)-len(down), len(f.Bond.Members)).
			Do(gate.Advise("check cable and switch port of " + words(down)))
	case len(apart) > 0:
		return gate.Warn("%s of %s carry nothing: in another LACP group than %d", strings.Join(apart, ", "), f.Name, *main).
			Do(gate.Advise("put the switch ports of " + words(apart) + " into the same LACP group"))
	case slices.Contains([]string{"802.3ad", "balance-xor"}, f.Bond.Mode) && f.Bond.Hash == "layer2" && len(f.Bond.Members) > 1:
		return gate.Warn("%s chooses members by layer 2 addresses: all flows to one host take one", f.Name).
			Do(gate.Commands(gate.LinkMayFlap, gate.Command("ip link set dev %s type bond xmit_hash_policy layer3+4", f.NIC())).
				Saying("let the switch hash by address and port too"))
	}
	return gate.Pass("%s: %s, %d members up%s%s", f.Name, f.Bond.Mode, len(f.Bond.Members), hashed(f.Bond.Hash), groupsUnknown(f.Bond))
}

// groupsUnknown says where a bond with LACP does not tell which groups its
// members are in: those of another one would carry nothing.
func groupsUnknown(b *measure.Bond) string {
	lacp := slices.Contains([]string{"802.3ad", "lacp"}, strings.ToLower(b.Mode))
	told := b.Aggregate != nil && !slices.ContainsFunc(b.Members, func(m measure.BondMember) bool { return m.Aggregate == nil })
	if !lacp || told {
		return ""
	}
	return "; its LACP groups are not known"
}

func hashed(policy string) string {
	if policy == "" {
		return ""
	}
	return ", hash " + policy
}

// words joins names for a sentence in a remedy, each only if it is plain.
func words(names []string) string {
	var list []string
	for _, name := range names {
		list = append(list, gate.Command("%s", gate.NIC{Name: name}))
	}
	return strings.Join(list, ", ")
}

func virtualSwitch(h *gate.Host) *gate.Finding {
	v := h.Hypervises
	if v == nil || v.Guests <= 0 && v.Vhost <= 0 && len(v.Switch) == 0 {
		return nil
	}
	if l := h.Load; l != nil && l.VhostPct != nil && *l.VhostPct > 80 {
		return gate.Warn("a thread that moves guests' packets fills %s of a CPU; %d guests run here", gate.Percent(*l.VhostPct), v.Guests).
			Do(gate.Advise("give the busy guest's adapter several queues: driver name=vhost queues=4").Risking(gate.OnTheHost))
	}
	return gate.Pass("%d guests run here%s", max(0, v.Guests), among(v.Switch))
}

func among(switches []string) string {
	if len(switches) == 0 {
		return ""
	}
	return ", behind " + strings.Join(switches[:min(3, len(switches))], ", ")
}

func tunnel(f *gate.Face) *gate.Finding {
	t := f.Tunnel
	if t == nil {
		return nil
	}
	what := fmt.Sprintf("%s is a %s tunnel", f.Name, t.Kind)
	below := f.Host.Interface(t.Lower)
	if t.Overhead <= 0 || f.MTU == nil || below == nil || below.MTU == nil || *below.MTU <= t.Overhead {
		return gate.Pass("%s; its headers against the MTU below are not known", what)
	}
	fits := *below.MTU - t.Overhead
	if *f.MTU > fits {
		return gate.Warn("%s: MTU %d and %d bytes of headers exceed %d of %s", what, *f.MTU, t.Overhead, *below.MTU, below.Name).
			Do(gate.SetMTU(f, fits))
	}
	return gate.Pass("%s: %d bytes of headers a packet, MTU %d of %d", what, t.Overhead, *f.MTU, *below.MTU)
}
