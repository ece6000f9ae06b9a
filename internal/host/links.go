package host

import (
	"encoding/binary"
	"errors"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// link holds the kernel's facts about an interface, without those of its
// driver. A fact that is missing is nil or empty.
type link struct {
	name, mac  string
	index, mtu int
	maxMTU     *int
	up, loop   bool
	carrier    *bool
	addrs      []string
	kind       string // of software: "veth", "bond"; empty for devices
	qdisc      string // at the root
	txLength   *int
	bus, at    string            // of the device behind it: "pci", "0000:17:00.0"
	counters   map[string]uint64 // errors and drops that are not zero
	vlan       *int
	tunnel     *measure.Tunnel
	bridge     *measure.Bridge

	// Numbers of other interfaces, and their names (set by resolve).
	masterIndex, lowerIndex int
	elsewhere               bool // lowerIndex belongs to another network namespace
	master                  string
	lower                   []string
}

// Values of rtnetlink (include/uapi/linux/if_link.h).
const (
	sizeofIfinfomsg   = 16
	iflaAddress       = 1
	iflaIfname        = 3
	iflaMTU           = 4
	iflaLink          = 5
	iflaQdisc         = 6
	iflaMaster        = 10
	iflaTxqlen        = 13
	iflaLinkinfo      = 18
	iflaInfoKind      = 1
	iflaInfoData      = 2
	iflaStats64       = 23
	iflaCarrier       = 33
	iflaLinkNetnsid   = 37
	iflaMaxMTU        = 51 // since Linux 4.19
	iflaParentDev     = 56 // since Linux 5.14
	iflaParentDevBus  = 57
	iffUp, iffLoop    = 1, 8
	iflaVlanID        = 1
	iflaBrSTPState    = 5
	iflaBrVLANs       = 7
	iflaBrNFIPTables  = 36
	arphrdEther       = 1
	arphrdInfiniband  = 32
	maxHardwareOctets = 32
)

// parseLink reads one RTM_NEWLINK: struct ifinfomsg, then attributes.
func parseLink(b []byte) (link, error) {
	if len(b) < sizeofIfinfomsg {
		return link{}, errShort
	}
	hardware := binary.NativeEndian.Uint16(b[2:])
	flags := binary.NativeEndian.Uint32(b[8:])
	l := link{index: int(int32(binary.NativeEndian.Uint32(b[4:]))), up: flags&iffUp != 0, loop: flags&iffLoop != 0}
	var info []byte
	for kind, v := range attrs(b[sizeofIfinfomsg:]) {
		switch kind {
		case iflaIfname:
			l.name = cString(v)
		case iflaAddress:
			if hardware == arphrdEther || hardware == arphrdInfiniband {
				l.mac = net.HardwareAddr(v[:min(len(v), maxHardwareOctets)]).String()
			}
		case iflaMTU:
			l.mtu = number32(v)
		case iflaMaxMTU:
			if n := number32(v); n > 0 {
				l.maxMTU = &n
			}
		case iflaLink:
			l.lowerIndex = number32(v)
		case iflaLinkNetnsid:
			l.elsewhere = true
		case iflaQdisc:
			l.qdisc = cString(v)
		case iflaMaster:
			l.masterIndex = number32(v)
		case iflaTxqlen:
			l.txLength = new(number32(v))
		case iflaCarrier:
			l.carrier = new(number8(v) != 0)
		case iflaParentDev:
			l.at = cString(v)
		case iflaParentDevBus:
			l.bus = cString(v)
		case iflaStats64:
			l.counters = linkErrors(v)
		case iflaLinkinfo:
			info = v
		}
	}
	if l.name == "" {
		return l, errShort
	}
	l.kind = cString(attr(info, iflaInfoKind))
	l.describeKind(attr(info, iflaInfoData))
	return l, nil
}

// describeKind reads the attributes of one kind of interface
// (IFLA_INFO_DATA).
func (l *link) describeKind(data []byte) {
	switch l.kind {
	case "vlan":
		if v := attr(data, iflaVlanID); len(v) >= 2 {
			l.vlan = new(int(binary.NativeEndian.Uint16(v)))
		}
	case "bridge":
		l.bridge = &measure.Bridge{Ports: []string{}}
		if v := attr(data, iflaBrSTPState); v != nil {
			l.bridge.STP = new(number32(v) != 0)
		}
		if v := attr(data, iflaBrVLANs); v != nil {
			l.bridge.VLANs = new(number8(v) != 0)
		}
		if v := attr(data, iflaBrNFIPTables); v != nil {
			l.bridge.Netfilter = new(number8(v) != 0)
		}
	default:
		var lower int
		if l.tunnel, lower = parseTunnel(l.kind, data); lower != 0 {
			l.lowerIndex = lower
		}
	}
}

// resolve replaces interface numbers by names and gives each master its
// members.
//
// The lower interface of a VLAN, a macvlan or the like is the one it was
// created on; those of a bond, a team or a netvsc are its members. Those of a
// bridge are the ports by which its frames may leave the host, without the
// ends of virtual machines and containers. A VRF has none, since it is a
// routing table. The interface by which a tunnel's packets leave is
// Tunnel.Lower.
func resolve(links []link) {
	at := map[int]int{}
	for i, l := range links {
		at[l.index] = i
	}
	for i := range links {
		l := &links[i]
		if m, ok := at[l.masterIndex]; ok && l.masterIndex != 0 {
			l.master = links[m].name
			links[m].adopt(*l)
		}
		relativeTo, ok := at[l.lowerIndex]
		if !ok || l.lowerIndex == 0 || l.elsewhere || l.lowerIndex == l.index {
			continue
		}
		switch {
		case l.tunnel != nil:
			l.tunnel.Lower = links[relativeTo].name
		case !paired(l.kind):
			l.lower = append(l.lower, links[relativeTo].name)
		}
	}
}

// adopt adds an interface to its master.
func (l *link) adopt(member link) {
	switch l.kind {
	case "bridge", "openvswitch":
		if l.bridge == nil {
			l.bridge = &measure.Bridge{}
		}
		l.bridge.Ports = append(l.bridge.Ports, member.name)
		if !paired(member.kind) && member.kind != "tun" {
			l.lower = append(l.lower, member.name)
		}
	case "vrf":
	default:
		l.lower = append(l.lower, member.name)
	}
}

// paired reports whether an interface is one end of a pair: its link is the
// other end, and it has no lower interface.
func paired(kind string) bool { return kind == "veth" || kind == "netkit" }

// linkErrors returns the errors and drops of struct rtnl_link_stats64 that
// are not zero, by the names of `ip -s -s link` in JSON and of sysfs.
func linkErrors(b []byte) map[string]uint64 {
	all := map[string]uint64{}
	for i, name := range linkCounters() {
		if name != "" && len(b) >= 8*(i+1) {
			if n := binary.NativeEndian.Uint64(b[8*i:]); n != 0 {
				all[name] = n
			}
		}
	}
	return all
}

// linkCounters names the fields of struct rtnl_link_stats64 that count errors
// and drops, in order; other fields are empty.
func linkCounters() []string {
	return []string{
		"", "", "", "", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "", "collisions",
		"rx_length_errors", "rx_over_errors", "rx_crc_errors", "rx_frame_errors", "rx_fifo_errors", "rx_missed_errors",
		"tx_aborted_errors", "tx_carrier_errors", "tx_fifo_errors", "tx_heartbeat_errors", "tx_window_errors",
	}
}

// cString returns the text before the first zero byte.
func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

// number32 returns a 32-bit attribute; 0 where it is shorter.
func number32(b []byte) int {
	if len(b) < 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(b))
}

// number8 returns an 8-bit attribute; 0 where it is empty.
func number8(b []byte) uint8 {
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

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

// lower names the lower interfaces of a VLAN, a bond or a macvlan. A bridge
// has some too, but its traffic need not leave by them.
func (f FS) lower(name string) []string {
	dir := path.Join("sys/class/net", name)
	if !slices.Contains([]string{"vlan", "bond", "macvlan", "macvtap"}, uevent(f.Optional(path.Join(dir, "uevent")), "DEVTYPE")) {
		return nil
	}
	entries, err := f.Names(dir)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if l, ok := strings.CutPrefix(e, "lower_"); ok {
			list = append(list, l)
		}
	}
	return list
}

// uevent returns one value of a sysfs uevent file: KEY=value lines.
func uevent(text, key string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
