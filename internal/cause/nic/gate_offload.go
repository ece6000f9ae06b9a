package nic

import (
	"slices"
	"strings"

	"thru/internal/cause/gate"
)

// SlowLink is the speed up to which a CPU does without the adapter's help.
const SlowLink = 2_500_000_000

// OffloadGates judge what the adapter does for the CPU.
func OffloadGates() []gate.Rule {
	return []gate.Rule{
		{ID: "offloads", Title: "Offloads", About: "segmentation (TSO, GSO), receive offload (GRO), scatter-gather and checksums of the interface and those it lies on",
			Warns:  "one is off; of a link up to 2.5 Gb/s only GSO and GRO count, of a veth all but GRO",
			Why:    "without TSO the CPU makes every packet: 9 of 49 Gb/s between namespaces, 3.4 with all off",
			Source: "measured; C-22: checksums 5 to 15% of the CPU, LRO 40%", Remedy: "switch them on", Cause: "offloads-off", Checklist: []string{"C-22", "C-23", "C-24", "B-19"}, Face: offloadsOf},
		{ID: "lro-forwarding", Title: "LRO of a host that passes packets on", About: "large receive offload where the host routes or the interface is in a bridge",
			Warns:  "LRO is on there",
			Why:    "merged packets exceed the MTU of the next link: they are dropped, and uploads crawl",
			Source: "Linux netdev-features.rst", Remedy: "LRO off (GRO may stay)", Cause: "lro-forwarding", Checklist: []string{"C-22"}, Face: lroForwarding},
	}
}

func offloadsOf(f *gate.Face) *gate.Finding {
	if !f.Device() && f.KindName() != "veth" && !gate.IsLoopback(f.Interface) {
		return nil // VLANs, bonds and tunnels have what lies below them
	}
	if f.Offloads == nil {
		return f.Missing("offloads of "+f.Name, "offloads")
	}
	var off, offWords, fixed []string
	seen, set := 0, 0
	for _, o := range gate.Offloads() {
		on, known := f.Offloads[o.Name]
		if known {
			seen++
		}
		if on {
			set++
		}
		switch {
		case !known || on:
		case o.Short == "gro" && f.KindName() == "veth": // off by default: what arrives was never split
		case !o.Soft && f.Speed() > 0 && f.Speed() <= SlowLink:
		case fixedOfFace(f, o.Name):
			fixed = append(fixed, o.Words)
		default:
			off, offWords = append(off, o.Short), append(offWords, o.Words)
		}
	}
	mend, asKept := off, ""
	if kept := f.KeptOff(off); len(kept) > 0 {
		asKept = ", as a tuning has kept " + strings.Join(kept, ", ")
		if len(kept) < len(off) {
			mend = slices.DeleteFunc(slices.Clone(off), func(short string) bool { return slices.Contains(kept, short) })
		}
	}
	switch {
	case seen == 0:
		return f.Missing("offloads of "+f.Name, "offloads")
	case len(off) == 1 && off[0] == "gro":
		return gate.Warn("GRO of %s: off%s", f.Name, asKept).Because("without GRO the stack takes every packet alone: up to 40%% of rate and CPU").Do(gate.OffloadsOn(f, off))
	case len(off) > 0:
		return gate.Warn("%s of %s: off%s", strings.Join(offWords, ", "), f.Name, asKept).Do(gate.OffloadsOn(f, mend))
	case len(fixed) > 0 && f.Speed() == 0 && !f.Device():
		return gate.Pass("%s of %s: off, its kind has none", strings.Join(fixed, ", "), f.Name)
	case len(fixed) > 0:
		return gate.Warn("%s of %s: off, and its driver has none", strings.Join(fixed, ", "), f.Name)
	}
	return gate.Pass("%d of %d offloads of %s are on", set, seen, f.Name)
}

// fixedOfFace tells whether the driver cannot change an offload. Groups of ethtool
// are fixed where their parts are.
func fixedOfFace(f *gate.Face, name string) bool {
	parts := map[string][]string{
		"tcp-segmentation-offload": {"tx-tcp-segmentation"}, "generic-segmentation-offload": {"tx-generic-segmentation"},
		"generic-receive-offload": {"rx-gro"}, "scatter-gather": {"tx-scatter-gather"}, "rx-checksumming": {"rx-checksum"},
		"tx-checksumming": {"tx-checksum-ip-generic", "tx-checksum-ipv4"},
	}
	return slices.ContainsFunc(append(parts[name], name), func(part string) bool { return slices.Contains(f.Fixed, part) })
}

func lroForwarding(f *gate.Face) *gate.Finding {
	if !f.Offloads["large-receive-offload"] {
		return nil
	}
	forwards, known := f.Host.Sysctl("net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding", "net.inet.ip.forwarding")
	bridged := f.Master != nil && isBridge(f.Host, *f.Master)
	switch {
	case bridged:
		return gate.Warn("LRO is on at %s, which is in the bridge %s", f.Name, *f.Master).Do(gate.LroOff(f))
	case forwards != "" && forwards != "0":
		return gate.Warn("LRO is on at %s, and the host routes", f.Name).Do(gate.LroOff(f))
	case !known || forwards == "":
		return f.Host.Missing("whether the host routes, with LRO on at "+f.Name, "sysctls.net.ipv4.ip_forward", "sysctls.net.inet.ip.forwarding")
	}
	return gate.Pass("LRO is on at %s, and the host passes nothing on", f.Name)
}

// isBridge tells whether an interface of that name is a bridge.
func isBridge(h *gate.Host, name string) bool {
	i := h.Interface(name)
	return i != nil && (i.Bridge != nil || i.Kind != nil && *i.Kind == "bridge")
}
