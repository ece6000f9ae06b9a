package pcapfile

import (
	"bytes"
	"slices"
	"testing"

	"thru/internal/capture/frame"
)

// BenchmarkRead reads and decodes a file of packets of which 100 bytes were
// kept, one packet an iteration.
func BenchmarkRead(b *testing.B) {
	segment := "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00" + // Ethernet
		"\x45\x00\x05\xdc\x12\x34\x40\x00\x40\x06\x00\x00\xc0\x00\x02\x01\xc0\x00\x02\x02" + // IPv4
		"\x9c\x40\x14\x51\x00\x00\x10\x00\x00\x00\x20\x00\x80\x10\x01\xf5\x00\x00\x00\x00" + // TCP
		"\x01\x01\x08\x0a\x00\x00\x00\x07\x00\x00\x00\x09" + "the payload, of which little is kept"[:34]
	const packets = 1 << 18
	for name, file := range map[string][]byte{
		"pcap":   little.pcapOf(microMagic, 2, 4, slices.Repeat(little.old(second, 1, 100, 1514, segment), packets)),
		"pcapng": little.join(little.section(), little.nic(1, 100), slices.Repeat(little.packet(0, uint64(atMicro/1000), 1514, segment), packets)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var r *Reader
			var p frame.Packet
			for i := 0; b.Loop(); i++ {
				if i%packets == 0 {
					r, _ = NewReader(bytes.NewReader(file))
				}
				record, err := r.Next()
				if err != nil {
					b.Fatal(err)
				}
				p.WireBytes = record.WireBytes
				if frame.Decode(r.Interfaces()[record.Interface].Link, record.Data, &p) != frame.IsTCP {
					b.Fatal("it is TCP")
				}
			}
		})
	}
}
