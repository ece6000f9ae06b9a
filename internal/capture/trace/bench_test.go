package trace

import (
	"testing"

	"thru/internal/capture/frame"
)

// packetsOf returns what a tape adds.
func packetsOf(play func(x *tape)) []frame.Packet {
	var all []frame.Packet
	x := newTape(Options{})
	x.to = func(p *frame.Packet) { all = append(all, *p) }
	play(x)
	return all
}

// benchmark reports the cost of one packet, repeatedly in new Builders.
func benchmark(b *testing.B, packets []frame.Packet) {
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		builder := New(Options{})
		for i := range packets {
			builder.Add(&packets[i], frame.IsTCP)
		}
		n += len(packets)
	}
}

func BenchmarkBulk(b *testing.B) {
	benchmark(b, packetsOf(func(x *tape) {
		x.open(10000, 10020)
		us := int64(20000)
		for i := range 200_000 {
			x.data(us, i*1448, 1448)
			us += 10
			if i > 200 && i%2 == 0 {
				x.ack(us, (i-200)*1448)
			}
		}
	}))
}

func BenchmarkParallel(b *testing.B) {
	benchmark(b, packetsOf(func(x *tape) {
		us := int64(20000)
		for i := range 2000 {
			for port := range uint16(64) {
				x.a.Port = 40000 + port
				x.data(us, i*1448, 1448)
				us += 10
				if i > 50 && i%2 == 0 {
					x.ack(us, (i-50)*1448)
				}
			}
		}
	}))
}

func BenchmarkLoss(b *testing.B) {
	benchmark(b, packetsOf(func(x *tape) {
		x.open(10000, 10020)
		us := int64(20000)
		for i := range 200_000 {
			us += 10
			switch {
			case i%100 == 5: // lost before
			case i%100 == 55:
				x.data(us, (i-50)*1448, 1448)
				x.data(us, i*1448, 1448)
			case i%100 > 5 && i%100 < 55:
				x.data(us, i*1448, 1448)
				x.ack(us, (i-i%100+5)*1448, x.sack((i-i%100+6)*1448, (i+1)*1448))
			default:
				x.data(us, i*1448, 1448)
				x.ack(us, (i+1)*1448)
			}
		}
	}))
}

func BenchmarkScan(b *testing.B) {
	benchmark(b, packetsOf(func(x *tape) {
		for i := range 300_000 {
			x.z.Port = uint16(i)
			x.z.Addr[15] = byte(i >> 16)
			x.packet(int64(i), fromA, frame.SYN, -1, 0, 0)
		}
	}))
}
