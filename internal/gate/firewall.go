package gate

import "fmt"

// longChain is how many rules of one chain cost a packet more than the stack does.
const longChain = 500

// firewallRules judge what every packet has to pass.
func firewallRules() []Rule {
	return []Rule{
		{ID: "conntrack", Title: "Tracked connections", About: "how full the table of connections is, and packets dropped for it",
			Warns:  "above 80% of its room; or 100 packets or more dropped since the boot",
			Why:    "when the table is full new connections are dropped without a word",
			Source: "Linux nf_conntrack-sysctl.rst; conntrack(8)", Remedy: "a larger table; do not track the test's ports", Cause: "firewall-cost", Checklist: []string{"C-33"}, host: conntrack},
		{ID: "firewall-rules", Title: "Length of the firewall", About: "rules of the longest chain of nftables",
			Warns:  "more than 500",
			Why:    "each packet of a new flow walks the chain, and without tracking every packet does",
			Source: "thru's own bound", Remedy: "sets and maps in place of long chains; accept the test's ports first", Cause: "firewall-cost", Checklist: []string{"C-33"}, host: firewallLength},
		{ID: "bridge-netfilter", Title: "Firewall of a bridge", About: "whether frames of a bridge on the way pass the firewall of IP (br_netfilter)",
			Warns:  "they do, and there are rules",
			Why:    "bridged frames walk all chains of IP as well: CPU for each packet, and surprising drops",
			Source: "Linux ip-sysctl.rst, bridge-nf-call-iptables", Remedy: "switch it off where no container needs it", Cause: "firewall-cost", Checklist: []string{"C-33"}, face: bridgeNetfilter},
	}
}

func conntrack(h *host) *finding {
	w := h.Firewall
	if w == nil || w.Conntrack == nil {
		if h.os != "linux" {
			return nil
		}
		return h.missing("whether connections are tracked", "firewall.conntrack")
	}
	if !*w.Conntrack {
		return pass("connections are not tracked")
	}
	if w.Tracked == nil || w.TrackedMax == nil || *w.TrackedMax <= 0 {
		return h.missing("room for tracked connections", "firewall.conntrack_entries")
	}
	full := 100 * float64(*w.Tracked) / float64(*w.TrackedMax)
	if full > 80 {
		return warn("%d of %d connections are tracked: %s", *w.Tracked, *w.TrackedMax, percent(full)).do(moreTracked(h))
	}
	if w.TrackDrops != nil && *w.TrackDrops >= 100 {
		return warn("%d packets dropped by connection tracking since the boot", *w.TrackDrops).do(moreTracked(h))
	}
	return pass("%d of %d connections are tracked", *w.Tracked, *w.TrackedMax)
}

// moreTracked doubles the table.
func moreTracked(h *host) remedy {
	if h.os != "linux" {
		return remedy{}
	}
	r := sysctls(h, "net.netfilter.nf_conntrack_max="+twice(*h.Firewall.TrackedMax))
	return r.risking("can be set in the host's own network namespace only (of a container: at its host); " + r.risk)
}

func firewallLength(h *host) *finding {
	w := h.Firewall
	if h.os != "linux" && w == nil {
		return nil
	}
	if w == nil || w.Rules == nil {
		return h.missing("rules of the firewall", "firewall.nft_rules", "firewall.nft_tables")
	}
	longest := *w.Rules
	if w.LongestChain != nil {
		longest = *w.LongestChain
	}
	if longest > longChain {
		return warn("a chain of %d rules", longest).do(advise("put a rule that accepts the test's ports first; `nft list ruleset` shows them"))
	}
	legacy := ""
	if w.LegacyRules != nil && *w.LegacyRules > 0 {
		legacy = fmt.Sprintf("; %d entries of iptables", *w.LegacyRules)
	}
	return pass("%d rules, the longest chain has %d%s", *w.Rules, longest, legacy)
}

func bridgeNetfilter(f *face) *finding {
	if f.Bridge == nil || f.Bridge.Netfilter == nil {
		return nil
	}
	if !*f.Bridge.Netfilter {
		return pass("frames of the bridge %s do not pass the firewall of IP", f.Name)
	}
	w := f.host.Firewall
	legacy := reason(f.host.NotChecked, "firewall.iptables_tables")
	switch {
	case w != nil && (w.Rules != nil && *w.Rules > 0 || len(w.Legacy) > 0):
		return warn("frames of the bridge %s pass the firewall of IP", f.Name).do(bridgePlain(f.host))
	case w == nil || w.Rules == nil:
		return f.host.missing("rules that frames of the bridge "+f.Name+" pass", "firewall.nft_rules", "firewall.nft_tables")
	case legacy != notRead:
		return notChecked("rules that frames of the bridge "+f.Name+" pass", legacy)
	}
	return pass("frames of the bridge %s pass the firewall of IP, which has no rules", f.Name)
}

// bridgePlain keeps bridged frames from the firewall.
func bridgePlain(h *host) remedy {
	r := sysctls(h, "net.bridge.bridge-nf-call-iptables=0", "net.bridge.bridge-nf-call-ip6tables=0")
	r.risk = "Docker and Kubernetes rely on it: their rules between containers stop working; " + r.risk
	return r
}
