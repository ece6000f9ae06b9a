package platform

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"thru/internal/measure"
)

// This file reads ESXi's physical interfaces, virtual switches and VMkernel
// interfaces.

// readNICList takes the physical interfaces. Speed is in Mb/s, 0 without a
// link; a column "Link" instead of two was that of old versions.
func readNICList(in io.Reader, r *reading) error {
	rows, err := table(in)
	if err != nil {
		return err
	}
	for _, w := range rows {
		name := w["name"]
		if !plain(name) {
			continue
		}
		i := r.port(name)
		i.Kind, i.Driver, i.Bus, i.MAC, i.MTU = new(physical), text(w["driver"]), text(w["pcidevice"]), text(w["macaddress"]), count(w["mtu"])
		i.Up, i.Carrier = truth(w["adminstatus"]), truth(w["linkstatus"])
		if i.Carrier == nil {
			i.Carrier = truth(w["link"])
		}
		if bps := many(w["speed"], 1_000_000); bps != nil && *bps > 0 {
			i.SpeedBps = bps
			if d := strings.ToLower(w["duplex"]); d == "full" || d == "half" { // without a link it says Half
				i.Duplex = &d
			}
		}
		if i.Driver != nil { // nvmxnet3 in a nested host
			i.Nominal = new(strings.Contains(*i.Driver, "vmxnet3"))
		}
	}
	return nil
}

// readPCIList takes the numbers of the devices, and their NUMA node.
func readPCIList(in io.Reader, r *reading) error {
	list, err := blocks(in)
	for _, w := range list {
		i := r.known(w["vmkernelname"])
		if i == nil {
			continue
		}
		p := at(&i.PCI)
		p.Vendor, p.Device = said(w["vendorid"]), said(w["deviceid"])
		i.NUMANode = count(w["numanode"])
	}
	return err
}

// nics takes the rows of a table about interfaces that are known.
func nics(in io.Reader, r *reading, each func(*measure.Interface, row)) error {
	rows, err := table(in)
	for _, w := range rows {
		if i := r.known(w["nic"]); i != nil {
			each(i, w)
		}
	}
	return err
}

// readQueueCount takes the NetQueues in use.
func readQueueCount(in io.Reader, r *reading) error {
	return nics(in, r, func(i *measure.Interface, w row) {
		i.Queues, i.TxQueues = count(w["rxnetqueuecount"]), count(w["txnetqueuecount"])
	})
}

// readCoalesce takes the interrupt moderation, where the driver says all of it.
func readCoalesce(in io.Reader, r *reading) error {
	return nics(in, r, func(i *measure.Interface, w row) {
		rx, tx := many(w["rxmicroseconds"], 1000), many(w["txmicroseconds"], 1000)
		rxFrames, txFrames := count(w["rxmaximumframes"]), count(w["txmaximumframes"])
		arx, atx := truth(w["adaptiverx"]), truth(w["adaptivetx"])
		if rx != nil && tx != nil && rxFrames != nil && txFrames != nil && arx != nil && atx != nil {
			i.Coalesce = &measure.Coalesce{AdaptiveRX: *arx, AdaptiveTX: *atx, RXNs: *rx, RXFrames: *rxFrames, TXNs: *tx, TXFrames: *txFrames}
			return
		}
		r.blame(portFact(i.Name, "coalescing"), fmt.Sprintf("the driver says only a part: receive %s us, transmit %s us, frames %s and %s",
			w["rxmicroseconds"], w["txmicroseconds"], w["rxmaximumframes"], w["txmaximumframes"]))
	})
}

// readPause takes the flow control.
func readPause(in io.Reader, r *reading) error {
	return nics(in, r, func(i *measure.Interface, w row) {
		rx, tx, auto := truth(w["pauserx"]), truth(w["pausetx"]), truth(w["autonegotiation"])
		if rx != nil && tx != nil && auto != nil {
			i.Pause = &measure.Pause{Autoneg: *auto, RX: *rx, TX: *tx}
		}
	})
}

// nicValue takes one offload of each interface: a table of NIC and Value.
func nicValue(names ...string) func(io.Reader, *reading) error {
	return func(in io.Reader, r *reading) error {
		return nics(in, r, func(i *measure.Interface, w row) {
			if on := truth(w["value"]); on != nil {
				for _, n := range names {
					offload(i, n, *on)
				}
			}
		})
	}
}

// nicChecksum takes the checksum offload, whose table has headings of its own
// in some versions ("RX Checksum Offload", "TX Checksum Offload").
func nicChecksum(in io.Reader, r *reading) error {
	return nics(in, r, func(i *measure.Interface, w row) {
		for _, c := range [][2]string{{"rxchecksumoffload", "rx-checksumming"}, {"txchecksumoffload", "tx-checksumming"}, {"value", "tx-checksumming"}} {
			if on := truth(w[c[0]]); on != nil {
				offload(i, c[1], *on)
			}
		}
	})
}

// readSwitches takes virtual switches of a kind: a block each, titled with
// the name.
func readSwitches(kind string) func(io.Reader, *reading) error {
	return func(in io.Reader, r *reading) error {
		list, err := blocks(in)
		if errors.Is(err, errNothing) {
			return nil // there is none of the kind
		}
		for _, w := range list {
			name := said(w["name"])
			if name == "" || w["uplinks"] == "" && w["mtu"] == "" {
				continue
			}
			i := r.port(name)
			i.Kind, i.MTU, i.Nominal = &kind, count(w["mtu"]), new(true)
			i.Lower = words(w["uplinks"])
			i.Bridge = &measure.Bridge{Ports: append([]string{}, i.Lower...)}
			r.switches = append(r.switches, kind+" "+name)
		}
		return err
	}
}

// words are the parts of a list that are separated by commas.
func words(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' })
}

// readVmk takes the interfaces of the VMkernel itself: a block each.
func readVmk(in io.Reader, r *reading) error {
	list, err := blocks(in)
	for _, w := range list {
		name := said(w["name"])
		if !plain(name) {
			continue
		}
		i := r.port(name)
		i.Kind, i.MTU, i.MAC, i.Up, i.Nominal = new("vmkernel"), count(w["mtu"]), text(w["macaddress"]), truth(w["enabled"]), new(true)
		for _, key := range []string{"portset", "vdsname"} {
			if i.Master == nil {
				i.Master = text(w[key])
			}
		}
		// "TSO MSS" is the largest burst that the VMkernel port gives to the
		// interface: 0 is off (C-25).
		if n, ok := w.number("tsomss"); ok {
			offload(i, "tcp-segmentation-offload", n > 0)
		}
	}
	return err
}

// readVmkAddrs takes the addresses of the VMkernel's interfaces.
func readVmkAddrs(in io.Reader, r *reading) error {
	rows, err := table(in)
	for _, w := range rows {
		i := r.known(w["name"])
		a, err1 := netip.ParseAddr(w["ipv4address"])
		mask, err2 := netip.ParseAddr(w["ipv4netmask"])
		if i == nil || err1 != nil || err2 != nil || !a.Is4() || !mask.Is4() || a.IsUnspecified() {
			continue
		}
		b := mask.As4()
		if n := maskLength(fmt.Sprintf("0x%x", b[:])); n >= 0 {
			i.Addrs = append(i.Addrs, netip.PrefixFrom(a, n).String())
		}
	}
	if err == nil {
		r.seePorts("addresses")
	}
	return err
}

// readNIC takes driver and firmware of one interface.
func readNIC(in io.Reader, r *reading) error {
	w, err := block(in)
	i := r.known(r.nic)
	if err != nil || i == nil {
		return err
	}
	i.Version, i.Firmware, i.Autoneg, i.Port = text(w["version"]), text(w["firmwareversion"]), truth(w["autonegotiation"]), text(strings.ToLower(w["cabletype"]))
	for mode := range strings.SplitSeq(w["advertisedlinkmodes"], ",") {
		if m := media.FindStringSubmatch(strings.TrimSpace(mode)); m != nil && m[2] == "" {
			if bps := many(m[1], 1_000_000); bps != nil && (i.MaxBps == nil || *i.MaxBps < *bps) {
				i.MaxBps = bps
			}
		}
	}
	return nil
}

// readRings takes the descriptors in use, readRingsMax those that could be.
func readRings(in io.Reader, r *reading) error {
	return r.ring(in, func(g *measure.Rings, rx, tx int) { g.RX, g.TX = rx, tx })
}

func readRingsMax(in io.Reader, r *reading) error {
	return r.ring(in, func(g *measure.Rings, rx, tx int) { g.RXMax, g.TXMax = rx, tx })
}

// ring reads one half of what Rings has; both are needed for it.
func (r *reading) ring(in io.Reader, set func(g *measure.Rings, rx, tx int)) error {
	w, err := block(in)
	if err != nil {
		return err
	}
	rx, tx := count(w["rx"]), count(w["tx"])
	if rx == nil || tx == nil {
		return fmt.Errorf("neither RX nor TX in %d values", len(w))
	}
	set(r.ringsOf(r.nic), *rx, *tx)
	return nil
}

// readNICStats takes the counters of errors and drops that are not zero.
func readNICStats(in io.Reader, r *reading) error {
	all, err := lines(in)
	i := r.known(r.nic)
	if err != nil || i == nil {
		return err
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

// readParameters takes the parameters of a driver that somebody has set: its
// queues (RSS, DRSS) among them.
func readParameters(in io.Reader, r *reading) error {
	rows, err := table(in)
	if i := r.known(r.nic); err == nil && i != nil && i.Driver != nil {
		r.seen["settings_changed"] = true
		for _, w := range rows {
			if name, value := said(w["name"]), said(w["value"]); name != "" && value != "" {
				r.changed(*i.Driver+"."+name, value)
			}
		}
	}
	return err
}
