package wire

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// newDirection returns a direction with routers of both families.
func newDirection(w Impairment) *direction {
	return &direction{impairment: newTreatment(w), router4: netip.MustParseAddr("10.77.0.254"), router6: netip.MustParseAddr("fd00::fe")}
}

// give passes one frame to a direction, and returns its reply.
func give(d *direction, now int64, raw []byte) []byte {
	b := d.held.buffer(class(len(raw)))
	copy(b.data, raw)
	reply := d.take(now, b, len(raw))
	d.held.release(b)
	return reply
}

// arrivals yields the frames that reach the other end, with their times.
func arrivals(d *direction) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for {
			if _, ok := d.held.next(); !ok {
				return
			}
			p := d.held.take()
			d.counters.Out.Packets += p.count.Packets
			d.counters.Out.Bytes += p.count.Bytes
			more := yield(p.leaves, slices.Concat(p.head[:p.headed], p.body))
			d.held.done(p)
			if !more {
				return
			}
		}
	}
}

// near reports whether a figure is within so many percent of the wanted one.
func near(got, want, percent float64) bool { return math.Abs(got-want) <= math.Abs(want)*percent/100 }

// TestLimiter sends 1000 packets of 1000 bytes at twice the rate of 8 Mb/s, which takes 1 ms for each.
func TestLimiter(t *testing.T) {
	const ms = float64(time.Millisecond)
	tests := []struct {
		name         string
		burst, queue int64
		passed       int
		waited       float64 // delay of the last packet that passed, ms
	}{
		{"a queue for all", 0, 1e6, 1000, 1000 - 999*0.5},
		{"a short queue", 0, 20e3, 519, 19.5},
		{"a policer", 100e3, 0, 599, 0},
		{"a bucket and a queue", 100e3, 1e6, 1000, 1000 - 100 - 999*0.5},
	}
	for _, tt := range tests {
		l := newLimiter(8e6, tt.burst, tt.queue)
		passed, waited := 0, 0.0
		for i := range 1000 {
			at := float64(i) * ms / 2
			if leaves, ok := l.pass(at, 1000); ok {
				passed, waited = passed+1, (leaves-at)/ms
			}
		}
		if math.Abs(float64(passed-tt.passed)) > 1 || math.Abs(waited-tt.waited) > 1 {
			t.Errorf("%s: %d passed, the last waited %.1f ms; want %d, %.1f", tt.name, passed, waited, tt.passed, tt.waited)
		}
	}
	// After a pause the bucket is full again, but not fuller.
	l := newLimiter(8e6, 100e3, 0)
	for _, at := range []float64{0, 10_000 * ms} {
		n := 0
		for ok := true; ok; n++ {
			_, ok = l.pass(at, 1000)
		}
		if n-1 != 100 {
			t.Errorf("at %.0f ms %d packets pass at once, want 100", at/ms, n-1)
		}
	}
}

// TestLoss: the share and the length of bursts are the requested ones, and a seed determines the pattern.
func TestLoss(t *testing.T) {
	draw := func(w Impairment) (pattern []bool, share, burst float64) {
		tr := newTreatment(w)
		lost, begins := 0, 0
		for i := range 200_000 {
			pattern = append(pattern, tr.loses())
			if pattern[i] {
				lost++
				if i == 0 || !pattern[i-1] {
					begins++
				}
			}
		}
		return pattern, float64(lost) / 200_000, float64(lost) / max(1, float64(begins))
	}
	for _, want := range []struct{ loss, burst float64 }{{0.01, 0}, {0.1, 1}, {0.02, 5}, {0.3, 20}} {
		w := Impairment{Loss: want.loss, LossBurst: want.burst, Seed: 3}
		pattern, share, burst := draw(w)
		if !near(share, want.loss, 15) {
			t.Errorf("%+v: share %.4f", want, share)
		}
		if want.burst > 1 && !near(burst, want.burst, 15) {
			t.Errorf("%+v: bursts of %.1f", want, burst)
		}
		if again, _, _ := draw(w); !slices.Equal(pattern, again) {
			t.Errorf("%+v: two runs of one seed differ", want)
		}
		w.Seed++
		if other, _, _ := draw(w); slices.Equal(pattern, other) {
			t.Errorf("%+v: two seeds are alike", want)
		}
	}
	if _, share, _ := draw(Impairment{Loss: 1, LossBurst: 4}); share != 1 {
		t.Errorf("all is lost, but %.3f", share)
	}
}

// TestPieces checks what happens to one super-packet of 7 segments, by the frames that arrive and by the
// counters.
func TestPieces(t *testing.T) {
	const segments = 7
	raw := packet{payload: 10000, segment: 1448}.frame()
	wire := int64(10000 + segments*54)
	tests := []struct {
		name      string
		direction Impairment
		frames    int   // that arrive
		last      int64 // arrival of the last frame, ns
		count     func(Counters) Count
		want      int64 // packets
	}{
		{"nothing", Impairment{}, 1, 0, func(c Counters) Count { return c.Out }, segments},
		{"delay", Impairment{Delay: 5}, 1, 5, func(c Counters) Count { return c.Out }, segments},
		{"a fast rate", Impairment{Rate: 1e9}, 1, wire * 8, func(c Counters) Count { return c.Out }, segments},
		{"a slow rate", Impairment{Rate: 8e6}, segments, wire * 1000, func(c Counters) Count { return c.Out }, segments},
		{"a short queue", Impairment{Rate: 8e6, Queue: 4600}, 3, 1502 * 3 * 1000, func(c Counters) Count { return c.Queue }, segments - 3},
		{"a policer", Impairment{PoliceRate: 8e6, PoliceBurst: 4600}, 1, 0, func(c Counters) Count { return c.Police }, segments - 3},
		{"a small MTU", Impairment{MTU: 1487}, 1, 0, func(c Counters) Count { return c.MTU }, segments - 1}, // the last is shorter
		{"an MTU that fits", Impairment{MTU: 1488}, 1, 0, func(c Counters) Count { return c.MTU }, 0},
		{"broken TSO", Impairment{DropAbove: 1514}, 0, 0, func(c Counters) Count { return c.Oversize }, segments},
		{"all twice", Impairment{Duplicate: 1}, 2 * segments, 0, func(c Counters) Count { return c.Duplicated }, segments},
		{"all late", Impairment{Reorder: 1, ReorderDelay: 9}, segments, 9, func(c Counters) Count { return c.Reordered }, segments},
		{"all lost", Impairment{Loss: 1}, 0, 0, func(c Counters) Count { return c.Lost }, segments},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDirection(tt.direction)
			give(d, 0, raw)
			frames, last := 0, int64(0)
			for at, frame := range arrivals(d) {
				checkSums(t, complete(frame))
				frames, last = frames+1, at
			}
			if frames != tt.frames || last != tt.last {
				t.Errorf("%d frames, the last at %d; want %d, %d", frames, last, tt.frames, tt.last)
			}
			c := d.counters
			if got := tt.count(c); got.Packets != tt.want {
				t.Errorf("%d packets, want %d: %+v", got.Packets, tt.want, c)
			}
			if c.In != (Count{segments, wire}) || c.In.Bytes != c.Out.Bytes-c.Duplicated.Bytes+c.Dropped().Bytes {
				t.Errorf("the bytes do not add up: %+v", c)
			}
		})
	}
}

// TestLateIsOvertaken: a delayed packet arrives after the next one.
func TestLateIsOvertaken(t *testing.T) {
	d := newDirection(Impairment{Reorder: 1, ReorderDelay: 100})
	give(d, 0, packet{payload: 100}.frame())
	d.impairment.Reorder = 0
	give(d, 50, packet{payload: 200}.frame())
	give(d, 100, packet{payload: 300}.frame()) // due with the first, and behind it
	var got []int
	for _, frame := range arrivals(d) {
		got = append(got, len(frame)-vnetSize-54)
	}
	if want := []int{200, 100, 300}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// TestRatesOfSome: the rate of a link of a bundle or of a flow delays only packets that share it.
func TestRatesOfSome(t *testing.T) {
	for name, direction := range map[string]Impairment{
		"members": {Members: 4, MemberRate: 8e6, Queue: 1e6}, "flows": {PerFlowRate: 8e6, Queue: 1e6},
	} {
		times := func(port func(i int) uint16) (last int64) {
			d := newDirection(direction)
			for i := range 64 {
				give(d, 0, packet{payload: 946, port: port(i)}.frame()) // 1000 bytes: a millisecond
			}
			for at := range arrivals(d) {
				last = at
			}
			return last / int64(time.Millisecond)
		}
		one := times(func(int) uint16 { return 1 })
		many := times(func(i int) uint16 { return uint16(i) })
		if one != 64 || many > 32 || many < 1 {
			t.Errorf("%s: one connection is through after %d ms, 64 after %d", name, one, many)
		}
	}
}

// TestTakesNoMemory: once the queues have filled, a path allocates no memory.
func TestTakesNoMemory(t *testing.T) {
	direction := everything()
	direction.MTU, direction.Members, direction.Loss = 0, 2, 0.01
	d := newDirection(direction)
	big, small := packet{payload: 60000, segment: 1448}.frame(), packet{payload: 1}.frame()
	round := func() {
		for i := range 20 {
			give(d, int64(i), big)
			give(d, int64(i), small)
		}
		for {
			if _, ok := d.held.next(); !ok {
				return
			}
			d.held.done(d.held.take())
		}
	}
	for range 20 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("%.0f allocations for 40 frames", n)
	}
}

// TestRewrite changes options of a SYN, with and without a checksum in place.
func TestRewrite(t *testing.T) {
	options := []byte{optionMSS, 4, 0x05, 0xb4, optionSACK, 2, optionTimestamps, 10, 1, 2, 3, 4, 0, 0, 0, 0, optionNone, optionWScale, 3, 7}
	tests := []struct {
		name      string
		direction Impairment
		flags     byte
		want      []byte
	}{
		{"scale", Impairment{StripWScale: true}, flagSYN, []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 1, 1, 1}},
		{"SACK of a SYN-ACK", Impairment{StripSACK: true}, flagSYN | 0x10, []byte{2, 4, 5, 0xb4, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}},
		{"timestamps", Impairment{StripTimestamps: true}, flagSYN, []byte{2, 4, 5, 0xb4, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 7}},
		{"MSS", Impairment{ClampMSS: 1000}, flagSYN, []byte{2, 4, 3, 0xe8, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}},
		{"a higher MSS", Impairment{ClampMSS: 9000}, flagSYN, options},
		{"no SYN", Impairment{StripWScale: true, ClampMSS: 9}, 0x10, options},
	}
	for _, tt := range tests {
		for _, full := range []bool{false, true} {
			for _, v6 := range []bool{false, true} {
				raw := packet{options: options, flags: tt.flags, v6: v6}.frame()
				if full {
					raw = complete(raw)
				}
				d := newDirection(tt.direction)
				give(d, 0, raw)
				for _, got := range arrivals(d) {
					if o := got[len(got)-len(options):]; !bytes.Equal(o, tt.want) {
						t.Errorf("%s: options % x, want % x", tt.name, o, tt.want)
					}
					checkSums(t, complete(got))
				}
				if changed := d.counters.Rewritten.Packets == 1; changed == bytes.Equal(tt.want, options) {
					t.Errorf("%s: counted %+v", tt.name, d.counters.Rewritten)
				}
			}
		}
	}
}

// TestTooBig: the ICMP error quotes the packet and names the MTU, and is sent only where it is allowed.
func TestTooBig(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		d := newDirection(Impairment{MTU: 1400, ICMP: true})
		big := packet{payload: 3000, segment: 1448, v6: v6}.frame()
		reply := give(d, 0, big)
		f := parse(reply)
		at, size := f.ip+ipv4Size, icmpQuote4
		if v6 {
			at, size = f.ip+ipv6Size, icmpQuote6-ipv6Size-icmpSize
		}
		if len(reply) != at+icmpSize+size || !bytes.Equal(reply[at+icmpSize:], parse(big).raw[f.ip:f.ip+size]) {
			t.Fatalf("v6 %v: an answer of %d bytes", v6, len(reply))
		}
		if !bytes.Equal(reply[vnetSize:vnetSize+6], big[vnetSize+6:vnetSize+12]) {
			t.Errorf("v6 %v: it goes to % x", v6, reply[vnetSize:vnetSize+6])
		}
		kind, mtu, pseudo := [2]byte{3, 4}, uint32(binary.BigEndian.Uint16(reply[at+6:])), uint32(0)
		if v6 {
			kind, mtu, pseudo = [2]byte{2, 0}, binary.BigEndian.Uint32(reply[at+4:]), f.pseudo(len(reply)-at)
		}
		if [2]byte(reply[at:]) != kind || mtu != 1400 || fold(sum(pseudo, reply[at:])) != 0xffff {
			t.Errorf("v6 %v: type and code % x, MTU %d, sum %#x", v6, reply[at:at+2], mtu, fold(sum(pseudo, reply[at:])))
		}
		if d.counters.ICMP.Packets != 1 || d.counters.MTU.Packets != 2 {
			t.Errorf("v6 %v: counters %+v", v6, d.counters)
		}
		if give(d, 0, packet{payload: 1300, v6: v6}.frame()) != nil {
			t.Errorf("v6 %v: an answer to a packet that fits", v6)
		}
		if silent := newDirection(Impairment{MTU: 1400}); give(silent, 0, big) != nil {
			t.Errorf("v6 %v: an answer that was not asked for", v6)
		}
	}
	may := packet{payload: 2000}.frame()
	may[vnetSize+ethernetSize+6] = 0 // no "don't fragment"
	d := newDirection(Impairment{MTU: 1400, ICMP: true})
	if give(d, 0, may) != nil || d.counters.MTU.Packets != 1 {
		t.Errorf("a packet that may be fragmented: %+v", d.counters)
	}
}
