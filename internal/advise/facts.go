package advise

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/knob"
	"thru/internal/measure"
)

// Names that facts have for knobs.

// sysctls of Linux.
func sysctls() map[string]string {
	return map[string]string{
		knob.TCPRmem: "net.ipv4.tcp_rmem", knob.TCPWmem: "net.ipv4.tcp_wmem", knob.RmemMax: "net.core.rmem_max", knob.WmemMax: "net.core.wmem_max",
		knob.WindowScaling: "net.ipv4.tcp_window_scaling", knob.SACK: "net.ipv4.tcp_sack", knob.Timestamps: "net.ipv4.tcp_timestamps",
		knob.MTUProbing: "net.ipv4.tcp_mtu_probing", knob.DefaultQdisc: "net.core.default_qdisc",
		knob.SlowStartIdle: "net.ipv4.tcp_slow_start_after_idle", knob.NoMetricsSave: "net.ipv4.tcp_no_metrics_save",
		knob.Backlog: "net.core.netdev_max_backlog", knob.Budget: "net.core.netdev_budget",
	}
}

// offload is a work that the adapter does for the kernel.
type offload struct {
	knob, name string   // its name in Facts
	parts      []string // of which one that the driver cannot change fixes it
}

// offloads in the order in which they are switched on: segmentation needs
// scatter-gather, which needs checksums.
func offloads() []offload {
	return []offload{
		{knob.RXChecksum, "rx-checksumming", []string{"rx-checksum"}},
		{knob.TXChecksum, "tx-checksumming", []string{"tx-checksum-ip-generic", "tx-checksum-ipv4"}},
		{knob.ScatterGather, "scatter-gather", []string{"tx-scatter-gather"}},
		{knob.TSO, "tcp-segmentation-offload", []string{"tx-tcp-segmentation"}},
		{knob.GSO, "generic-segmentation-offload", []string{"tx-generic-segmentation"}},
		{knob.GRO, "generic-receive-offload", []string{"rx-gro"}},
		{knob.LRO, "large-receive-offload", nil},
	}
}

// isOffload tells whether a knob is one of them.
func isOffload(id string) bool {
	return slices.ContainsFunc(offloads(), func(o offload) bool { return o.knob == id })
}

// fromFacts reads a knob out of the facts, in the form that the agent gives it.
func (h *host) fromFacts(id, iface string) state {
	f := h.facts
	if name, ok := sysctls()[id]; ok {
		v, ok := f.Sysctls[name]
		return state{value: strings.Join(strings.Fields(v), " "), known: ok && h.isLinux()}
	}
	switch id {
	case knob.Congestion:
		if f.Congestion != nil {
			return state{value: *f.Congestion, known: true, possible: strings.Join(f.CongAvail, " ")}
		}
	case knob.Governor:
		if f.CPU != nil && len(f.CPU.Governors) == 1 {
			return state{value: f.CPU.Governors[0], known: true, possible: strings.Join(f.CPU.Available, " ")}
		}
	}
	if i := f.Interface(iface); i != nil {
		return ofInterface(id, i)
	}
	return state{}
}

// ofInterface is the same of a knob of an interface.
func ofInterface(id string, i *measure.Interface) state {
	for _, o := range offloads() {
		if o.knob == id {
			return ofOffload(o, i)
		}
	}
	switch {
	case id == knob.MTU && i.MTU != nil:
		return limited(*i.MTU, value(i.MaxMTU))
	case id == knob.TxQueueLen && i.TxLength != nil:
		return limited(*i.TxLength, 0)
	case id == knob.RXRing && i.Rings != nil:
		return limited(i.Rings.RX, i.Rings.RXMax)
	case id == knob.TXRing && i.Rings != nil:
		return limited(i.Rings.TX, i.Rings.TXMax)
	case id == knob.Channels && i.Channels != nil:
		c := i.Channels
		return state{value: channels(c.Combined, c.RX, c.TX), known: true, possible: channels(c.CombinedMax, c.RXMax, c.TXMax)}
	case id == knob.Coalescing && i.Coalesce != nil:
		return state{value: fmt.Sprintf("adaptive-rx %s rx-usecs %d", onOff(i.Coalesce.AdaptiveRX), i.Coalesce.RXNs/1000), known: true}
	case id == knob.Pause && i.Pause != nil:
		return state{value: fmt.Sprintf("autoneg %s rx %s tx %s", onOff(i.Pause.Autoneg), onOff(i.Pause.RX), onOff(i.Pause.TX)), known: true}
	case id == knob.Qdisc && i.Qdisc != nil:
		return state{value: *i.Qdisc, known: true}
	}
	parts := ofParts(id, i)
	return state{value: strings.Join(parts, " "), known: len(parts) > 0}
}

// ofParts is the same of a knob that covers several elements, by name and value.
func ofParts(id string, i *measure.Interface) (parts []string) {
	switch {
	case id == knob.IRQAffinity:
		for _, q := range i.IRQs {
			parts = append(parts, fmt.Sprint(q.Number), cpuList(q.Allowed))
		}
	case id == knob.RPS && i.Queues != nil: // facts name only the queues for which it is set
		for q := range min(max(*i.Queues, 0), 4096) {
			queue := fmt.Sprintf("rx-%d", q)
			parts = append(parts, queue, maskOfList(i.RPS[queue]))
		}
	case id == knob.RSSHash && i.RSS != nil:
		for _, kind := range slices.Sorted(maps.Keys(i.RSS.Fields)) {
			parts = append(parts, kind, hashed(i.RSS.Fields[kind]))
		}
	}
	return parts
}

// ofOffload is the same of an offload.
func ofOffload(o offload, i *measure.Interface) state {
	on, ok := i.Offloads[o.name]
	s := state{known: ok}
	if ok {
		s.value = onOff(on)
	}
	if slices.ContainsFunc(append([]string{o.name}, o.parts...), func(part string) bool { return slices.Contains(i.Fixed, part) }) {
		s.refused = "the driver of " + i.Name + " cannot change it"
	}
	return s
}

// limited is a number with its greatest; 0 of that is not known.
func limited(n, most int) state {
	s := state{value: fmt.Sprint(n), known: true}
	if most > 0 {
		s.possible = fmt.Sprint(most)
	}
	return s
}

// channels as a driver has them: queues for both, or each kind by itself.
func channels(combined, rx, tx int) string {
	var parts []string
	if combined > 0 {
		parts = append(parts, fmt.Sprintf("combined %d", combined))
	}
	if rx > 0 {
		parts = append(parts, fmt.Sprintf("rx %d", rx))
	}
	if tx > 0 {
		parts = append(parts, fmt.Sprintf("tx %d", tx))
	}
	return strings.Join(parts, " ")
}

// hashed are fields of packets by the letters of ethtool(8), rx-flow-hash.
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

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
