package runner

import (
	"bytes"
	"compress/flate"
	"io"
	"testing"
)

// TestNoise: any part is the same however it is read, no two keys share a
// part, and no compression makes it smaller.
func TestNoise(t *testing.T) {
	const size = 3*longTable + 100
	s, other := stream(t, 1), stream(t, 2)
	whole := read(t, s.Reader(0, size))
	for _, at := range []int64{0, 1, shortTable - 1, shortTable, longTable - 1, longTable, 2*longTable + 77, size - 1} {
		if part := read(t, s.Reader(at, size-at)); !bytes.Equal(part, whole[at:]) {
			t.Errorf("%d bytes from %d on are others", size-at, at)
		}
	}
	far := read(t, s.Reader(5<<30, 1000))
	if bytes.Contains(whole, far[:16]) || bytes.Equal(far, read(t, other.Reader(5<<30, 1000))) {
		t.Error("the stream repeats")
	}
	var small bytes.Buffer
	w, err := flate.NewWriter(&small, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, s.Reader(0, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || small.Len() < size {
		t.Errorf("%d bytes are %d, %v", size, small.Len(), err)
	}
}

// BenchmarkStream is the cost of generating data, which a transfer bears.
func BenchmarkStream(b *testing.B) {
	s, err := NewStream(1)
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, 256<<10)
	b.SetBytes(int64(len(p)))
	r := s.Reader(0, 1<<62)
	for b.Loop() {
		if _, err := io.ReadFull(r, p); err != nil {
			b.Fatal(err)
		}
	}
}
