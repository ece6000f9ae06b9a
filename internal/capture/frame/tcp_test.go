package frame

import (
	"slices"
	"testing"
)

// TestOptions decodes options whole, cut and broken.
func TestOptions(t *testing.T) {
	syn := []byte{2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7} // as Linux sends
	sack := []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18, 0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, 40}
	tests := []struct {
		name    string
		options []byte
		keep    int // of the options; -1: all
		want    Options
	}{
		{"none", nil, -1, Options{}},
		{"syn", syn, -1, Options{HasMSS: true, MSS: 1460, SACKOK: true, Timestamps: true, TSVal: 1, HasScale: true, Scale: 7,
			Bytes: 20, Kinds: [12]uint8{2, 4, 8, 1, 3}}},
		{"syn, cut within time stamps", syn, 12, Options{HasMSS: true, MSS: 1460, SACKOK: true, Bytes: 20, Cut: true, Kinds: [12]uint8{2, 4, 8}}},
		{"syn, cut before its options", syn, 0, Options{Bytes: 20, Cut: true}},
		{"sack", sack, -1, Options{Timestamps: true, TSVal: 1, TSEcr: 2, SACKs: 2, SACK: [4][2]uint32{{10, 20}, {30, 40}},
			Bytes: 32, Kinds: [12]uint8{1, 1, 8, 1, 1, 5}}},
		{"fast open", []byte{34, 2, 0, 0}, -1, Options{FastOpen: true, Bytes: 4, Kinds: [12]uint8{34}}},
		{"fast open of before its number", []byte{254, 4, 0xf9, 0x89}, -1, Options{FastOpen: true, Bytes: 4, Kinds: [12]uint8{254}}},
		{"another trial", []byte{254, 4, 0xf9, 0x88}, -1, Options{Bytes: 4, Kinds: [12]uint8{254}}},
		{"multipath", []byte{30, 4, 0, 0x81}, -1, Options{Multipath: true, Bytes: 4, Kinds: [12]uint8{30}}},
		{"mss of a wrong length", []byte{2, 3, 9, 1, 3, 3, 2, 0}, -1, Options{HasScale: true, Scale: 2, Bytes: 8, Kinds: [12]uint8{2, 1, 3}}},
		{"length 0", []byte{2, 0, 5, 5, 3, 3, 2, 0}, -1, Options{Bytes: 8, Kinds: [12]uint8{2}}},
		{"length beyond the header", []byte{1, 2, 8, 9}, -1, Options{Bytes: 4, Kinds: [12]uint8{1, 2}}},
		{"end before the end", []byte{0, 2, 4, 5, 0xb4, 0, 0, 0}, -1, Options{Bytes: 8}},
		{"no-ops only", slices.Repeat([]byte{1}, 40), -1, Options{Bytes: 40, Kinds: [12]uint8{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := ip4(TCP, tcpSegment(SYN, 0, tt.options...))
			p := Packet{WireBytes: len(data)}
			if tt.keep >= 0 {
				data = data[:40+tt.keep]
			}
			if v := Decode(Raw, data, &p); v != IsTCP {
				t.Fatal("verdict", v)
			}
			if p.Options != tt.want {
				t.Errorf("got  %+v\nwant %+v", p.Options, tt.want)
			}
		})
	}
}

// TestTooBig decodes ICMP messages that a packet was too large.
func TestTooBig(t *testing.T) {
	outer := func(quoted []byte) []byte {
		return ip4Of(outer4, source4, 0, ICMP, nil, join("\x03\x04\x00\x00\x00\x00", 1400, quoted))
	}
	outer6 := func(quoted []byte) []byte { return ip6(ICMPv6, join("\x02\x00\x00\x00", "\x00\x00\x05\x00", quoted)) }
	tests := []struct {
		name           string
		data           []byte
		mtu            int
		router, of, to string
	}{
		{"ipv4, the ports alone", outer(packet4[:28]), 1400, "203.0.113.7:0", "192.0.2.1:40000", "198.51.100.2:5201"},
		{"ipv4, cut before the ports", outer(packet4[:22]), 1400, "203.0.113.7:0", "192.0.2.1:0", "198.51.100.2:0"},
		{"ipv4, options", outer(ip4Of(source4, target4, 0, TCP, make([]byte, 4), segment)), 1400, "203.0.113.7:0", "192.0.2.1:40000", "198.51.100.2:5201"},
		{"ipv4, nothing", outer(nil), 1400, "203.0.113.7:0", "[::]:0", "[::]:0"},
		{"ipv6", outer6(packet6), 1280, "[2001:db8::1]:0", "[2001:db8::1]:40000", "[2001:db8::2]:5201"},
		{"ipv6, of what has no ports", outer6(ip6(58, make([]byte, 9))), 1280, "[2001:db8::1]:0", "[2001:db8::1]:0", "[2001:db8::2]:0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p Packet
			if v := Decode(Raw, tt.data, &p); v != IsTooBig || !p.TooBig {
				t.Fatal("verdict", v)
			}
			router, of, to := ends(p.Source).String(), ends(p.QuotedSource).String(), ends(p.QuotedTarget).String()
			if p.MTU != tt.mtu || router != tt.router || of != tt.of || to != tt.to {
				t.Errorf("%s reports %d for %s to %s", router, p.MTU, of, to)
			}
		})
	}
}
