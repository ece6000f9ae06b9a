package platform

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"thru/internal/measure"
)

// This file reads ESXi's physical interfaces, virtual switches and VMkernel
// interfaces.

// readNICList reads the physical interfaces. Speed is in Mb/s, 0 without a
// link; old versions have one column "Link" instead of two.
func readNICList(in string, r *reading) error {
	rows, err := Table(in)
	if err != nil {
		return err
	}
	for _, w := range rows {
		name := w["name"]
		if !Plain(name) {
			continue
		}
		i := r.port(name)
		i.Kind, i.Driver, i.Bus, i.MAC, i.MTU = new(physical), text(w["driver"]), text(w["pcidevice"]), text(w["macaddress"]), Count(w["mtu"])
		i.Up, i.Carrier = Truth(w["adminstatus"]), cmp.Or(Truth(w["linkstatus"]), Truth(w["link"]))
		if bps := Many(w["speed"], 1_000_000); bps != nil && *bps > 0 {
			i.SpeedBps = bps
			if d := strings.ToLower(w["duplex"]); d == "full" || d == "half" { // Half is shown without a link
				i.Duplex = &d
			}
		}
		if i.Driver != nil { // nvmxnet3 in a nested host
			i.Nominal = new(strings.Contains(*i.Driver, "vmxnet3"))
		}
	}
	return nil
}

// readPCIList reads the device numbers and NUMA nodes.
func readPCIList(i *measure.Interface, w Row, _ *reading) {
	p := at(&i.PCI)
	p.Vendor, p.Device = cleanValue(w["vendorid"]), cleanValue(w["deviceid"])
	i.NUMANode = Count(w["numanode"])
}

// nics passes on the table rows of known interfaces.
func nics(each func(*measure.Interface, Row, *reading)) func(string, *reading) error {
	return eachRow(Table, ofPort("nic", each))
}

// readQueueCount reads the number of NetQueues in use.
func readQueueCount(i *measure.Interface, w Row, _ *reading) {
	i.Queues, i.TxQueues = Count(w["rxnetqueuecount"]), Count(w["txnetqueuecount"])
}

// readCoalesce reads the interrupt moderation, where the driver reports all
// of it.
func readCoalesce(i *measure.Interface, w Row, r *reading) {
	rx, tx := Many(w["rxmicroseconds"], 1000), Many(w["txmicroseconds"], 1000)
	rxFrames, txFrames := Count(w["rxmaximumframes"]), Count(w["txmaximumframes"])
	arx, atx := Truth(w["adaptiverx"]), Truth(w["adaptivetx"])
	if rx != nil && tx != nil && rxFrames != nil && txFrames != nil && arx != nil && atx != nil {
		i.Coalesce = &measure.Coalesce{AdaptiveRX: *arx, AdaptiveTX: *atx, RXNs: *rx, RXFrames: *rxFrames, TXNs: *tx, TXFrames: *txFrames}
		return
	}
	r.blame(portFact(i.Name, "coalescing"), fmt.Sprintf("the driver reports only a part: receive %s us, transmit %s us, frames %s and %s",
		w["rxmicroseconds"], w["txmicroseconds"], w["rxmaximumframes"], w["txmaximumframes"]))
}

// readPause reads the flow control.
func readPause(i *measure.Interface, w Row, _ *reading) {
	rx, tx, auto := Truth(w["pauserx"]), Truth(w["pausetx"]), Truth(w["autonegotiation"])
	if rx != nil && tx != nil && auto != nil {
		i.Pause = &measure.Pause{Autoneg: *auto, RX: *rx, TX: *tx}
	}
}

// nicOffload reads one offload of each interface under one of these headings:
// "Value", or in some versions "RX Checksum Offload".
func nicOffload(name string, headings ...string) func(*measure.Interface, Row, *reading) {
	return func(i *measure.Interface, w Row, _ *reading) {
		for _, h := range headings {
			if on := Truth(w[h]); on != nil {
				offload(i, name, *on)
			}
		}
	}
}

// nicChecksum reads the checksum offloads.
func nicChecksum(i *measure.Interface, w Row, r *reading) {
	nicOffload("rx-checksumming", "rxchecksumoffload")(i, w, r)
	nicOffload("tx-checksumming", "txchecksumoffload", "value")(i, w, r)
}

// readSwitches reads virtual switches of one kind: a block each, whose title
// is the name.
func readSwitches(kind string) func(string, *reading) error {
	return func(in string, r *reading) error {
		list, err := Blocks(in)
		if errors.Is(err, errNothing) {
			return nil // no switch of this kind
		}
		for _, w := range list {
			name := cleanValue(w["name"])
			if name == "" || w["uplinks"] == "" && w["mtu"] == "" {
				continue
			}
			i := r.port(name)
			i.Kind, i.MTU, i.Nominal = &kind, Count(w["mtu"]), new(true)
			i.Lower = Words(w["uplinks"])
			i.Bridge = &measure.Bridge{Ports: append([]string{}, i.Lower...)}
			r.switches = append(r.switches, kind+" "+name)
		}
		return err
	}
}

// Words splits a comma-separated list.
func Words(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' })
}

// readVmk reads the VMkernel interfaces: a block each.
func readVmk(w Row, r *reading) {
	name := cleanValue(w["name"])
	if !Plain(name) {
		return
	}
	i := r.port(name)
	i.Kind, i.MTU, i.MAC, i.Up, i.Nominal = new("vmkernel"), Count(w["mtu"]), text(w["macaddress"]), Truth(w["enabled"]), new(true)
	i.Master = cmp.Or(i.Master, text(w["portset"]), text(w["vdsname"]))
	// "TSO MSS" is the largest burst that the VMkernel port passes to the
	// interface: 0 is off (C-25).
	if n, ok := w.number("tsomss"); ok {
		offload(i, "tcp-segmentation-offload", n > 0)
	}
}

// readVmkAddrs reads the addresses of the VMkernel interfaces.
func readVmkAddrs(w Row, r *reading) {
	i := r.known(w["name"])
	a, err1 := netip.ParseAddr(w["ipv4address"])
	mask, err2 := netip.ParseAddr(w["ipv4netmask"])
	if i == nil || err1 != nil || err2 != nil || !a.Is4() || !mask.Is4() || a.IsUnspecified() {
		return
	}
	b := mask.As4()
	if n := maskLength(fmt.Sprintf("0x%x", b[:])); n >= 0 {
		i.Addrs = append(i.Addrs, netip.PrefixFrom(a, n).String())
	}
}

// readNIC reads driver and firmware of one interface.
func readNIC(w Row, r *reading) error {
	i := r.known(r.nic)
	if i == nil {
		return nil
	}
	i.Version, i.Firmware, i.Autoneg, i.Port = text(w["version"]), text(w["firmwareversion"]), Truth(w["autonegotiation"]), text(strings.ToLower(w["cabletype"]))
	for mode := range strings.SplitSeq(w["advertisedlinkmodes"], ",") {
		if m := media().FindStringSubmatch(strings.TrimSpace(mode)); m != nil && m[2] == "" {
			if bps := Many(m[1], 1_000_000); bps != nil && (i.MaxBps == nil || *i.MaxBps < *bps) {
				i.MaxBps = bps
			}
		}
	}
	return nil
}

// readRings reads the configured descriptors, readRingsMax the possible ones.
func readRings(w Row, r *reading) error {
	return r.ring(w, func(g *measure.Rings, rx, tx int) { g.RX, g.TX = rx, tx })
}

func readRingsMax(w Row, r *reading) error {
	return r.ring(w, func(g *measure.Rings, rx, tx int) { g.RXMax, g.TXMax = rx, tx })
}

// ring reads one half of Rings, which needs both.
func (r *reading) ring(w Row, set func(g *measure.Rings, rx, tx int)) error {
	rx, tx := Count(w["rx"]), Count(w["tx"])
	if rx == nil || tx == nil {
		return fmt.Errorf("neither RX nor TX in %d values", len(w))
	}
	set(r.ringsOf(r.nic), *rx, *tx)
	return nil
}

// readNICStats reads the counters of errors and drops that are not zero.
func readNICStats(all []string, r *reading) error {
	i := r.known(r.nic)
	if i == nil {
		return nil
	}
	found := false
	for _, line := range all {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if _, isNumber := number(value); !ok || !isNumber {
			continue
		}
		found = true
		if strings.Contains(key, "error") || strings.Contains(key, "dropped") {
			countError(i, key, value)
		}
	}
	if !found {
		return fmt.Errorf("no counters in %.60q", all[0])
	}
	r.seen[portFact(i.Name, "error_counters")] = true
	return nil
}

// readParameters reads the driver parameters that somebody has set, among
// them its queues (RSS, DRSS).
func readParameters(in string, r *reading) error {
	rows, err := Table(in)
	if i := r.known(r.nic); err == nil && i != nil && i.Driver != nil {
		r.seen["settings_changed"] = true
		for _, w := range rows {
			if name, value := cleanValue(w["name"]), cleanValue(w["value"]); name != "" && value != "" {
				r.changed(*i.Driver+"."+name, value)
			}
		}
	}
	return err
}
