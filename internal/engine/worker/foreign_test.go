package worker

import (
	"bytes"
	"strings"
	"testing"

	"thru/internal/token"
)

// FuzzHello: of all datagrams at the data port, only a hello with this token and an index in range is accepted.
func FuzzHello(f *testing.F) {
	for _, shown := range []string{strings.Repeat("AB", 32), strings.Repeat("ab", 32)} {
		own, err := token.Parse(shown)
		if err != nil {
			f.Fatal(err)
		}
		hello, _ := own.Greeting(token.Datagram, indexBytes(1))
		f.Add(append(hello, make([]byte, numberBytes)...))
		f.Add(hello)
	}
	f.Add([]byte{})
	own, _ := token.Parse(strings.Repeat("AB", 32))
	f.Fuzz(func(t *testing.T, b []byte) {
		index, answer, ok := readHello(b, own, 3)
		if ok && (index < 0 || index >= 3 || len(answer)+numberBytes > len(b) || !bytes.Contains(b, bytes.Repeat([]byte{0xab}, 16))) {
			t.Errorf("%q was taken for a hello of stream %d", b, index)
		}
	})
}

// TestOlderPeers: an end without proofs dials one with proofs, and is dialled by it, over TCP and UDP.
func TestOlderPeers(t *testing.T) {
	for _, shown := range []string{token.New(), strings.ToLower(token.New())} {
		own, err := token.Parse(shown)
		if err != nil {
			t.Fatal(err)
		}
		hello, want := own.Greeting(token.Datagram, indexBytes(2))
		hello = append(hello, make([]byte, numberBytes)...)
		index, answer, ok := readHello(hello, own, 3)
		if !ok || index != 2 || !bytes.Equal(answer, want) || len(answer)+numberBytes > len(hello) {
			t.Errorf("%s: %d, %x for %x, %v", shown, index, answer, want, ok)
		}
	}
}

// FuzzSide: any bytes on the side connection are read to their end.
func FuzzSide(f *testing.F) {
	f.Add([]byte("E"))
	f.Add(append([]byte("F"), report{SpanNs: 1, Bytes: 2}.append(nil)...))
	f.Add([]byte("EFE"))
	f.Add([]byte("nonsense"))
	f.Fuzz(func(t *testing.T, b []byte) {
		reports := 0
		s := newSide(nil)
		s.feedback = func(report) { reports++ }
		s.hear(bytes.NewReader(b))
		if closed(s.enough) != (bytes.IndexByte(words(b), enough) >= 0) || reports > len(b)/reportSize {
			t.Errorf("%q: enough %v, %d reports", b, closed(s.enough), reports)
		}
	})
}

// words leaves out the content of reports, and everything after an invalid message.
func words(b []byte) []byte {
	var said []byte
	for len(b) > 0 {
		switch {
		case b[0] == enough:
			said, b = append(said, b[0]), b[1:]
		case b[0] == reporting && len(b) > reportSize:
			b = b[1+reportSize:]
		default:
			return said
		}
	}
	return said
}

// FuzzSequence: the counts add up for any numbers and times.
func FuzzSequence(f *testing.F) {
	f.Add([]byte{0, 1, 2, 1, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		q := newSequence()
		for i, x := range b {
			n := uint64(x)
			if x > 250 {
				n <<= x % 64
			}
			q.take(n)
			q.arrived(int64(x)<<40, int64(i)-int64(x)<<50, i%2 == 0)
		}
		if q.lost < 0 || q.packets < 0 || q.packets+q.duplicates+q.foreign != int64(len(b)) || q.next <= foreignNumber && q.packets+q.lost != int64(q.next) {
			t.Errorf("%+v", q)
		}
	})
}
