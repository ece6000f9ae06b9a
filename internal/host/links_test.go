package host

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

func TestParseLink(t *testing.T) {
	var links []link
	rec := recordedIn(t, "links")
	for _, name := range []string{"lo", "hi-vxlan", "hi-vx6", "hi-vxe", "hi-br", "hi-b0", "hi-mac"} {
		l, err := parseLink(rec[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		l.txLength, l.counters = nil, nil
		links = append(links, l)
	}
	links = append(links, link{name: "hi-v0", index: 3, kind: "veth", lowerIndex: 2}, link{name: "hi-v1", index: 2, kind: "veth", lowerIndex: 3})
	resolve(links)
	up := new(true)
	at := func(name, mac string, index, mtu int) link {
		return link{name: name, mac: mac, index: index, mtu: mtu, maxMTU: new(65535), up: true, carrier: up, qdisc: "noqueue"}
	}
	want := []link{at("lo", "", 1, 65536), at("hi-vxlan", links[1].mac, 4, 1500), at("hi-vx6", links[2].mac, 5, 1430), at("hi-vxe", links[3].mac, 6, 1500),
		at("hi-br", links[4].mac, 7, 1500), at("hi-b0", links[5].mac, 9, 1500), at("hi-mac", links[6].mac, 10, 1500)}
	want[0].maxMTU, want[0].loop = nil, true
	want[1].kind, want[1].tunnel = "vxlan", &measure.Tunnel{Kind: "vxlan", Local: "198.51.100.1", Remote: "198.51.100.2", ID: new(int64(7)), Overhead: 50}
	want[2].kind, want[2].lowerIndex = "vxlan", 3
	want[2].tunnel = &measure.Tunnel{Kind: "vxlan", Local: "fd00:51::1", Remote: "fd00:51::2", ID: new(int64(8)), Overhead: 70, Lower: "hi-v0"}
	want[3].kind, want[3].tunnel = "vxlan", &measure.Tunnel{Kind: "vxlan"}
	want[4].kind, want[4].bridge = "bridge", &measure.Bridge{Ports: []string{"hi-b0"}, STP: new(false), VLANs: new(false), Netfilter: new(false)}
	want[5].kind, want[5].masterIndex, want[5].master, want[5].lowerIndex = "veth", 7, "hi-br", 8
	want[6].kind, want[6].lowerIndex, want[6].lower = "macvlan", 3, []string{"hi-v0"}
	for i := range want {
		if diff := cmp.Diff(want[i], links[i], cmp.AllowUnexported(link{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want[i].name, diff)
		}
	}
	eth0, err := parseLink(rec["eth0"])
	if err != nil || eth0.bus != "virtio" || eth0.at != "virtio2" || eth0.qdisc != "pfifo_fast" || eth0.mac != "02:fc:00:00:00:01" {
		t.Errorf("eth0: %+v, %v", eth0, err)
	}
	for _, b := range [][]byte{nil, rec["lo"][:15], rec["lo"][:16]} {
		if _, err := parseLink(b); err == nil {
			t.Errorf("%d bytes are no link", len(b))
		}
	}
}

// Masters get their members, and no interface has the end of a pair as its
// lower interface.
func TestResolve(t *testing.T) {
	links := []link{
		{name: "eno1", index: 1, masterIndex: 3}, {name: "eno2", index: 2, masterIndex: 3}, {name: "bond0", index: 3, kind: "bond", masterIndex: 5},
		{name: "vnet0", index: 4, kind: "tun", masterIndex: 5}, {name: "br0", index: 5, kind: "bridge"}, {name: "bond0.7", index: 6, kind: "vlan", lowerIndex: 3},
		{name: "red", index: 7, kind: "vrf"}, {name: "eno3", index: 8, masterIndex: 7}, {name: "pod", index: 9, kind: "veth", lowerIndex: 1, masterIndex: 10},
		{name: "ovs-system", index: 10, kind: "openvswitch"}, {name: "far", index: 11, kind: "macvlan", lowerIndex: 1, elsewhere: true},
		{name: "self", index: 12, kind: "vlan", lowerIndex: 12},
	}
	resolve(links)
	type row struct {
		master string
		lower  []string
		ports  []string
	}
	for name, want := range map[string]row{
		"eno1": {"bond0", nil, nil}, "bond0": {"br0", []string{"eno1", "eno2"}, nil}, "br0": {"", []string{"bond0"}, []string{"bond0", "vnet0"}},
		"bond0.7": {"", []string{"bond0"}, nil}, "red": {}, "eno3": {"red", nil, nil}, "pod": {"ovs-system", nil, nil},
		"ovs-system": {"", nil, []string{"pod"}}, "far": {}, "self": {},
	} {
		for _, l := range links {
			if l.name != name {
				continue
			}
			got := row{l.master, l.lower, nil}
			if l.bridge != nil {
				got.ports = l.bridge.Ports
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestParsePPPoE reads /proc/net/pppoe of a host with one modem and of one with two.
func TestParsePPPoE(t *testing.T) {
	const head = "Id       Address              Device\n"
	for text, want := range map[string]*measure.Tunnel{
		"":   nil,
		head: nil,
		head + "00000011 00:11:22:33:44:55     eth0\n":                                      {Kind: "pppoe", Overhead: 8, Lower: "eth0"},
		head + "00000011 00:11:22:33:44:55     eth0\n00000012 00:11:22:33:44:56     eth1\n": {Kind: "pppoe", Overhead: 8},
	} {
		if got := parsePPPoE([]byte(text)); (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestParseTunnel(t *testing.T) {
	native := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	v4 := func(kind uint16, last byte) []byte { return attribute(kind, 192, 0, 2, last) }
	v6 := func(kind uint16, last byte) []byte {
		return attribute(kind, append([]byte{0x20, 1, 0xd, 0xb8, 10: 0}, 0, 0, 0, 0, last)...)
	}
	join := func(all ...[]byte) (b []byte) {
		for _, a := range all {
			b = append(b, a...)
		}
		return b
	}
	type tunnel = measure.Tunnel
	const one, two, one6, two6 = "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"
	for name, c := range map[string]struct {
		kind  string
		data  []byte
		want  *tunnel
		lower int
	}{
		"gre":              {"gre", join(v4(6, 1), v4(7, 2), attribute(1, native(4)...)), &tunnel{Kind: "gre", Local: one, Remote: two, Overhead: 24}, 4},
		"gre, key and sum": {"gre", join(attribute(3, 0xa0, 0), attribute(5, 0, 0, 0, 9)), &tunnel{Kind: "gre", ID: new(int64(9)), Overhead: 32}, 0},
		"gre, key unused":  {"gre", join(attribute(3, 0, 0), attribute(5, 0, 0, 0, 9)), &tunnel{Kind: "gre", Overhead: 24}, 0},
		"gre over fou":     {"gretap", attribute(14, binary.NativeEndian.AppendUint16(nil, 1)...), &tunnel{Kind: "gretap", Overhead: 46}, 0},
		"gretap":           {"gretap", v4(7, 2), &tunnel{Kind: "gretap", Remote: two, Overhead: 38}, 0},
		"ip6gre":           {"ip6gre", join(v6(6, 1), v6(7, 2)), &tunnel{Kind: "ip6gre", Local: one6, Remote: two6, Overhead: 52}, 0},
		"ip6gretap":        {"ip6gretap", attribute(13, native(1)...), &tunnel{Kind: "ip6gretap", Overhead: 58}, 0},
		"gre, external":    {"gre", attribute(18), &tunnel{Kind: "gre"}, 0},
		"ipip":             {"ipip", join(v4(2, 1), v4(3, 2)), &tunnel{Kind: "ipip", Local: one, Remote: two, Overhead: 20}, 0},
		"ipip of all":      {"ipip", join(attribute(2, 0, 0, 0, 0), attribute(3, 0, 0, 0, 0)), &tunnel{Kind: "ipip", Overhead: 20}, 0},
		"sit over gue":     {"sit", attribute(15, binary.NativeEndian.AppendUint16(nil, 2)...), &tunnel{Kind: "sit", Overhead: 32}, 0},
		"ip6tnl":           {"ip6tnl", v6(3, 2), &tunnel{Kind: "ip6tnl", Remote: two6, Overhead: 48}, 0},
		"ip6tnl, no limit": {"ip6tnl", attribute(8, native(1)...), &tunnel{Kind: "ip6tnl", Overhead: 40}, 0},
		"geneve":           {"geneve", join(attribute(1, native(7)...), v4(2, 2)), &tunnel{Kind: "geneve", Remote: two, ID: new(int64(7)), Overhead: 50}, 0},
		"geneve 6":         {"geneve", join(attribute(1, native(7)...), v6(7, 2)), &tunnel{Kind: "geneve", Remote: two6, ID: new(int64(7)), Overhead: 70}, 0},
		"geneve, external": {"geneve", join(attribute(1, native(0)...), attribute(6)), &tunnel{Kind: "geneve"}, 0},
		"vti":              {"vti", join(attribute(3, 0, 0, 0, 5), v4(4, 1), v4(5, 2)), &tunnel{Kind: "vti", Local: one, Remote: two, ID: new(int64(5))}, 0},
		"xfrm":             {"xfrm", join(attribute(1, native(3)...), attribute(2, native(42)...)), &tunnel{Kind: "xfrm", ID: new(int64(42))}, 3},
		"wireguard":        {"wireguard", nil, &tunnel{Kind: "wireguard"}, 0},
		"no tunnel":        {"dummy", v4(2, 1), nil, 0},
	} {
		got, lower := parseTunnel(c.kind, c.data)
		if diff := cmp.Diff(c.want, got); diff != "" || lower != c.lower {
			t.Errorf("%s: lies on %d (-want +got):\n%s", name, lower, diff)
		}
		if got != nil && got.Overhead == 0 && overheadUnknown(c.kind) == nil {
			t.Errorf("%s: no reason for the overhead that is not known", name)
		}
	}
}

func TestParseQstats(t *testing.T) {
	head := []byte{12, 1, 0, 0}
	rx := append(head[:4:4], append(append(attribute(1, 4, 0, 0, 0), attribute(2, 0, 0, 0, 0)...), append(attribute(3, 3, 0, 0, 0), append(attribute(8, 9, 0, 0, 0), attribute(9, 0, 0, 0, 0, 1, 0, 0, 0)...)...)...)...)
	got, err := parseQstats(rx)
	if want := (measure.QueueCounter{Queue: "rx-3", Packets: 9, Bytes: new(uint64(1 << 32))}); !cmp.Equal(want, got) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	tx := append(head[:4:4], append(append(attribute(2, 1, 0, 0, 0), attribute(3, 0, 0, 0, 0)...), attribute(8, 9, 0, 0, 0)...)...)
	if got, err := parseQstats(tx); err == nil {
		t.Errorf("a transmit queue without packets: %+v", got)
	}
	if _, err := parseQstats(head); err == nil {
		t.Error("an answer without a queue")
	}
}
