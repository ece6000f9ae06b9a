package knob

import (
	"fmt"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// FromFacts is the value of a knob as the facts of its host tell it, in the
// form of a Setting; "" where they do not. It is for hosts whose agent has not
// been asked for the knob itself. Of other systems than Linux only what has
// the same meaning there is told.
func FromFacts(f *measure.Facts, id, iface string) string {
	if f == nil {
		return ""
	}
	switch id {
	case Congestion:
		return text(f.Congestion)
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

// ofInterface is the value of a knob of an interface.
func ofInterface(i *measure.Interface, id string) string {
	switch {
	case id == MTU:
		return number(i.MTU)
	case id == TxQueueLen:
		return number(i.TxLength)
	case id == Qdisc:
		name, _, _ := strings.Cut(text(i.Qdisc), " ") // "mq fq_codel"
		return name
	case id == RXRing && i.Rings != nil:
		return strconv.Itoa(i.Rings.RX)
	case id == TXRing && i.Rings != nil:
		return strconv.Itoa(i.Rings.TX)
	case id == Channels && i.Channels != nil && i.Channels.Combined > 0:
		return fmt.Sprintf("combined %d", i.Channels.Combined)
	case id == Channels && i.Channels != nil:
		return fmt.Sprintf("rx %d tx %d", i.Channels.RX, i.Channels.TX)
	case id == Pause && i.Pause != nil:
		return fmt.Sprintf("autoneg %s rx %s tx %s", onOff(i.Pause.Autoneg), onOff(i.Pause.RX), onOff(i.Pause.TX))
	}
	if on, ok := i.Offloads[Offload(id)]; ok {
		return onOff(on)
	}
	return ""
}

// Offload is the name that ethtool and the facts have for the offload of that
// id: "tcp-segmentation-offload"; "" where it is none.
func Offload(id string) string {
	return map[string]string{TSO: "tcp-segmentation-offload", GSO: "generic-segmentation-offload", GRO: "generic-receive-offload", LRO: "large-receive-offload",
		TXChecksum: "tx-checksumming", RXChecksum: "rx-checksumming", ScatterGather: "scatter-gather"}[id]
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
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
