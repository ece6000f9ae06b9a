package live

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"thru/lab"
)

// device creates a TUN or TAP device in a host: the host receives what is
// written to it.
func device(t *testing.T, h *lab.Host, name string, kind uint16) (fd int) {
	t.Helper()
	h.Inside(func() (err error) {
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		request, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		request.SetUint16(kind | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	})
	t.Cleanup(func() { unix.Close(fd) })
	h.IP("link", "set", name, "up")
	return fd
}

// Addresses of the frames below: none of a host here.
const (
	near4, far4 = "192.0.2.1", "192.0.2.2"
	near6, far6 = "2001:db8::1", "2001:db8::2"
)

// ip4 makes an IPv4 packet; options are multiples of 4 bytes.
func ip4(from, to string, protocol byte, fragment uint16, options, payload []byte) []byte {
	b := []byte{0x45 + byte(len(options)/4), 0}
	b = binary.BigEndian.AppendUint16(b, uint16(20+len(options)+len(payload)))
	b = binary.BigEndian.AppendUint16(b, 7)
	b = binary.BigEndian.AppendUint16(b, fragment)
	b = append(b, 64, protocol, 0, 0)
	b = append(b, netip.MustParseAddr(from).AsSlice()...)
	b = append(b, netip.MustParseAddr(to).AsSlice()...)
	sum := uint32(0)
	all := slices.Concat(b, options)
	for i := 0; i < len(all); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(all[i:]))
	}
	binary.BigEndian.PutUint16(all[10:], ^uint16(sum+sum>>16))
	return append(all, payload...)
}

// ip6 makes an IPv6 packet.
func ip6(from, to string, next byte, payload []byte) []byte {
	b := []byte{0x60, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	b = append(b, next, 64)
	b = append(b, netip.MustParseAddr(from).AsSlice()...)
	b = append(b, netip.MustParseAddr(to).AsSlice()...)
	return append(b, payload...)
}

// ports begins a segment of TCP with 300 bytes of data.
func ports(from, to uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, from)
	b = binary.BigEndian.AppendUint16(b, to)
	return append(b, make([]byte, 316)...)
}

// ethernet puts a packet into a frame, with tags of the types given.
func ethernet(packet []byte, tags ...uint16) []byte {
	b := []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8}
	for i, tag := range tags {
		b = binary.BigEndian.AppendUint16(b, tag)
		b = binary.BigEndian.AppendUint16(b, uint16(7+i))
	}
	inner := uint16(unix.ETH_P_IP)
	if packet[0]>>4 == 6 {
		inner = unix.ETH_P_IPV6
	}
	return append(binary.BigEndian.AppendUint16(b, inner), packet...)
}

// judged is a packet, and whether the filter of TestFilter accepts it.
type judged struct {
	name   string
	packet []byte
	taken  bool
}

// packets are those that the filter has to distinguish.
func packets() []judged {
	tcp4 := func(from, to string, a, b uint16) []byte { return ip4(from, to, protoTCP, 0x4000, nil, ports(a, b)) }
	tcp6 := func(from, to string, a, b uint16) []byte { return ip6(from, to, protoTCP, ports(a, b)) }
	icmp := func(kind, code byte) []byte { return append([]byte{kind, code}, make([]byte, 62)...) }
	options := []byte{1, 1, 1, 1, 1, 1, 1, 0}
	return []judged{
		{"to the first port", tcp4(near4, far4, 9, 5300), true},
		{"from the last port", tcp4(near4, far4, 5309, 9), true},
		{"below the ports", tcp4(near4, far4, 9, 5299), false},
		{"above the ports", tcp4(near4, far4, 5310, 9), false},
		{"to the peer", tcp4(near4, far4, 9, 7000), true},
		{"from the peer", tcp4(far4, near4, 7000, 9), true},
		{"the peer's port elsewhere", tcp4(near4, "192.0.2.3", 9, 7000), false},
		{"the peer, another port", tcp4(near4, far4, 7000, 9), false},
		{"any port of the second peer", tcp4("192.0.2.77", near4, 1, 2), true},
		{"IP options", ip4(near4, far4, protoTCP, 0, options, ports(9, 5305)), true},
		{"IP options that look like the port", ip4(near4, far4, protoTCP, 0, []byte{0x14, 0xb4, 0x14, 0xb4}, ports(9, 10)), false},
		{"first fragment", ip4(near4, far4, protoTCP, 0x2000, nil, ports(9, 5305)), true},
		{"later fragment", ip4(near4, far4, protoTCP, 0x2010, nil, ports(9, 5305)), false},
		{"UDP", ip4(near4, far4, 17, 0, nil, ports(9, 5305)), false},
		{"fragmentation needed", ip4("192.0.2.9", near4, protoICMP, 0, nil, icmp(3, 4)), true},
		{"port unreachable", ip4("192.0.2.9", near4, protoICMP, 0, nil, icmp(3, 3)), false},
		{"v6 to the first port", tcp6(near6, far6, 9, 5300), true},
		{"v6 from the last port", tcp6(near6, far6, 5309, 9), true},
		{"v6 above the ports", tcp6(near6, far6, 5310, 9), false},
		{"v6 to the peer", tcp6(near6, far6, 9, 7001), true},
		{"v6 from the peer", tcp6(far6, near6, 7001, 9), true},
		{"v6 the peer's port elsewhere", tcp6(near6, "2001:db8::3", 9, 7001), false},
		{"v6 the port of the v4 peer", tcp6(near6, far6, 9, 7000), false},
		{"v6 jumbo to the peer", ip6(near6, far6, 0, append([]byte{protoTCP, 0, 0xc2, 4, 0, 1, 0, 0}, ports(9, 7001)...)), true},
		{"v6 jumbo from the first port", ip6(near6, far6, 0, append([]byte{protoTCP, 0, 0xc2, 4, 0, 1, 0, 0}, ports(5300, 9)...)), true},
		{"v6 jumbo of UDP", ip6(near6, far6, 0, append([]byte{17, 0, 0xc2, 4, 0, 1, 0, 0}, ports(5300, 9)...)), false},
		{"v6 longer options", ip6(near6, far6, 0, append([]byte{protoTCP, 1, 0xc2, 4, 0, 1, 0, 0}, ports(5300, 9)...)), false},
		{"v6 UDP", ip6(near6, far6, 17, ports(9, 5305)), false},
		{"packet too big", ip6("2001:db8::9", near6, protoICMP6, icmp(2, 0)), true},
		{"v6 unreachable", ip6("2001:db8::9", near6, protoICMP6, icmp(1, 0)), false},
		{"cut short", ip4(near4, far4, protoTCP, 0, nil, nil), false},
	}
}

// TestFilter runs the filter in the kernel on frames: of Ethernet, with one
// VLAN tag, and of a device without link layer.
func TestFilter(t *testing.T) {
	lab.Require(t, lab.Root())
	h := lab.New(t).Host("a")
	h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1") // nothing of its own
	c := Config{Ports: [2]int{5300, 5309}, Peers: []netip.AddrPort{
		netip.MustParseAddrPort(far4 + ":7000"), netip.MustParseAddrPort("[::ffff:192.0.2.77]:0"), netip.MustParseAddrPort("[" + far6 + "]:7001")}}
	for name, d := range map[string]struct {
		kind  uint16
		frame func([]byte) []byte
	}{
		"ethernet": {unix.IFF_TAP, func(p []byte) []byte { return ethernet(p) }},
		"tagged":   {unix.IFF_TAP, func(p []byte) []byte { return ethernet(p, unix.ETH_P_8021Q) }},
		"service":  {unix.IFF_TAP, func(p []byte) []byte { return ethernet(p, unix.ETH_P_8021AD) }},
		"raw":      {unix.IFF_TUN, slices.Clone[[]byte]},
	} {
		t.Run(name, func(t *testing.T) {
			fd := device(t, h, "dev-"+name, d.kind)
			r := start(t, h, c)
			var want []judged
			for _, p := range packets() {
				if _, err := unix.Write(fd, d.frame(p.packet)); err != nil {
					t.Fatalf("%s: %v", p.name, err)
				}
				if p.taken {
					want = append(want, p)
				}
			}
			compare(t, r, "dev-"+name, d.frame, want)
		})
	}
}

// compare compares a ring's packets with the expected frames.
func compare(t *testing.T, r *Ring, iface string, whole func([]byte) []byte, want []judged) {
	t.Helper()
	_, link, _, err := r.lookUp(iface)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	i := 0
	for p, data := range r.kept.all() {
		got, wire := asOnWire(p, data, link, nil)
		if i == len(want) {
			t.Fatalf("one packet too many: % x", got)
		}
		sent := whole(want[i].packet)
		snap := min(len(sent), Snap6+tagBytes)
		if want[i].packet[0]>>4 == 4 {
			snap = min(len(sent), Snap4+tagBytes)
		}
		if wire != len(sent) || !bytes.HasPrefix(sent, got) || len(got) < snap-tagBytes {
			t.Fatalf("%s: %d bytes of %d, want %d of\n% x, not\n% x", want[i].name, len(got), wire, len(sent), sent[:snap], got)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("packet %q and those behind it are missing", want[i].name)
	}
}

// TestTagInTheFrame sends frames whose tag the kernel did not remove.
func TestTagInTheFrame(t *testing.T) {
	lab.Require(t, lab.Root())
	h := lab.New(t).Host("a")
	h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	device(t, h, "tap0", unix.IFF_TAP)
	r := start(t, h, Config{Ports: [2]int{5300, 5309}})
	var want []judged
	whole := func(p []byte) []byte { return ethernet(p, unix.ETH_P_8021Q) }
	h.Inside(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		index, _, _, err := r.lookUp("tap0")
		to := &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_8021Q), Ifindex: int(index)}
		for _, port := range []uint16{5299, 5300, 5310} {
			p := judged{fmt.Sprint("port ", port), ip4(near4, far4, protoTCP, 0, nil, ports(9, port)), port == 5300}
			if p.taken {
				want = append(want, p)
			}
			if err == nil {
				err = unix.Sendto(fd, whole(p.packet), 0, to)
			}
		}
		return err
	})
	compare(t, r, "tap0", whole, want)
}

// TestManyPeers: a filter that is longer than a comparison's jump.
func TestManyPeers(t *testing.T) {
	lab.Require(t, lab.Root())
	h := lab.New(t).Host("a")
	h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
	fd := device(t, h, "tun0", unix.IFF_TUN)
	var c Config
	var want []judged
	var all [][]byte
	for i := range MostPeers {
		addr := fmt.Sprintf("2001:db8::%x", i+1)
		c.Peers = append(c.Peers, netip.AddrPortFrom(netip.MustParseAddr(addr), 7000))
		all = append(all, ip6(addr, near6, protoTCP, ports(7000, 9)), ip6(addr, near6, protoTCP, ports(7001, 9)))
		want = append(want, judged{addr, all[len(all)-2], true})
	}
	r := start(t, h, c)
	for _, p := range all {
		if _, err := unix.Write(fd, p); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, r, "tun0", slices.Clone[[]byte], want)
	if _, err := Start(Config{Peers: append(c.Peers, c.Peers[0])}); err == nil {
		t.Error("one peer more is taken")
	}
}
