package host

import (
	"path"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// bond reads how a bond is set up: from /proc/net/bonding in the calling
// thread's network namespace, or from sysfs where that is masked. /proc shows
// the aggregator to root only, sysfs to everybody.
func (u *subject) bond() (measure.Bond, error) {
	b, err := tree.Parsed(u.fs.net, "bonding/"+u.name, parseBond)
	if u.sysfs != nil {
		return b, err
	}
	dir := path.Join("sys/class/net", u.name, "bonding")
	if err != nil {
		if b, err = u.bondOfSysfs(dir); err != nil {
			return b, err
		}
	}
	if n, err := u.fs.Number(path.Join(dir, "ad_aggregator")); err == nil && b.Mode == "802.3ad" {
		b.Aggregate = &n
	}
	return b, nil
}

// bondOfSysfs reads the files of Documentation/networking/bonding.rst. Each
// holds a name and its number.
func (u *subject) bondOfSysfs(dir string) (measure.Bond, error) {
	mode, err := u.fs.Text(path.Join(dir, "mode"))
	if err != nil {
		return measure.Bond{}, err
	}
	name := func(file string) string {
		s, _, _ := strings.Cut(u.fs.Optional(path.Join(dir, file)), " ")
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
	for member := range strings.FieldsSeq(u.fs.Optional(path.Join(dir, "slaves"))) {
		m := measure.BondMember{Name: member}
		at := path.Join("sys/class/net", member)
		m.Up = u.fs.Optional(path.Join(at, "bonding_slave/mii_status")) == "up"
		if v, err := u.fs.speed(member); err == nil {
			m.SpeedBps = &v
		}
		if n, err := u.fs.Number(path.Join(at, "bonding_slave/ad_aggregator_id")); err == nil {
			m.Aggregate = &n
		}
		if n, err := u.fs.Number(path.Join(at, "bonding_slave/link_failure_count")); err == nil {
			m.Failures = new(int64(n))
		}
		b.Members = append(b.Members, m)
	}
	return b, nil
}

// bridgeFacts adds to a bridge whether the firewall filters its frames:
// br_netfilter, where it is loaded, for all bridges or for this one
// (Documentation/networking/ip-sysctl.rst, bridge-nf-call-iptables).
func (u *subject) bridgeFacts() *measure.Bridge {
	b := *u.link.bridge
	if u.kind != "bridge" {
		return &b // Open vSwitch has its own firewall
	}
	own := b.Netfilter != nil && *b.Netfilter
	b.Netfilter = nil
	all, err := u.fs.Number("proc/sys/net/bridge/bridge-nf-call-iptables")
	switch {
	case err == nil:
		b.Netfilter = new(own || all != 0)
	case u.fs.Exists("proc/sys/net"):
		b.Netfilter = new(false) // not loaded
	default:
		u.miss("bridge.calls_iptables", err)
	}
	return &b
}
