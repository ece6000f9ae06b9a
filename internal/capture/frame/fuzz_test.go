package frame

import "testing"

// FuzzDecode verifies for any bytes: no panic, values within their limits,
// the same outcome whatever the packet held before, and that a snap length
// hides fields and changes none.
func FuzzDecode(f *testing.F) {
	f.Add(uint16(Ethernet), ether(0x8100, join(5, 0x0800, packet4)), uint16(60), 0)
	f.Add(uint16(Ethernet), ether(0x8847, join("\x00\x01\x01\x40", "\x00\x00\x00\x00", ether(0x86dd, packet6))), uint16(99), 0)
	f.Add(uint16(Null), join("\x1e\x00\x00\x00", packet6), uint16(20), 0)
	f.Add(uint16(LinuxSLL), join(4, 1, 6, make([]byte, 8), 0x0800, packet4), uint16(50), 3)
	f.Add(uint16(LinuxSLL2), join(0x86dd, make([]byte, 18), packet6), uint16(50), -9)
	f.Add(uint16(PPP), join(0xff03, 0x0021, outer4Of(47, join(0x1000, 0x22eb, make([]byte, 16), ether(0x0800, packet4)))), uint16(90), 0)
	f.Add(uint16(Raw), ip6(0, join([]byte{51, 0, 0xc2, 4, 0, 3, 0, 0}, []byte{TCP, 4}, make([]byte, 22), segment)), uint16(80), 1<<30)
	f.Add(uint16(Raw), outer4Of(UDP, udpTo(4789, join("\x08\x00\x00\x00\x00\x00\x2a\x00", ether(0x0800, packet4)))), uint16(80), 0)
	f.Add(uint16(Raw), ip4(ICMP, join("\x03\x04\x00\x00\x00\x00", 1400, packet4)), uint16(33), 0)
	f.Fuzz(func(t *testing.T, link uint16, data []byte, keep uint16, more int) {
		wire := len(data)
		if more > 0 && more <= 1<<30 {
			wire += more
		}
		whole := Packet{WireBytes: wire}
		v := Decode(LinkType(link), data, &whole)
		if v > IsUnknown || whole.Payload < 0 || whole.IPBytes < 0 || whole.MTU < 0 || whole.Options.SACKs > 4 || whole.Options.Bytes > 40 ||
			whole.Tagged > mostTags*(mostTunnels+1) || whole.Tunnels > mostTunnels || whole.WireBytes != wire {
			t.Fatalf("verdict %d: %+v", v, whole)
		}
		if (v == IsTooBig) != whole.TooBig || v == IsTCP && whole.Payload > whole.IPBytes {
			t.Fatalf("verdict %d: %+v", v, whole)
		}
		again := whole
		if w := Decode(LinkType(link), data, &again); w != v || again != whole {
			t.Fatalf("again: verdict %d, then %d: %+v, then %+v", v, w, whole, again)
		}
		if v != IsTCP || int(keep) >= len(data) {
			return
		}
		snapped := Packet{WireBytes: wire}
		w := Decode(LinkType(link), data[:keep], &snapped)
		if w != IsTCP && w != IsCut {
			t.Fatalf("%d bytes of a segment: verdict %d", keep, w)
		}
		if w == IsTCP && !snapped.Options.Cut {
			if snapped != whole {
				t.Fatalf("%d bytes of a segment: %+v, want %+v", keep, snapped, whole)
			}
		}
	})
}
