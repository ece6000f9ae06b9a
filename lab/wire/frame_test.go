package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
)

// packet describes a frame for a test.
type packet struct {
	v6      bool
	udp     bool
	options []byte // of TCP, a multiple of four bytes
	flags   byte
	payload int
	segment int // payload of a segment; 0: one packet
	port    uint16
}

// frame builds a frame as a kernel with offloads sends it.
func (p packet) frame() []byte {
	raw := make([]byte, vnetSize+ethernetSize-2)
	copy(raw[vnetSize:], "\x02\x00\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x0a")
	transport := append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, 40000+p.port), 5201), make([]byte, udpSize-4)...)
	proto, offset, kind := byte(protoUDP), 6, byte(5)
	if !p.udp {
		transport = append(transport, make([]byte, tcpSize-udpSize)...)
		binary.BigEndian.PutUint32(transport[4:], 1_000_000)
		transport = append(transport, p.options...)
		transport[12], transport[13] = byte(len(transport)/4)<<4, p.flags
		proto, offset, kind = protoTCP, 16, 1
		if p.v6 {
			kind = 4
		}
	}
	length := len(transport) + p.payload
	if p.udp {
		binary.BigEndian.PutUint16(transport[4:], uint16(length))
	}
	raw = append(raw, p.ip(proto, length)...)
	at := len(raw)
	raw = append(raw, transport...)
	for i := range p.payload {
		raw = append(raw, byte(i*7+i>>8))
	}
	f := parse(raw)
	binary.BigEndian.PutUint16(raw[at+offset:], fold(f.pseudo(length)))
	raw[vnetFlags] = flagNeedsCsum
	binary.NativeEndian.PutUint16(raw[vnetCsumStart:], uint16(at-vnetSize))
	binary.NativeEndian.PutUint16(raw[vnetCsumOffset:], uint16(offset))
	if p.segment > 0 {
		raw[vnetType] = kind
		binary.NativeEndian.PutUint16(raw[vnetSegment:], uint16(p.segment))
	}
	return raw
}

// ip is the header of a packet from 10.77.0.1 to .2, or from fd00::1 to ::2.
func (p packet) ip(proto byte, length int) []byte {
	from, to := netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2")
	if p.v6 {
		from, to = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
		ip := append(make([]byte, 8), append(from.AsSlice(), to.AsSlice()...)...)
		ip[0], ip[6], ip[7] = 0x60, proto, 64
		binary.BigEndian.PutUint16(ip[4:], uint16(length))
		return append([]byte{0x86, 0xdd}, ip...)[:2+ipv6Size]
	}
	ip := append(make([]byte, 12), append(from.AsSlice(), to.AsSlice()...)...)
	ip[0], ip[6], ip[8], ip[9] = 0x45, 0x40, 64, proto
	binary.BigEndian.PutUint16(ip[2:], uint16(ipv4Size+length))
	binary.BigEndian.PutUint16(ip[4:], 100)
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum(0, ip)))
	return append([]byte{0x08, 0x00}, ip...)
}

// complete fills in the checksum as a NIC would, if one is requested.
func complete(raw []byte) []byte {
	raw = bytes.Clone(raw)
	if raw[vnetFlags]&flagNeedsCsum != 0 {
		start := vnetSize + int(binary.NativeEndian.Uint16(raw[vnetCsumStart:]))
		offset := int(binary.NativeEndian.Uint16(raw[vnetCsumOffset:]))
		binary.BigEndian.PutUint16(raw[start+offset:], ^fold(sum(0, raw[start:])))
		raw[vnetFlags] = 0
	}
	return raw
}

// checkSums fails the test unless the checksums of a complete packet are right, computed from the packet.
func checkSums(t *testing.T, raw []byte) {
	t.Helper()
	f := parse(raw)
	if f.transport == 0 {
		t.Fatalf("no transport in %d bytes: % x", len(raw), raw[:min(len(raw), 80)])
	}
	if !f.v6 {
		if got := fold(sum(0, raw[f.ip:f.transport])); got != 0xffff {
			t.Errorf("IPv4 header sums to %#x", got)
		}
		if got := int(binary.BigEndian.Uint16(raw[f.ip+2:])); got != len(raw)-f.ip {
			t.Errorf("IPv4 length %d of %d", got, len(raw)-f.ip)
		}
	} else if got := int(binary.BigEndian.Uint16(raw[f.ip+4:])); got != len(raw)-f.transport {
		t.Errorf("IPv6 length %d of %d", got, len(raw)-f.transport)
	}
	if got := fold(sum(f.pseudo(len(raw)-f.transport), raw[f.transport:])); got != 0xffff {
		t.Errorf("the transport sums to %#x", got)
	}
}

// kinds are the types of super-packets that kernels send.
func kinds() map[string]packet {
	stamps := []byte{1, 1, optionTimestamps, 10, 0, 0, 0, 1, 0, 0, 0, 2}
	return map[string]packet{
		"TCP over IPv4": {options: stamps, flags: flagCWR | flagPS | flagFIN | 0x10, payload: 10000, segment: 1448},
		"TCP over IPv6": {options: stamps, flags: flagPS | 0x10, payload: 2 * 1428, segment: 1428, v6: true},
		"UDP over IPv4": {udp: true, payload: 5001, segment: 1000},
		"UDP over IPv6": {udp: true, payload: 3000, segment: 1452, v6: true},
	}
}

// TestCut cuts super-packets into segments and joins them again.
func TestCut(t *testing.T) {
	for name, p := range kinds() {
		t.Run(name, func(t *testing.T) {
			f := parse(p.frame())
			var payload []byte
			for i := range f.segments() {
				var head [headMax]byte
				n, body := f.cut(head[:], i, i+1)
				raw := complete(append(head[:n:n], body...))
				checkSums(t, raw)
				one := parse(raw)
				if one.segment != 0 || len(raw)-vnetSize != f.size(i) || !bytes.Equal(raw[vnetSize:vnetSize+ethernetSize], f.raw[vnetSize:vnetSize+ethernetSize]) {
					t.Errorf("segment %d: %+v, %d bytes, want %d", i, one, len(raw)-vnetSize, f.size(i))
				}
				if id := binary.BigEndian.Uint16(raw[one.ip+4:]); !p.v6 && int(id) != 100+i {
					t.Errorf("segment %d: identification %d", i, id)
				}
				h := raw[one.transport:]
				if p.udp {
					if got := int(binary.BigEndian.Uint16(h[4:])); got != len(h) {
						t.Errorf("segment %d: UDP length %d of %d", i, got, len(h))
					}
				} else if want := fmt.Sprint(1_000_000+i*p.segment, flagsOf(p.flags, i, f.segments())); fmt.Sprint(binary.BigEndian.Uint32(h[4:]), h[13]) != want {
					t.Errorf("segment %d: sequence and flags %d %d, want %s", i, binary.BigEndian.Uint32(h[4:]), h[13], want)
				}
				payload = append(payload, body...)
			}
			if !bytes.Equal(payload, f.raw[f.payload:]) {
				t.Error("the payload differs")
			}
		})
	}
}

// flagsOf returns the flags of segment i of n: CWR is only on the first, FIN and PSH only on the last.
func flagsOf(flags byte, i, n int) byte {
	if i > 0 {
		flags &^= flagCWR
	}
	if i < n-1 {
		flags &^= flagFIN | flagPS
	}
	return flags
}

// TestCutRun cuts off several segments as one super-packet; cutting that again gives the same segments as
// cutting the whole.
func TestCutRun(t *testing.T) {
	for name, p := range kinds() {
		f := parse(p.frame())
		last := f.segments()
		from := last - 2
		var head, again, direct [headMax]byte
		n, body := f.cut(head[:], from, last)
		run := parse(append(head[:n:n], body...))
		if run.segments() != 2 || run.segment != f.segment {
			t.Errorf("%s: %d segments of %d", name, run.segments(), run.segment)
			continue
		}
		checkSums(t, complete(run.raw))
		n1, body1 := run.cut(again[:], 1, 2)
		n2, body2 := f.cut(direct[:], last-1, last)
		if !bytes.Equal(append(again[:n1:n1], body1...), append(direct[:n2:n2], body2...)) {
			t.Errorf("%s: cut twice differs from cut once", name)
		}
	}
}

// TestSize counts the bytes of segments on the wire.
func TestSize(t *testing.T) {
	f := parse(packet{payload: 3000, segment: 1448}.frame())
	if f.segments() != 3 || f.size(0) != 54+1448 || f.size(2) != 54+3000-2*1448 {
		t.Errorf("%d segments, %d and %d bytes", f.segments(), f.size(0), f.size(2))
	}
	f = parse(packet{payload: 1448, segment: 1448}.frame())
	if f.segments() != 1 || f.size(0) != 54+1448 {
		t.Errorf("one segment: %d, %d bytes", f.segments(), f.size(0))
	}
}

// TestFlow: packets of a connection have the same hash, and connections spread over the links.
func TestFlow(t *testing.T) {
	members := [4]int{}
	for port := range uint16(400) {
		a := parse(packet{port: port, payload: 100}.frame())
		b := parse(packet{port: port, payload: 3000, segment: 1448}.frame())
		if a.flow() != b.flow() {
			t.Fatalf("port %d: two hashes", port)
		}
		members[a.flow()%4]++
	}
	for i, n := range members {
		if n < 60 || n > 140 {
			t.Errorf("member %d has %d of 400 connections", i, n)
		}
	}
}

// odd are malformed and unusual frames that a path must handle, by name.
func odd() map[string][]byte {
	good := packet{payload: 3000, segment: 1448, flags: flagSYN, options: []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7}}.frame()
	with := func(at int, b ...byte) []byte {
		raw := bytes.Clone(good)
		copy(raw[at:], b)
		return raw
	}
	ip := vnetSize + ethernetSize
	return map[string][]byte{
		"nothing": {}, "a byte": {1}, "vnet alone": good[:vnetSize], "ethernet alone": good[:ip],
		"ARP":                       append(with(ip-2, 0x08, 0x06)[:ip], make([]byte, 28)...),
		"IPv4 cut short":            good[:ip+ipv4Size-1],
		"IPv4 without transport":    good[:ip+ipv4Size],
		"TCP cut short":             good[:ip+ipv4Size+tcpSize-1],
		"TCP options cut short":     good[:ip+ipv4Size+tcpSize+4],
		"no payload":                good[:ip+ipv4Size+tcpSize+20],
		"IPv4 header of 0":          with(ip, 0x40),
		"IPv4 header of 60":         with(ip, 0x4f)[:ip+40],
		"TCP header of 0":           with(ip+ipv4Size+12, 0),
		"a later fragment":          with(ip+6, 0x20, 0x10),
		"IPv6 in an IPv4 frame":     with(ip-2, 0x86, 0xdd),
		"IPv6 cut short":            with(ip-2, 0x86, 0xdd)[:ip+30],
		"segment of 1":              with(vnetSegment, 1, 0),
		"segments of unknown proto": with(ip+9, 99),
		"an option of 0":            with(ip+ipv4Size+tcpSize, 8, 0),
		"an option too long":        with(ip+ipv4Size+tcpSize, 8, 200),
		"an option without length":  with(ip+ipv4Size+tcpSize+19, 8),
		"MSS of three bytes":        with(ip+ipv4Size+tcpSize, 2, 3, 9),
	}
}

// everything is an impairment with all effects.
func everything() Impairment {
	return Impairment{
		StripWScale: true, StripSACK: true, StripTimestamps: true, ClampMSS: 500, MTU: 1000, ICMP: true,
		PoliceRate: 1e9, Loss: 0.2, LossBurst: 3, PeakRate: 1e9, Rate: 1e9, Burst: 1e4, Members: 3, MemberRate: 1e8, PerFlowRate: 1e8,
		Duplicate: 0.2, Reorder: 0.2, ReorderDelay: 5, Delay: 7,
	}
}

// survive sends a frame through two impairments, and fails the test unless every packet is accounted for.
func survive(t *testing.T, raw []byte) {
	t.Helper()
	small := everything()
	small.MTU = 0
	for _, direction := range []Impairment{{}, everything(), small, {DropAbove: 1514}} {
		d := newDirection(direction)
		for range 3 {
			give(d, 0, raw)
		}
		for range arrivals(d) {
		}
		c := d.counters
		if in, out := c.In, c.Out.Packets-c.Duplicated.Packets+c.Dropped().Packets; in.Packets != out || in.Packets == 0 {
			t.Errorf("%d packets came, %d are accounted for: %+v", in.Packets, out, c)
		}
	}
}

func TestOddFrames(t *testing.T) {
	for name, raw := range odd() {
		t.Run(name, func(t *testing.T) { survive(t, raw) })
	}
}

// FuzzFrames searches for a frame that the path does not handle.
func FuzzFrames(f *testing.F) {
	for _, raw := range odd() {
		f.Add(raw)
	}
	for _, p := range kinds() {
		f.Add(p.frame())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) <= sizes[largest] {
			survive(t, raw)
		}
	})
}
