package worker

import (
	"bytes"
	"testing"
)

// FuzzHello: whatever comes to the data port by UDP, only a hello of this
// token with an index in range is one.
func FuzzHello(f *testing.F) {
	ask := bytes.Repeat([]byte{7}, tokenHalf)
	good := append(append([]byte(datagramMagic), ask...), make([]byte, 2+nonceSize)...)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		index, ok := readHello(b, ask, 3)
		if ok && (index < 0 || index >= 3 || len(b) != datagramHello || !bytes.Contains(b, ask)) {
			t.Errorf("%q was taken for a hello of stream %d", b, index)
		}
	})
}

// FuzzSide: whatever a peer says beside the streams is heard to its end.
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

// words leaves out the content of reports, and all behind what is no word.
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

// FuzzSequence: any numbers and times leave an account that adds up.
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
			q.arrived(int64(x)<<40, int64(i)-int64(x)<<50)
		}
		if q.lost < 0 || q.packets < 0 || q.packets+q.duplicates+q.foreign != int64(len(b)) || q.next <= foreignNumber && q.packets+q.lost != int64(q.next) {
			t.Errorf("%+v", q)
		}
	})
}
