package cpu

import (
	"fmt"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// FirewallCost is the cause `firewall-cost`.
func FirewallCost() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "firewall-cost", TCP: true, UDP: true, Title: "the firewall costs too much CPU", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeFirewallCost) },
			Seen:        "connection tracking dropped packets in the measured time, or its table is nearly full; or the firewall has long chains or filters bridged frames while a CPU is full",
			Distinction: "the same test with its ports accepted first, and not tracked", Fix: "use notrack for the test's ports, and sets for long chains", Effect: "CPU for each packet",
			Source: "/proc/net/stat/nf_conntrack; gates conntrack, firewall-rules, bridge-netfilter", Brings: []string{"sender-cpu", "receiver-cpu", "single-flow", "loss"},
		},
		Gates: []gate.Rule{
			{ID: "conntrack", Words: "nf_conntrack tracking", Title: "Tracked connections", About: "the use of the connection table, and packets dropped by connection tracking",
				Warns:  "more than 80% of the table is in use; or 100 packets or more were dropped since the boot",
				Why:    "when the table is full, new connections are dropped silently",
				Source: "Linux nf_conntrack-sysctl.rst; conntrack(8)", Fix: "enlarge the table; do not track the test's ports", Checklist: []string{"C-33"}, Host: gateConntrack},
			{ID: "firewall-rules", Words: "firewall nft nftables iptables", Title: "Length of the firewall", About: "the number of rules in the longest chain of nftables",
				Warns:  "more than 500",
				Why:    "each packet of a new flow is matched against the chain, and without tracking every packet is",
				Source: "thru's own threshold", Fix: "use sets and maps instead of long chains; accept the test's ports first", Checklist: []string{"C-33"}, Host: gateFirewallRules},
			{ID: "bridge-netfilter", Title: "Firewall of a bridge", About: "whether frames of a bridge on the path pass the IP firewall (br_netfilter)",
				Warns:  "they do, and there are rules",
				Why:    "bridged frames pass all chains of the IP firewall too: CPU for each packet, and unexpected drops",
				Source: "Linux ip-sysctl.rst, bridge-nf-call-iptables", Fix: "switch br_netfilter off if no container needs it", Checklist: []string{"C-33"}, Face: gateBridgeNetfilter},
		},
	}
}

func judgeFirewallCost(e *diagnose.End) *diagnose.Outcome {
	drops := 0.0
	var counted []measure.Proof
	for _, name := range []string{"Conntrack.Drop", "Conntrack.EarlyDrop", "Conntrack.InsertFailed"} {
		if n, ok := e.Counter(name); ok && n > 0 {
			drops += n
			counted = append(counted, diagnose.Above(e.Proof(name, n, "packets"), 0))
		}
	}
	gates := hypervisor.Conditions(e.Flow, "firewall-cost", e.Name)
	if drops > 0 {
		o := diagnose.Possible("connection tracking of the %s dropped %.0f packets", e.Place, drops).At(e.Where()).By(counted...)
		h := e.Machine()
		o.AddFix(h.Fix(moreTracked(h).Or("enlarge the connection-tracking table, or do not track the test's ports")))
		if e.Flow.Blame(o, drops); o.Confidence == measure.Certain { // other programs' connections are dropped first
			o.Confidence = measure.Likely
		}
		return o
	}
	if len(gates) == 0 {
		return hypervisor.GateOutcome(e, "firewall-cost")
	}
	// With both ends in one kernel, the firewall handles a packet on the CPU that sent it.
	works := hypervisor.WorksFully(e) || e.Flow.OnSameCPUs() && hypervisor.WorksFully(e.Other())
	return hypervisor.Symptom(hypervisor.Condition(e, gates[0]), gates[0].ID != "conntrack" && works)
}

func gateConntrack(h *scene.Host) *gate.Finding {
	w := h.Firewall
	if w == nil || w.Conntrack == nil {
		if h.System != "linux" {
			return nil
		}
		return gate.Missing(h, "whether connections are tracked", "firewall.conntrack")
	}
	if !*w.Conntrack {
		return gate.Pass("connections are not tracked")
	}
	if w.Tracked == nil || w.TrackedMax == nil || *w.TrackedMax <= 0 {
		return gate.Missing(h, "size of the connection-tracking table", "firewall.conntrack_entries")
	}
	full := 100 * float64(*w.Tracked) / float64(*w.TrackedMax)
	if full > 80 {
		return gate.Warn("%d of %d connections are tracked: %s", *w.Tracked, *w.TrackedMax, gate.Percent(full)).Do(moreTracked(h))
	}
	if w.TrackDrops != nil && *w.TrackDrops >= 100 {
		return gate.Warn("%d packets dropped by connection tracking since the boot", *w.TrackDrops).Do(moreTracked(h))
	}
	return gate.Pass("%d of %d connections are tracked", *w.Tracked, *w.TrackedMax)
}

func gateFirewallRules(h *scene.Host) *gate.Finding {
	w := h.Firewall
	if h.System != "linux" && w == nil {
		return nil
	}
	if w == nil || w.Rules == nil {
		return gate.Missing(h, "rules of the firewall", "firewall.nft_rules", "firewall.nft_tables")
	}
	longest := *w.Rules
	if w.LongestChain != nil {
		longest = *w.LongestChain
	}
	if longest > longChain {
		return gate.Warn("a chain of %d rules", longest).Do(scene.Advise("put a rule that accepts the test's ports first; `nft list ruleset` shows the rules"))
	}
	legacy := ""
	if w.LegacyRules != nil && *w.LegacyRules > 0 {
		legacy = fmt.Sprintf("; %d entries of iptables", *w.LegacyRules)
	}
	return gate.Pass("%d rules, the longest chain has %d%s", *w.Rules, longest, legacy)
}

// longChain is how many rules of one chain cost a packet more than the network stack does.
const longChain = 500

func gateBridgeNetfilter(f *scene.Face) *gate.Finding {
	if f.Bridge == nil || f.Bridge.Netfilter == nil {
		return nil
	}
	if !*f.Bridge.Netfilter {
		return gate.Pass("frames of the bridge %s do not pass the IP firewall", f.Name)
	}
	w := f.Host.Firewall
	legacy := scene.Reason(f.Host.NotChecked, "firewall.iptables_tables")
	switch {
	case w != nil && (w.Rules != nil && *w.Rules > 0 || len(w.Legacy) > 0):
		return gate.Warn("frames of the bridge %s pass the IP firewall", f.Name).Do(bridgePlain(f.Host))
	case w == nil || w.Rules == nil:
		return gate.Missing(f.Host, "rules that frames of the bridge "+f.Name+" pass", "firewall.nft_rules", "firewall.nft_tables")
	case legacy != scene.NotRead:
		return gate.NotChecked("rules that frames of the bridge "+f.Name+" pass", legacy)
	}
	return gate.Pass("frames of the bridge %s pass the IP firewall, which has no rules", f.Name)
}

// bridgePlain exempts bridged frames from the firewall.
func bridgePlain(h *scene.Host) scene.Fix {
	r := scene.Sysctls(h, "net.bridge.bridge-nf-call-iptables=0", "net.bridge.bridge-nf-call-ip6tables=0")
	r.Risk = "Docker and Kubernetes rely on it: their rules between containers stop working; " + r.Risk
	return r
}

// moreTracked doubles the connection-tracking table, if its size is known.
func moreTracked(h *scene.Host) scene.Fix {
	w := h.Firewall
	if h.System != "linux" || w == nil || w.TrackedMax == nil || *w.TrackedMax <= 0 {
		return scene.Fix{}
	}
	most := max(*w.TrackedMax, 2*min(*w.TrackedMax, 1<<29)) // within what the kernel accepts
	return scene.Sysctls(h, fmt.Sprintf("net.netfilter.nf_conntrack_max=%d", most)).
		Costing("can be set only in the host's own network namespace (for a container: on its host)")
}
