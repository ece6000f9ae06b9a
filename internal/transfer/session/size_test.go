package session

import (
	"strings"
	"testing"
	"time"
)

// TestSuggested: the suggested size lasts 10 s and 100 round trips, within
// limits.
func TestSuggested(t *testing.T) {
	for _, tt := range []struct {
		name    string
		bps     float64
		rtt     time.Duration
		clients int64
		size    int64
		why     string
	}{
		{"10 s of 100 Mb/s", 100e6, 20 * time.Millisecond, 1, 120 << 20, "10 s at 100 Mb/s"},
		{"100 round trips of 300 ms", 100e6, 300 * time.Millisecond, 1, 358 << 20, "100 round trips of 300 ms at 100 Mb/s"},
		{"a slow path", 1e6, time.Millisecond, 1, 4 << 20, "10 s at 1.00 Mb/s, within"},
		{"faster than a disk is large", 400e9, 0, 4, 4 << 30, "within 4 MiB for each and 16 GiB for all"},
		{"nothing passed", 0, 0, 1, 4 << 20, "within"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			size, why := suggested(tt.bps, tt.rtt, tt.clients)
			if size != tt.size || !strings.Contains(why, tt.why) {
				t.Errorf("%d MiB (%s), want %d MiB (%s)", size>>20, why, tt.size>>20, tt.why)
			}
		})
	}
}
