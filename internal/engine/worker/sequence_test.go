package worker

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSequence(t *testing.T) {
	type counts struct{ packets, lost, duplicates, reordered, most, foreign int64 }
	for name, tt := range map[string]struct {
		numbers []uint64
		want    counts
	}{
		"in order":                     {[]uint64{0, 1, 2, 3}, counts{packets: 4}},
		"the first is lost":            {[]uint64{1, 2}, counts{packets: 2, lost: 1}},
		"a gap":                        {[]uint64{0, 1, 5}, counts{packets: 3, lost: 3}},
		"a gap that is filled":         {[]uint64{0, 2, 1}, counts{packets: 3, reordered: 1, most: 1}},
		"twice":                        {[]uint64{0, 1, 1, 0}, counts{packets: 2, duplicates: 2}},
		"late, and then again":         {[]uint64{0, 3, 1, 1}, counts{packets: 3, lost: 1, duplicates: 1, reordered: 1, most: 2}},
		"a stray greeting":             {[]uint64{0, 0x746872752d75310a, 1}, counts{packets: 2, foreign: 1}},
		"a gap longer than the memory": {[]uint64{0, 3 * memory, 1}, counts{packets: 3, lost: 3*memory - 2, reordered: 1, most: 3*memory - 1}},
		"too old, and nothing missing": {append(upTo(2*memory), 0), counts{packets: 2 * memory, duplicates: 1}},
	} {
		q := newSequence()
		for _, n := range tt.numbers {
			q.take(n)
		}
		if got := (counts{q.packets, q.lost, q.duplicates, q.reordered, q.reorderMost, q.foreign}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func upTo(n uint64) []uint64 {
	var all []uint64
	for i := range n {
		all = append(all, i)
	}
	return all
}

// For any loss, duplication and reordering, received plus lost datagrams equal the sent ones, up to the highest.
func TestSequenceAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Uint64Range(0, 300), 1, 600).Draw(t, "numbers")
		q, seen, highest := newSequence(), map[uint64]bool{}, uint64(0)
		for _, n := range numbers {
			if fresh := q.take(n); fresh == seen[n] {
				t.Fatalf("number %d: taken %v, seen before %v", n, fresh, seen[n])
			}
			seen[n], highest = true, max(highest, n)
		}
		if q.packets != int64(len(seen)) || q.packets+q.lost != int64(highest+1) || q.duplicates != int64(len(numbers)-len(seen)) {
			t.Fatalf("%d packets, %d lost, %d duplicates of %d numbers up to %d", q.packets, q.lost, q.duplicates, len(numbers), highest)
		}
	})
}

func TestJitterIsOfThePath(t *testing.T) {
	even, uneven, bursts := newSequence(), newSequence(), newSequence()
	for i := range int64(1000) {
		even.arrived(i*1000, i*1000+500, true)
		uneven.arrived(i*1000, i*1000+500+i%2*160, true)
		bursts.arrived(i/10*1000, i/10*1000+500+i, true) // ten per call: their spacing does not count
	}
	if even.jitter != 0 || even.delayMost != 0 {
		t.Errorf("an even path has a jitter of %.0f ns, delay %d", even.jitter, even.delayMost)
	}
	if uneven.jitter < 150 || uneven.jitter > 160 || uneven.delayMost != 160 {
		t.Errorf("jitter of %.0f ns, delay %d, want 160", uneven.jitter, uneven.delayMost)
	}
	if bursts.jitter > 11 {
		t.Errorf("bursts show a jitter of %.0f ns", bursts.jitter)
	}
}

func BenchmarkSequence(b *testing.B) {
	q := newSequence()
	b.ReportAllocs()
	for i := range uint64(b.N) {
		q.take(i)
		q.arrived(int64(i)*1000, int64(i)*1000+int64(i*i%999), true)
	}
}

// The final datagram's number gives the total, in each form of a negative number.
func TestSequenceEnd(t *testing.T) {
	for name, last := range map[string]uint64{
		"negated":              ^uint64(0) - 9, // -10
		"sign of 64 bits":      10 | 1<<63,
		"sign of 32, extended": 10 | 0xffffffff80000000,
	} {
		q := newSequence()
		q.begin(1, Early{Packets: 3, Highest: 4})
		q.take(6)
		q.end(last)
		if q.lost != 5 || q.next != 10 || q.packets != 4 {
			t.Errorf("%s: %d lost of %d, next is %d", name, q.lost, q.packets, q.next)
		}
	}
}
