package live

import (
	"bytes"
	"testing"
)

func TestKept(t *testing.T) {
	const count = 3*chunkPackets + 5
	bytesOf := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, i%(Snap6+1)) }
	var k kept
	scratch := make([]byte, Snap6) // as the ring, whose memory is used again
	for i := range count {
		k.add(packet{timeNs: int64(i)}, scratch[:copy(scratch, bytesOf(i))])
	}
	if k.count != count || len(k.chunks) != 4 {
		t.Errorf("%d packets in %d chunks, want %d in 4", k.count, len(k.chunks), count)
	}
	i := 0
	for p, data := range k.all() {
		if p.timeNs != int64(i) || !bytes.Equal(data, bytesOf(i)) {
			t.Fatalf("packet %d is %+v with %d bytes", i, p, len(data))
		}
		i++
	}
	if i != count {
		t.Errorf("%d packets came back of %d", i, count)
	}
	for range k.all() {
		break // a reader may have enough
	}
}

// TestKeptIsBounded: a frame that no filter cut may not make a chunk grow.
func TestKeptIsBounded(t *testing.T) {
	var k kept
	for range chunkPackets {
		k.add(packet{}, make([]byte, 65536))
	}
	if len(k.chunks) != 1 || cap(k.chunks[0].bytes) != chunkPackets*Snap6 {
		t.Errorf("%d chunks, %d bytes in the first", len(k.chunks), cap(k.chunks[0].bytes))
	}
}
