package pcapfile

import (
	"math"
	"testing"
)

// TestClock covers resolutions of all kinds.
func TestClock(t *testing.T) {
	tests := []struct {
		name       string
		resolution byte
		offset     int64
		time       uint64
		want       int64
	}{
		{"seconds", 0, 0, second, second * 1e9},
		{"milliseconds", 3, 0, second*1000 + 5, second*1e9 + 5e6},
		{"microseconds", 6, 0, second * 1e6, second * 1e9},
		{"nanoseconds", 9, 0, uint64(atNs), atNs},
		{"100 picoseconds", 10, 0, uint64(atNs)*10 + 9, atNs},
		{"picoseconds", 12, 0, 5_000_999, 5000},
		{"10^-28", 28, 0, math.MaxUint64, 1},
		{"10^-29", 29, 0, math.MaxUint64, 0},
		{"10^-127", 127, 0, math.MaxUint64, 0},
		{"2^-0", 0x80, 0, second, second * 1e9},
		{"2^-1", 0x81, 0, second*2 + 1, second*1e9 + 5e8},
		{"2^-20", 0x94, 0, second<<20 | 1<<19, second*1e9 + 5e8},
		{"2^-32", 0xa0, 0, second<<32 | 1<<30, second*1e9 + 25e7},
		{"2^-63", 0xbf, 0, 1<<63 | 1<<61, 125e7},
		{"2^-64", 0xc0, 0, 1 << 63, 5e8},
		{"2^-65", 0xc1, 0, 1 << 63, 25e7},
		{"2^-127", 0xff, 0, math.MaxUint64, 0},
		{"offset", 6, 1000, 5, 1_000_000_005_000},
		{"offset before 1970", 9, -1, 5e8, -5e8},
		{"too late", 0, 0, math.MaxUint64, math.MaxInt64},
		{"too late by the offset", 9, 9e9, 9e18, math.MaxInt64},
		{"offset beyond all", 9, math.MinInt64, 7, 7},
	}
	for _, tt := range tests {
		if got := newClock(tt.resolution, tt.offset).ns(tt.time); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
