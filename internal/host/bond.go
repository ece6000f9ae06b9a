package host

import (
	"bufio"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// bond reads what a group of interfaces is: /proc/net/bonding as the calling
// thread's network namespace has it, or, where that is masked, sysfs. Only
// root sees the aggregator in the first, everybody in the second.
func (u *subject) bond() (measure.Bond, error) {
	b, err := parsed(u.fs.net, "bonding/"+u.name, parseBond)
	if u.sysfs != nil {
		return b, err
	}
	dir := path.Join("sys/class/net", u.name, "bonding")
	if err != nil {
		if b, err = u.bondOfSysfs(dir); err != nil {
			return b, err
		}
	}
	if n, err := u.fs.number(path.Join(dir, "ad_aggregator")); err == nil && b.Mode == "802.3ad" {
		b.Aggregate = &n
	}
	return b, nil
}

// bondOfSysfs reads the files of Documentation/networking/bonding.rst, each a
// name and its number.
func (u *subject) bondOfSysfs(dir string) (measure.Bond, error) {
	mode, err := u.fs.text(path.Join(dir, "mode"))
	if err != nil {
		return measure.Bond{}, err
	}
	name := func(file string) string {
		s, _, _ := strings.Cut(u.fs.optional(path.Join(dir, file)), " ")
		return s
	}
	b := measure.Bond{Active: name("active_slave"), Members: []measure.BondMember{}}
	b.Mode, _, _ = strings.Cut(mode, " ")
	if hashes(b.Mode) {
		b.Hash = name("xmit_hash_policy")
	}
	if b.Mode == "802.3ad" {
		b.LACP = name("lacp_rate")
	}
	for member := range strings.FieldsSeq(u.fs.optional(path.Join(dir, "slaves"))) {
		m := measure.BondMember{Name: member}
		at := path.Join("sys/class/net", member)
		m.Up = u.fs.optional(path.Join(at, "bonding_slave/mii_status")) == "up"
		if v, err := u.fs.speed(member); err == nil {
			m.SpeedBps = &v
		}
		if n, err := u.fs.number(path.Join(at, "bonding_slave/ad_aggregator_id")); err == nil {
			m.Aggregate = &n
		}
		n, _ := u.fs.number(path.Join(at, "bonding_slave/link_failure_count"))
		m.Failures = int64(n)
		b.Members = append(b.Members, m)
	}
	return b, nil
}

// hashes tells whether a mode spreads packets by a hash.
func hashes(mode string) bool {
	return mode == "802.3ad" || mode == "balance-xor" || mode == "balance-tlb"
}

// parseBond reads a file of /proc/net/bonding: lines of "key: value", first of
// the bond, then of each member after a line "Slave Interface"
// (drivers/net/bonding/bond_procfs.c).
func parseBond(r io.Reader) (measure.Bond, error) {
	b := measure.Bond{Members: []measure.BondMember{}}
	var m *measure.BondMember
	s := bufio.NewScanner(r)
	for s.Scan() {
		key, value, ok := strings.Cut(strings.TrimSpace(s.Text()), ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok:
		case key == "Slave Interface":
			b.Members = append(b.Members, measure.BondMember{Name: value})
			m = &b.Members[len(b.Members)-1]
		case m == nil:
			bondLine(&b, key, value)
		default:
			memberLine(m, key, value)
		}
	}
	if b.Mode == "" {
		return b, errors.Join(errors.New("no mode of a bond"), s.Err())
	}
	return b, s.Err()
}

// bondLine takes one line of the bond itself.
func bondLine(b *measure.Bond, key, value string) {
	switch key {
	case "Bonding Mode":
		b.Mode = bondMode(value)
	case "Transmit Hash Policy":
		b.Hash, _, _ = strings.Cut(value, " ")
	case "Currently Active Slave":
		if value != "None" {
			b.Active = value
		}
	case "LACP rate":
		b.LACP = value
	case "Aggregator ID": // below "Active Aggregator Info", for root
		if n, err := strconv.Atoi(value); err == nil {
			b.Aggregate = &n
		}
	}
}

// bondMode gives the name by which a mode is set; the file describes it.
func bondMode(s string) string {
	for _, m := range []struct{ said, name string }{
		{"load balancing (round-robin)", "balance-rr"},
		{"fault-tolerance (active-backup)", "active-backup"},
		{"load balancing (xor)", "balance-xor"},
		{"fault-tolerance (broadcast)", "broadcast"},
		{"IEEE 802.3ad", "802.3ad"},
		{"transmit load balancing", "balance-tlb"},
		{"adaptive load balancing", "balance-alb"},
	} {
		if strings.HasPrefix(s, m.said) {
			return m.name
		}
	}
	return s
}

// memberLine takes one line of a member.
func memberLine(m *measure.BondMember, key, value string) {
	switch key {
	case "MII Status":
		m.Up = value == "up"
	case "Speed":
		number, unit, _ := strings.Cut(value, " ")
		if n, err := strconv.ParseInt(number, 10, 32); err == nil && n > 0 && unit == "Mbps" {
			m.SpeedBps = new(n * 1_000_000)
		}
	case "Link Failure Count":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
			m.Failures = n
		}
	case "Aggregator ID":
		if n, err := strconv.Atoi(value); err == nil {
			m.Aggregate = &n
		}
	}
}

// bridgeFacts completes a bridge by what the firewall sees of it: br_netfilter,
// where it is loaded, for all bridges or for this one
// (Documentation/networking/ip-sysctl.rst, bridge-nf-call-iptables).
func (u *subject) bridgeFacts() *measure.Bridge {
	b := *u.link.bridge
	if u.kind != "bridge" {
		return &b // Open vSwitch has a firewall of its own
	}
	own := b.Netfilter != nil && *b.Netfilter
	b.Netfilter = nil
	all, err := u.fs.number("proc/sys/net/bridge/bridge-nf-call-iptables")
	switch {
	case err == nil:
		b.Netfilter = new(own || all != 0)
	case u.fs.exists("proc/sys/net"):
		b.Netfilter = new(false) // not loaded
	default:
		u.miss("bridge.calls_iptables", err)
	}
	return &b
}
