package iperfdoc

import (
	"testing"

	"thru/internal/measure"
)

// TestAllThatWasSent: the last call of a datagram sender ends after the measured time. Without a ramp it belongs to the test, as at the receiver.
func TestAllThatWasSent(t *testing.T) {
	s := measure.Stream{Bytes: 800, TotalBytes: 1000, Datagrams: &measure.Datagrams{Packets: 8}, DatagramsAll: &measure.Datagrams{Packets: 10}}
	for _, tt := range []struct {
		noRamp         bool
		packets, bytes int64
	}{{true, 10, 1000}, {false, 8, 800}} {
		c := measure.Cell{Spec: measure.Spec{NoRamp: tt.noRamp}}
		if got := total(allSent(&c, &s)); got.Packets != tt.packets || got.Bytes != tt.bytes {
			t.Errorf("no ramp %v: %d datagrams, %d bytes", tt.noRamp, got.Packets, got.Bytes)
		}
	}
	tcp := measure.Stream{Bytes: 800, TotalBytes: 1000}
	if got := total(allSent(&measure.Cell{Spec: measure.Spec{NoRamp: true}}, &tcp)); got.Bytes != 800 {
		t.Errorf("TCP: %d bytes", got.Bytes)
	}
}
