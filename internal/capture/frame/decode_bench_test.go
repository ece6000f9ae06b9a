package frame

import "testing"

// BenchmarkDecode decodes the most common packet of captures: Ethernet, IPv4,
// TCP with time stamps, cut by a snap length.
func BenchmarkDecode(b *testing.B) {
	data := ether(0x0800, ip4(6, tcpSegment(0x10, 1448, stamps...)))[:66]
	p := Packet{WireBytes: 1514}
	b.ReportAllocs()
	for b.Loop() {
		if Decode(Ethernet, data, &p) != IsTCP {
			b.Fatal("it is TCP")
		}
	}
}
