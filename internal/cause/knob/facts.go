package knob

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// FromFacts returns the value of a knob from its host's facts, in the form of a Setting; "" if they lack it. It is
// for hosts whose agent has not been queried for the knob itself. For other systems than Linux it returns only
// values with the same meaning.
func FromFacts(f *measure.Facts, id, iface string) string {
	if f == nil {
		return ""
	}
	switch id {
	case Congestion:
		return measure.Value(f.Congestion)
	case Governor:
		if f.CPU != nil && len(f.CPU.Governors) == 1 {
			return f.CPU.Governors[0]
		}
		return ""
	}
	if name := Sysctl(id); name != "" {
		return strings.Join(strings.Fields(f.Sysctls[name]), " ")
	}
	if i := f.Interface(iface); i != nil {
		return ofInterface(i, id)
	}
	return ""
}

// ofInterface returns the value of a knob of an interface.
func ofInterface(i *measure.Interface, id string) string {
	switch {
	case id == MTU:
		return number(i.MTU)
	case id == TxQueueLen:
		return number(i.TxLength)
	case id == Qdisc:
		name, _, _ := strings.Cut(measure.Value(i.Qdisc), " ") // "mq fq_codel"
		return name
	case id == RXRing && i.Rings != nil:
		return strconv.Itoa(i.Rings.RX)
	case id == TXRing && i.Rings != nil:
		return strconv.Itoa(i.Rings.TX)
	case id == Channels && i.Channels != nil:
		return Queues(i.Channels.Combined, i.Channels.RX, i.Channels.TX)
	case id == Coalescing && i.Coalesce != nil:
		return fmt.Sprintf("adaptive-rx %s rx-usecs %d", onOff(i.Coalesce.AdaptiveRX), i.Coalesce.RXNs/1000)
	case id == Pause && i.Pause != nil:
		return fmt.Sprintf("autoneg %s rx %s tx %s", onOff(i.Pause.Autoneg), onOff(i.Pause.RX), onOff(i.Pause.TX))
	}
	if on, ok := i.Offloads[Offload(id)]; ok {
		return onOff(on)
	}
	return strings.Join(elements(i, id), " ")
}

// Queues returns a value of Channels: the queues of a driver, combined or for each direction.
func Queues(combined, rx, tx int) string {
	var parts []string
	for _, kind := range []struct {
		name  string
		count int
	}{{"combined", combined}, {"rx", rx}, {"tx", tx}} {
		if kind.count > 0 {
			parts = append(parts, kind.name, strconv.Itoa(kind.count))
		}
	}
	return strings.Join(parts, " ")
}

// most limits the numbers of queues and CPUs.
const most = 4096

// elements returns the elements of a knob that covers several, by name and value.
func elements(i *measure.Interface, id string) (parts []string) {
	switch {
	case id == IRQAffinity:
		for _, q := range i.IRQs {
			cpus := slices.DeleteFunc(slices.Clone(q.Allowed), func(c int) bool { return c < 0 || c >= most })
			parts = append(parts, strconv.Itoa(q.Number), unit.List(cpus))
		}
	case id == RPS && i.Queues != nil: // facts name only the queues for which it is set
		for q := range min(max(*i.Queues, 0), most) {
			queue := fmt.Sprintf("rx-%d", q)
			cpus, _ := unit.ParseList(i.RPS[queue], most-1) // none where it is no list
			parts = append(parts, queue, Mask(cpus))
		}
	case id == RSSHash && i.RSS != nil:
		for _, kind := range slices.Sorted(maps.Keys(i.RSS.Fields)) {
			parts = append(parts, kind, hashed(i.RSS.Fields[kind]))
		}
	}
	return parts
}

// hashed returns packet fields by the letters of ethtool(8), rx-flow-hash.
func hashed(fields []string) string {
	letters := ""
	for _, f := range []struct{ name, letter string }{{"src-ip", "s"}, {"dst-ip", "d"}, {"src-port", "f"}, {"dst-port", "n"}} {
		if slices.Contains(fields, f.name) {
			letters += f.letter
		}
	}
	if letters == "" {
		return "-"
	}
	return letters
}

// Offloads returns the offloads in the order in which they are switched on: segmentation needs scatter-gather,
// which needs checksums.
func Offloads() []string {
	return []string{RXChecksum, TXChecksum, ScatterGather, TSO, GSO, GRO, LRO}
}

// IsFixed reports whether the driver of an interface cannot change an offload: a feature group of ethtool is fixed
// if a part of it is.
func IsFixed(i *measure.Interface, id string) bool {
	parts := map[string][]string{RXChecksum: {"rx-checksum"}, TXChecksum: {"tx-checksum-ip-generic", "tx-checksum-ipv4"}, ScatterGather: {"tx-scatter-gather"},
		TSO: {"tx-tcp-segmentation"}, GSO: {"tx-generic-segmentation"}, GRO: {"rx-gro"}}[id]
	return slices.ContainsFunc(append(parts, Offload(id)), func(part string) bool { return slices.Contains(i.Fixed, part) })
}

// Offload returns the name of an offload in ethtool and in the facts: "tcp-segmentation-offload"; "" if the id is
// of none.
func Offload(id string) string {
	return map[string]string{TSO: "tcp-segmentation-offload", GSO: "generic-segmentation-offload", GRO: "generic-receive-offload", LRO: "large-receive-offload",
		TXChecksum: "tx-checksumming", RXChecksum: "rx-checksumming", ScatterGather: "scatter-gather"}[id]
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
