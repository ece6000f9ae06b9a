package host

import (
	"errors"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// hashes reports whether a bond mode spreads packets by a hash.
func hashes(mode string) bool {
	return mode == "802.3ad" || mode == "balance-xor" || mode == "balance-tlb"
}

// parseBond reads a file of /proc/net/bonding: lines of "key: value", first
// for the bond, then for each member after a line "Slave Interface"
// (drivers/net/bonding/bond_procfs.c).
func parseBond(text string) (measure.Bond, error) {
	b := measure.Bond{Members: []measure.BondMember{}}
	var m *measure.BondMember
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
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
		return b, errors.New("no bonding mode")
	}
	return b, nil
}

// bondLine parses one line about the bond itself.
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

// bondMode returns the mode name that is used to set it; the file holds a
// description.
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

// memberLine parses one line about a member.
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
			m.Failures = &n
		}
	case "Aggregator ID":
		if n, err := strconv.Atoi(value); err == nil {
			m.Aggregate = &n
		}
	}
}
