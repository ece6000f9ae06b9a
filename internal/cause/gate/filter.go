package gate

import (
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Filter is Filter by these rules.
func Filter(rules []Rule, gates []measure.Gate, only, skip []string) ([]measure.Gate, error) {
	for _, id := range slices.Concat(only, skip) {
		if err := known(rules, id); err != nil {
			return nil, err
		}
	}
	kept := []measure.Gate{}
	for _, g := range gates {
		wanted := len(only) == 0 || slices.Contains(only, g.ID)
		if wanted && !slices.Contains(skip, g.ID) {
			kept = append(kept, g)
		}
	}
	return kept, nil
}

// known refuses an id that no rule has.
func known(rules []Rule, id string) error {
	for _, r := range rules {
		if r.ID == id {
			return nil
		}
	}
	hint := "`thru check --list` names all gates"
	if near := nearest(rules, strings.ToLower(id)); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return fault.Usagef(hint, "gate: choosing gates: there is no gate %q", short(id))
}

// nearest is the id that a text could have meant: that of the rule which is
// known by this word too, or of a part of whose id it is, or from which it
// differs by a slip or two; "" where none is near.
func nearest(rules []Rule, text string) string {
	if id, ok := OtherWords()[text]; ok {
		return id
	}
	var ids []string
	for _, r := range rules {
		if len(text) >= 3 && strings.Contains(r.ID, text) {
			return r.ID
		}
		ids = append(ids, r.ID)
	}
	return fault.Nearest(text, ids)
}

// OtherWords are what else rules are called, in small letters.
func OtherWords() map[string]string {
	words := map[string]string{}
	for id, list := range map[string]string{
		"offloads": "tso gso gro lso rsc lro sg checksum checksums offload segmentation", "queues": "channels multiqueue vmq netqueue rps xps",
		"irq-spread": "irq irqs interrupts affinity irqbalance", "interrupt-moderation": "coalescing coalesce itr", "rings": "ring descriptors buffers drops",
		"rss": "indirection toeplitz", "link-speed": "speed autoneg negotiation", "link-up": "carrier link up", "link-errors": "crc fec errors",
		"link-load": "traffic", "bond": "lag lacp bonding teaming", "virtual-switch": "vswitch bridge ovs vhost", "tunnel": "vxlan gre vpn wireguard",
		"pcie-bandwidth": "pci bus slot lanes", "nic-model": "e1000 vmxnet3 virtio emulated paravirtual adapter", "driver-of-kernel": "version module",
		"mtu-path": "pmtu pmtud mtu jumbo df blackhole", "rtt-spread": "jitter latency rtt ping delay", "udp-reach": "udp reachability", "dscp": "tos ecn qos marks",
		"hops": "ttl routers traceroute", "several-ways": "ecmp multipath", "tcp-proxy": "proxy middlebox", "window-scaling": "wscale scaling",
		"receive-window": "bdp rmem tcp_rmem window recvbuf", "send-buffer": "wmem tcp_wmem sendbuf", "explicit-window": "rmem_max wmem_max maxsockbuf -w",
		"congestion-control": "cc bbr cubic reno dctcp", "qdisc": "fq shaper tbf htb cake netem tc", "cpu-capacity": "cpu cpus cores",
		"governor": "cpufreq frequency powersave performance power", "idle-states": "c-states cstates sleep cpuidle", "cpu-quota": "cgroup cgroups quota limit throttling",
		"memory": "ram swap balloon", "tcp-memory": "tcp_mem", "security": "selinux apparmor seccomp", "conntrack": "nf_conntrack tracking",
		"firewall-rules": "firewall nft nftables iptables", "guest-adapter": "vnic", "guest-mtu": "vswitch-mtu", "guest-shaping": "shaping portgroup", "guest-cpu-limit": "vcpu maxlimited", "guest-tools": "vmtools tools",
		"clock-source": "tsc hpet clocksource", "clock-sync": "ntp chrony time", "clock-offset": "offset",
	} {
		for _, word := range strings.Fields(list) {
			words[word] = id
		}
	}
	return words
}

// short bounds what is repeated to the one who typed it.
func short(id string) string { return string([]rune(id)[:min(40, len([]rune(id)))]) }
