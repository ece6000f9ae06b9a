package platform

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// This file reads what FreeBSD and macOS have in common: ifconfig, netstat,
// ntpq and the settings of their TCP stacks.

// readID reads the output of `id -u`: 0 is root.
func readID(all []string, r *reading) error {
	n, ok := number(all[0])
	if !ok {
		return fmt.Errorf("%.40q is not a user", all[0])
	}
	r.facts.Privileged = new(n == 0)
	return nil
}

// readNTP reads the peers of `ntpq -pn`: the clock follows the one with a
// star (ntpq(8)). The column before the last is its offset in ms.
func readNTP(all []string, r *reading) error {
	if !strings.Contains(all[0], "remote") {
		return fmt.Errorf("no list of peers: %.60q", all[0])
	}
	clock := at(&r.facts.Clock)
	clock.Synchronised = new(false)
	for _, line := range all[1:] {
		parts := strings.Fields(line)
		if !strings.HasPrefix(line, "*") && !strings.HasPrefix(line, "o") || len(parts) < 10 {
			continue
		}
		clock.Synchronised = new(true)
		if ms, err := strconv.ParseFloat(parts[len(parts)-2], 64); err == nil && ms > -1e9 && ms < 1e9 {
			clock.OffsetNs = new(int64(ms * 1e6))
		}
	}
	return nil
}

// readIfconfig reads `ifconfig -a` in the format of FreeBSD and macOS: a line
// that is not indented begins an interface.
func readIfconfig(all []string, r *reading) error {
	var name string
	found := 0
	for _, line := range all {
		if m := head().FindStringSubmatch(line); m != nil {
			name = m[1]
			if r.port(name); r.known(name) == nil {
				return fmt.Errorf("more than %d interfaces", maxPorts)
			}
			readHead(r.port(name), m)
			found++
		} else if name != "" && strings.TrimSpace(line) != "" && (line[0] == '\t' || line[0] == ' ') {
			readDetail(r.port(name), strings.TrimSpace(line))
		}
	}
	if found == 0 {
		return fmt.Errorf("no interface in %.60q", all[0])
	}
	for i := range r.facts.Interfaces {
		settle(&r.facts.Interfaces[i])
	}
	r.seePorts("addresses")
	return nil
}

// The formats of ifconfig: the first line of an interface, and parts of its
// other lines.
var (
	head  = unit.Pattern(`^([^\s:]+): flags=[0-9a-fx]+<([^>]*)>(?:.* mtu (\d+))?`)
	angle = unit.Pattern(`<([^>]*)>`)
	media = unit.Pattern(`(?i)\b(\d{1,6}(?:\.\d)?)(G?)base`)
)

// readHead reads "ix0: flags=8863<UP,...> metric 0 mtu 1500".
func readHead(i *measure.Interface, m []string) {
	flags := strings.Split(m[2], ",")
	i.Up = new(slices.Contains(flags, "UP"))
	i.MTU = Count(m[3])
	if slices.Contains(flags, "LOOPBACK") {
		i.Kind, i.Nominal = new(loopback), new(true)
	}
}

// readDetail reads one indented line of an interface: a keyword and values.
func readDetail(i *measure.Interface, line string) {
	word, rest, _ := strings.Cut(line, " ")
	parts := strings.Fields(rest)
	first := ""
	if len(parts) > 0 {
		first = parts[0]
	}
	name, _, _ := strings.Cut(word, "=")
	switch strings.TrimSuffix(name, ":") {
	case "options":
		bsdOffloads(i, line, nil)
	case "capabilities":
		bsdOffloads(i, "", listed(line))
	case "ether", "lladdr":
		i.MAC = cmp.Or(i.MAC, text(first))
	case "inet", "inet6":
		addAddr(i, parts...)
	case "media":
		if strings.HasSuffix(word, ":") { // words without a colon are supported values
			readMedia(i, line)
		}
	case "status":
		i.Carrier = carrier(rest)
	case "laggproto", "laggport", "bond", "member", "vlan", "tunnel", "groups":
		readStacked(i, strings.TrimSuffix(name, ":"), first, line)
	}
}

// carrier reads the status of a link.
func carrier(status string) *bool {
	switch status {
	case "active", "associated":
		return new(true)
	case "no carrier", "inactive":
		return new(false)
	}
	return nil
}

// listed returns the names between the angle brackets of a line.
func listed(line string) []string {
	if m := angle().FindStringSubmatch(line); m != nil {
		return strings.Split(m[1], ",")
	}
	return nil
}

// bsdNames maps the offloads of ifconfig(8) to ethtool's names.
func bsdNames() map[string][]string {
	return map[string][]string{
		"tcp-segmentation-offload": {"TSO4", "TSO6"},
		"tx-tcp-segmentation":      {"TSO4"},
		"tx-tcp6-segmentation":     {"TSO6"},
		"large-receive-offload":    {"LRO"},
		"rx-checksumming":          {"RXCSUM", "RXCSUM_IPV6"},
		"tx-checksumming":          {"TXCSUM", "TXCSUM_IPV6"},
	}
}

// bsdOffloads reads the options that are on, or the capabilities: an offload
// that is not a capability is fixed.
func bsdOffloads(i *measure.Interface, options string, able []string) {
	on := listed(options)
	has := func(list, names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
	}
	for name, names := range bsdNames() {
		if options != "" {
			offload(i, name, has(on, names))
		} else if !has(able, names) {
			offload(i, name, false)
			i.Fixed = append(i.Fixed, name)
		}
	}
	slices.Sort(i.Fixed)
	i.Fixed = slices.Compact(i.Fixed)
}

// prefix returns an address of ifconfig with its prefix length.
func prefix(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	first, _, _ := strings.Cut(parts[0], "%")
	if p, err := netip.ParsePrefix(first); err == nil {
		return p.String() // FreeBSD with -f inet:cidr
	}
	a, err := netip.ParseAddr(first)
	if err != nil {
		return ""
	}
	for n, word := range parts[:len(parts)-1] {
		length := -1
		switch word {
		case "netmask":
			length = maskLength(parts[n+1])
		case "prefixlen":
			if v, ok := number(parts[n+1]); ok {
				length = int(min(v, 1<<20))
			}
		}
		if p := netip.PrefixFrom(a, length); length >= 0 && p.IsValid() {
			return p.String()
		}
	}
	return a.String()
}

// maskLength counts the ones of "0xffffff00"; -1 where it is no mask.
func maskLength(mask string) int {
	v, err := strconv.ParseUint(mask, 0, 32)
	if err != nil {
		return -1
	}
	n := bits.LeadingZeros32(^uint32(v))
	if uint32(v)<<n != 0 {
		return -1
	}
	return n
}

// addAddr adds an address of ifconfig to an interface, if it is valid.
func addAddr(i *measure.Interface, parts ...string) {
	if a := prefix(parts); a != "" {
		i.Addrs = append(i.Addrs, a)
	}
}

// readMedia reads "media: Ethernet autoselect (10Gbase-T <full-duplex,rxpause>)".
func readMedia(i *measure.Interface, line string) {
	_, used, chosen := strings.Cut(line, "(")
	if !chosen {
		used = line
	}
	i.Autoneg = new(strings.Contains(line, "autoselect"))
	if m := media().FindStringSubmatch(used); m != nil {
		unit := 1e6
		if m[2] != "" || strings.Contains(m[1], ".") {
			unit = 1e9
		}
		if n, err := strconv.ParseFloat(m[1], 64); err == nil && n > 0 {
			i.SpeedBps = new(int64(n * unit))
		}
	}
	words := listed(used)
	has := func(w string) bool { return slices.Contains(words, w) }
	switch {
	case has("full-duplex"):
		i.Duplex = new("full")
	case has("half-duplex"):
		i.Duplex = new("half")
	}
	if both := has("flow-control"); both || has("rxpause") || has("txpause") {
		i.Pause = &measure.Pause{Autoneg: *i.Autoneg, RX: both || has("rxpause"), TX: both || has("txpause")}
	}
}

// readStacked reads the lines of interfaces that have lower interfaces.
func readStacked(i *measure.Interface, word, first, line string) {
	switch word {
	case "laggproto":
		i.Kind = new(bond)
		b := at(&i.Bond)
		b.Mode = first
		if _, hash, ok := strings.Cut(line, "lagghash "); ok {
			b.Hash = strings.Fields(hash + " ")[0]
		}
	case "laggport":
		i.Lower = append(i.Lower, first)
		b := at(&i.Bond)
		b.Members = append(b.Members, measure.BondMember{Name: first, Up: slices.Contains(listed(line), "ACTIVE")})
	case "bond": // macOS: "bond interfaces: en3 en4"
		_, members, _ := strings.Cut(line, ":")
		i.Kind, i.Lower = new(bond), strings.Fields(members)
	case "member":
		i.Kind = new(bridge)
		b := at(&i.Bridge)
		b.Ports = append(b.Ports, first)
	case "vlan":
		i.Kind, i.VLAN = new(vlan), Count(first)
		if _, parent, ok := strings.Cut(line, "parent interface: "); ok {
			i.Lower = []string{strings.Fields(parent + " x")[0]}
		}
	case "tunnel":
		i.Kind = new(tunnel)
	case "groups":
		virtual := []string{bridge, vlan, "epair", "tap", "tun", "gif", "gre", "vxlan", "wg", "pflog", "enc"}
		if i.Kind == nil && slices.Contains(virtual, first) {
			i.Kind = new(first)
		}
	}
}

// settle sets the kind of an interface that has none yet: one with a link is
// physical, except those that macOS creates for its own services.
func settle(i *measure.Interface) {
	driver := strings.TrimRight(i.Name, "0123456789")
	if i.Kind == nil && slices.Contains([]string{"awdl", "llw", "ap", "anpi", "utun", "gif", "stf", bridge}, driver) {
		i.Kind = new(driver)
	}
	if i.Kind == nil && i.MAC != nil && (i.Carrier != nil || i.SpeedBps != nil || i.Autoneg != nil) {
		i.Kind = new(physical)
	}
	if i.Kind == nil || !slices.Contains([]string{physical, bond, vlan}, *i.Kind) {
		i.Nominal = new(true)
	}
	if i.Bond != nil && i.Bond.Members == nil {
		i.Bond.Members = []measure.BondMember{}
	}
}

// readNetstat reads errors and drops of `netstat -i -d -b -n`, from the link
// rows, whose Network is "<Link#1>". A row without an address has one column
// less.
func readNetstat(all []string, r *reading) error {
	heads := strings.Fields(all[0])
	if len(heads) < 6 || heads[0] != "Name" {
		return fmt.Errorf("no table of interfaces: %.60q", all[0])
	}
	for _, line := range all[1:] {
		parts := strings.Fields(line)
		if len(parts) < 4 || !strings.HasPrefix(parts[2], "<Link") {
			continue
		}
		if len(parts) == len(heads)-1 {
			parts = slices.Insert(parts, 3, "")
		}
		i := r.known(strings.TrimSuffix(parts[0], "*")) // a star means that it is down
		if i == nil || len(parts) != len(heads) {
			continue
		}
		r.seen[portFact(i.Name, "error_counters")] = true
		for n, h := range heads {
			if slices.Contains([]string{"Ierrs", "Idrop", "Oerrs", "Coll", "Drop"}, h) {
				countError(i, h, parts[n])
			}
		}
	}
	return nil
}

// countError stores an error counter that is not zero.
func countError(i *measure.Interface, name, value string) {
	n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
	if err != nil || n == 0 {
		return
	}
	measure.Put(&i.Errors, name, n)
}

// keep stores the TCP stack settings among the values of sysctl.
func keep(values map[string]string, r *reading) {
	for name, v := range values {
		for _, group := range []string{"kern.ipc.", "net.inet.", "net.isr.", "net.link.", "net.route.", "hw.ix", "hw.vmx"} {
			if strings.HasPrefix(name, group) {
				r.sysctl(name, v)
			}
		}
	}
}

// processors sets the processor counts that sysctl has; each may be absent.
func processors(r *reading, sockets, cores, threads *int) {
	c := at(&r.facts.CPU)
	c.Sockets, c.Cores, c.Threads = sockets, cores, threads
	if cores != nil && threads != nil && *cores > 0 {
		c.SMT = new(*threads > *cores)
	}
	if threads != nil && *threads > 0 {
		r.facts.Cores = threads
	}
}
