package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/cause/knob"
)

// SetMTU changes the MTU of an interface.
func SetMTU(f *Face, mtu int) Remedy {
	lines := f.Typed(knob.MTU, strconv.Itoa(mtu))
	switch f.Host.System {
	case "windows":
		return Commands(cmdletLasts, lines...)
	case "solaris", "illumos":
		return Commands("the interface must be unplumbed for it; "+dladmLasts, lines...)
	}
	if len(lines) == 0 {
		return Advise(fmt.Sprintf("set the MTU to %d", mtu))
	}
	return Commands(LinkMayFlap+"; "+f.Host.lasts(), lines...)
}

// offload is a work that the adapter does for the kernel.
type offload struct {
	Name  string // as in Facts, by ethtool
	Short string // as ethtool -K takes it
	Words string // for people
	Soft  bool   // the kernel's own: any interface can have it
}

// Offloads that a test wants, in the order in which they are shown.
func Offloads() []offload {
	return []offload{
		{"tcp-segmentation-offload", "tso", "TSO", false},
		{"generic-segmentation-offload", "gso", "GSO", true},
		{"generic-receive-offload", "gro", "GRO", true},
		{"scatter-gather", "sg", "scatter-gather", false},
		{"tx-checksumming", "tx", "TX checksum", false},
		{"rx-checksumming", "rx", "RX checksum", false},
	}
}

// OffloadsOn switches offloads on. What others need comes first: segmentation
// needs scatter-gather, which needs checksums.
func OffloadsOn(f *Face, names []string) Remedy {
	n := f.NIC()
	switch f.Host.System {
	case "linux":
		order := []string{"rx", "tx", "sg", "tso", "gso", "gro"}
		slices.SortStableFunc(names, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		return Commands(LinkLasts, Command("ethtool -K %s "+strings.Join(names, " on ")+" on", n))
	case "freebsd", "darwin":
		return Commands(LinkLasts, Command("ifconfig %s tso lro txcsum rxcsum", n))
	case "windows":
		return Commands(cmdletLasts, slices.Concat(f.Typed(knob.TSO, "on"), f.Typed(knob.LRO, "on"), f.Typed(knob.TXChecksum, "on"))...)
	}
	return Worded(f.Host.lasts(), f.Typed(knob.TSO, "on"))
}

// Worded is a remedy where there are commands for it, and none where not.
func Worded(risk string, lines []string) Remedy {
	if len(lines) == 0 {
		return Remedy{}
	}
	return Commands(risk, lines...)
}

// LroOff switches LRO off, for a host that passes packets on.
func LroOff(f *Face) Remedy { return Worded(f.Host.lasts(), f.Typed(knob.LRO, "off")) }

// segmentationOff takes the splitting of what is longer than a packet from the adapter.
func segmentationOff(f *Face) Remedy {
	lines := f.Typed(knob.TSO, "off")
	switch {
	case f.Host.System == "linux": // one command for both
		lines = []string{Command("ethtool -K %s tso off gso off", f.NIC())}
	case len(lines) == 0:
		return Advise("switch TSO and GSO off")
	}
	return Commands("more work for the CPU; "+f.Host.lasts(), lines...)
}

// SetQueues gives an interface more queues. kind is what its driver counts:
// "combined" or "rx".
func SetQueues(f *Face, kind string, count int) Remedy {
	risk := LinkMayFlap + "; " + LinkLasts
	switch f.Host.System {
	case "freebsd":
		risk = "after the next boot"
	case "windows":
		risk = cmdletLasts
	case "solaris", "illumos":
		risk = dladmLasts
	case "esxi":
		risk = "after the next boot; " + EsxcliLasts
	}
	return Worded(risk, f.Typed(knob.Channels, fmt.Sprintf("%s %d", kind, count)))
}

// Spread makes RSS use all queues, and ports as well as addresses.
func Spread(f *Face, queues int) Remedy {
	if f.Host.System == "linux" { // a table for so many queues in turns
		return Commands(LinkLasts, append([]string{Command("ethtool -X %s equal %d", f.NIC(), queues)}, f.Typed(knob.RSSHash, "udp4 sdfn")...)...)
	}
	return Worded(f.Host.lasts(), f.Typed(knob.RSSTable, ""))
}

// SetRing gives a receive queue more descriptors.
func SetRing(f *Face, count int) Remedy {
	risk := LinkMayFlap + "; " + LinkLasts
	switch f.Host.System {
	case "freebsd":
		risk = "after the next boot"
	case "windows":
		risk = cmdletLasts
	case "esxi":
		risk = LinkMayFlap
	}
	return Worded(risk, f.Typed(knob.RXRing, strconv.Itoa(count)))
}
