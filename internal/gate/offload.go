package gate

import (
	"slices"
	"strings"
)

// slowLink is the speed up to which a CPU does without the adapter's help.
const slowLink = 2_500_000_000

// offloadRules judge what the adapter does for the CPU.
func offloadRules() []Rule {
	return []Rule{
		{ID: "offloads", Title: "Offloads", About: "segmentation (TSO, GSO), receive offload (GRO), scatter-gather and checksums of the interface and those it lies on",
			Warns:  "one is off; of a link up to 2.5 Gb/s only GSO and GRO count, of a veth all but GRO",
			Why:    "without TSO the CPU makes every packet: 9 of 49 Gb/s between namespaces, 3.4 with all off",
			Source: "measured; C-22: checksums 5 to 15% of the CPU, LRO 40%", Remedy: "switch them on", Cause: "offloads-off", Checklist: []string{"C-22", "C-23", "C-24", "B-19"}, face: offloadsOf},
		{ID: "lro-forwarding", Title: "LRO of a host that passes packets on", About: "large receive offload where the host routes or the interface is in a bridge",
			Warns:  "LRO is on there",
			Why:    "merged packets exceed the MTU of the next link: they are dropped, and uploads crawl",
			Source: "Linux netdev-features.rst", Remedy: "LRO off (GRO may stay)", Cause: "lro-forwarding", Checklist: []string{"C-22"}, face: lroForwarding},
	}
}

func offloadsOf(f *face) *finding {
	if !f.device() && f.kind() != "veth" && !isLoopback(f.Interface) {
		return nil // VLANs, bonds and tunnels have what lies below them
	}
	if f.Offloads == nil {
		return f.missing("offloads of "+f.Name, "offloads")
	}
	var off, offWords, fixed []string
	seen, set := 0, 0
	for _, o := range offloads() {
		on, known := f.Offloads[o.name]
		if known {
			seen++
		}
		if on {
			set++
		}
		switch {
		case !known || on:
		case o.short == "gro" && f.kind() == "veth": // off by default: what arrives was never split
		case !o.soft && f.speed() > 0 && f.speed() <= slowLink:
		case f.fixed(o.name):
			fixed = append(fixed, o.words)
		default:
			off, offWords = append(off, o.short), append(offWords, o.words)
		}
	}
	mend, asKept := off, ""
	if kept := f.keptOff(off); len(kept) > 0 {
		asKept = ", as a tuning has kept " + strings.Join(kept, ", ")
		if len(kept) < len(off) {
			mend = slices.DeleteFunc(slices.Clone(off), func(short string) bool { return slices.Contains(kept, short) })
		}
	}
	switch {
	case seen == 0:
		return f.missing("offloads of "+f.Name, "offloads")
	case len(off) == 1 && off[0] == "gro":
		return warn("GRO of %s: off%s", f.Name, asKept).because("without GRO the stack takes every packet alone: up to 40%% of rate and CPU").do(offloadsOn(f, off))
	case len(off) > 0:
		return warn("%s of %s: off%s", strings.Join(offWords, ", "), f.Name, asKept).do(offloadsOn(f, mend))
	case len(fixed) > 0 && f.speed() == 0 && !f.device():
		return pass("%s of %s: off, its kind has none", strings.Join(fixed, ", "), f.Name)
	case len(fixed) > 0:
		return warn("%s of %s: off, and its driver has none", strings.Join(fixed, ", "), f.Name)
	}
	return pass("%d of %d offloads of %s are on", set, seen, f.Name)
}

// fixed tells whether the driver cannot change an offload. Groups of ethtool
// are fixed where their parts are.
func (f *face) fixed(name string) bool {
	parts := map[string][]string{
		"tcp-segmentation-offload": {"tx-tcp-segmentation"}, "generic-segmentation-offload": {"tx-generic-segmentation"},
		"generic-receive-offload": {"rx-gro"}, "scatter-gather": {"tx-scatter-gather"}, "rx-checksumming": {"rx-checksum"},
		"tx-checksumming": {"tx-checksum-ip-generic", "tx-checksum-ipv4"},
	}
	return slices.ContainsFunc(append(parts[name], name), func(part string) bool { return slices.Contains(f.Fixed, part) })
}

func lroForwarding(f *face) *finding {
	if !f.Offloads["large-receive-offload"] {
		return nil
	}
	forwards, known := f.host.sysctl("net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding", "net.inet.ip.forwarding")
	bridged := f.Master != nil && f.host.isBridge(*f.Master)
	switch {
	case bridged:
		return warn("LRO is on at %s, which is in the bridge %s", f.Name, *f.Master).do(lroOff(f))
	case forwards != "" && forwards != "0":
		return warn("LRO is on at %s, and the host routes", f.Name).do(lroOff(f))
	case !known || forwards == "":
		return f.host.missing("whether the host routes, with LRO on at "+f.Name, "sysctls.net.ipv4.ip_forward", "sysctls.net.inet.ip.forwarding")
	}
	return pass("LRO is on at %s, and the host passes nothing on", f.Name)
}

// isBridge tells whether an interface of that name is a bridge.
func (h *host) isBridge(name string) bool {
	i := h.Interface(name)
	return i != nil && (i.Bridge != nil || i.Kind != nil && *i.Kind == "bridge")
}
