package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/knob"
)

// setMTU changes the MTU of an interface.
func setMTU(f *face, mtu int) remedy {
	lines := f.typed(knob.MTU, strconv.Itoa(mtu))
	switch f.host.os {
	case "windows":
		return commands(cmdletLasts, lines...)
	case "solaris", "illumos":
		return commands("the interface must be unplumbed for it; "+dladmLasts, lines...)
	}
	if len(lines) == 0 {
		return advise(fmt.Sprintf("set the MTU to %d", mtu))
	}
	return commands(linkMayFlap+"; "+f.host.lasts(), lines...)
}

// offload is a work that the adapter does for the kernel.
type offload struct {
	name  string // as in Facts, by ethtool
	short string // as ethtool -K takes it
	words string // for people
	soft  bool   // the kernel's own: any interface can have it
}

// offloads that a test wants, in the order in which they are shown.
func offloads() []offload {
	return []offload{
		{"tcp-segmentation-offload", "tso", "TSO", false},
		{"generic-segmentation-offload", "gso", "GSO", true},
		{"generic-receive-offload", "gro", "GRO", true},
		{"scatter-gather", "sg", "scatter-gather", false},
		{"tx-checksumming", "tx", "TX checksum", false},
		{"rx-checksumming", "rx", "RX checksum", false},
	}
}

// offloadsOn switches offloads on. What others need comes first: segmentation
// needs scatter-gather, which needs checksums.
func offloadsOn(f *face, names []string) remedy {
	n := f.nic()
	switch f.host.os {
	case "linux":
		order := []string{"rx", "tx", "sg", "tso", "gso", "gro"}
		slices.SortStableFunc(names, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		return commands(linkLasts, command("ethtool -K %s "+strings.Join(names, " on ")+" on", n))
	case "freebsd", "darwin":
		return commands(linkLasts, command("ifconfig %s tso lro txcsum rxcsum", n))
	case "windows":
		return commands(cmdletLasts, slices.Concat(f.typed(knob.TSO, "on"), f.typed(knob.LRO, "on"), f.typed(knob.TXChecksum, "on"))...)
	}
	return worded(f.host.lasts(), f.typed(knob.TSO, "on"))
}

// worded is a remedy where there are commands for it, and none where not.
func worded(risk string, lines []string) remedy {
	if len(lines) == 0 {
		return remedy{}
	}
	return commands(risk, lines...)
}

// lroOff switches LRO off, for a host that passes packets on.
func lroOff(f *face) remedy { return worded(f.host.lasts(), f.typed(knob.LRO, "off")) }

// segmentationOff takes the splitting of what is longer than a packet from the adapter.
func segmentationOff(f *face) remedy {
	lines := f.typed(knob.TSO, "off")
	switch {
	case f.host.os == "linux": // one command for both
		lines = []string{command("ethtool -K %s tso off gso off", f.nic())}
	case len(lines) == 0:
		return advise("switch TSO and GSO off")
	}
	return commands("more work for the CPU; "+f.host.lasts(), lines...)
}

// setQueues gives an interface more queues. kind is what its driver counts:
// "combined" or "rx".
func setQueues(f *face, kind string, count int) remedy {
	risk := linkMayFlap + "; " + linkLasts
	switch f.host.os {
	case "freebsd":
		risk = "after the next boot"
	case "windows":
		risk = cmdletLasts
	case "solaris", "illumos":
		risk = dladmLasts
	case "esxi":
		risk = "after the next boot; " + esxcliLasts
	}
	return worded(risk, f.typed(knob.Channels, fmt.Sprintf("%s %d", kind, count)))
}

// spread makes RSS use all queues, and ports as well as addresses.
func spread(f *face, queues int) remedy {
	if f.host.os == "linux" { // a table for so many queues in turns
		return commands(linkLasts, append([]string{command("ethtool -X %s equal %d", f.nic(), queues)}, f.typed(knob.RSSHash, "udp4 sdfn")...)...)
	}
	return worded(f.host.lasts(), f.typed(knob.RSSTable, ""))
}

// setRing gives a receive queue more descriptors.
func setRing(f *face, count int) remedy {
	risk := linkMayFlap + "; " + linkLasts
	switch f.host.os {
	case "freebsd":
		risk = "after the next boot"
	case "windows":
		risk = cmdletLasts
	case "esxi":
		risk = linkMayFlap
	}
	return worded(risk, f.typed(knob.RXRing, strconv.Itoa(count)))
}
