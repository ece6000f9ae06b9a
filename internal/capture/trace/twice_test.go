package trace

import (
	"testing"

	"thru/internal/capture/frame"
)

// TestSegmentsInStepAreNoCopies: segments of 64 KiB whose sequence number and
// IP identification grow together differ in both, and are no copies.
func TestSegmentsInStepAreNoCopies(t *testing.T) {
	var w twice
	for i := range uint32(1000) {
		p := &frame.Packet{Seq: i << 16, ID: uint16(i), Ack: 1, Window: 512, Payload: 1 << 16, TTL: 64}
		if _, copied := w.seen(p, int64(i)*1000); copied {
			t.Fatalf("segment %d is taken for a copy", i)
		}
	}
}
