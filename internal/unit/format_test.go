package unit

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	tests := []struct {
		bps  float64
		want string
	}{
		{49.23e9, "49.2 Gb/s"}, {956.4e6, "956 Mb/s"}, {999.4e6, "999 Mb/s"}, {999.6e6, "1.00 Gb/s"}, {1e9, "1.00 Gb/s"},
		{0, "0 b/s"}, {12.3, "12 b/s"}, {999.7, "1.00 kb/s"}, {1e3, "1.00 kb/s"}, {99.96e9, "100 Gb/s"}, {9.996e9, "10.0 Gb/s"},
		{-956e6, "-956 Mb/s"}, {1.5e12, "1.50 Tb/s"}, {math.NaN(), notKnown}, {math.Inf(1), notKnown},
	}
	for _, tt := range tests {
		if got := Rate(tt.bps); got != tt.want {
			t.Errorf("Rate(%g) = %q, want %q", tt.bps, got, tt.want)
		}
	}
}

// TestRateNeverThousand tests small steps across the limits of the units.
func TestRateNeverThousand(t *testing.T) {
	for x := 1.0; x < 1e16; x *= 1.0003 {
		if got := Rate(x); strings.HasPrefix(got, "1000") {
			t.Fatalf("Rate(%g) = %q", x, got)
		}
	}
}

func TestRateRange(t *testing.T) {
	tests := []struct {
		low, high float64
		want      string
	}{
		{47.8e9, 49.9e9, "47.8-49.9 Gb/s"}, {956e6, 1.2e9, "0.956-1.20 Gb/s"}, {940e6, 941e6, "940-941 Mb/s"},
		{940.1e6, 940.2e6, "940 Mb/s"}, {0, 5e6, "0-5.00 Mb/s"}, {990e6, 999.7e6, "0.990-1.00 Gb/s"}, {math.NaN(), 1, notKnown},
	}
	for _, tt := range tests {
		if got := RateRange(tt.low, tt.high); got != tt.want {
			t.Errorf("RateRange(%g, %g) = %q, want %q", tt.low, tt.high, got, tt.want)
		}
	}
}

func TestSize(t *testing.T) {
	tests := []struct {
		bytes int64
		want  string
	}{
		{800 << 10, "800 KiB"}, {3 << 19, "1.5 MiB"}, {1460, "1460 B"}, {1024, "1 KiB"}, {0, "0 B"}, {8948, "8948 B"}, {8192, "8 KiB"},
		{73000, "71.3 KiB"}, {1 << 20, "1 MiB"}, {1<<20 - 1, "1 MiB"}, {1023 << 10, "1023 KiB"}, {425984, "416 KiB"},
		{-2048, "-2 KiB"}, {math.MaxInt64, "8 EiB"}, {math.MinInt64, "-8 EiB"}, {5 << 30, "5 GiB"},
	}
	for _, tt := range tests {
		if got := Size(tt.bytes); got != tt.want {
			t.Errorf("Size(%d) = %q, want %q", tt.bytes, got, tt.want)
		}
	}
}

func TestDuration(t *testing.T) {
	tests := []struct {
		d    time.Duration
		want string
	}{
		{850, "850 ns"}, {0, "0 ns"}, {29 * time.Microsecond, "29 µs"}, {29499, "29 µs"}, {999_600, "1.00 ms"},
		{1200 * time.Microsecond, "1.20 ms"}, {32 * time.Millisecond, "32.0 ms"}, {999_700 * time.Microsecond, "1 s"}, {999_999_999, "1 s"},
		{12 * time.Second, "12 s"}, {2500 * time.Millisecond, "2.5 s"}, {59_940 * time.Millisecond, "59.9 s"}, {59_960 * time.Millisecond, "1 min"},
		{490 * time.Second, "8 min 10 s"}, {2 * time.Minute, "2 min"}, {185 * time.Minute, "3 h 5 min"}, {time.Hour - 1, "1 h"},
		{-12 * time.Second, "-12 s"}, {math.MinInt64, "-2562047 h 47 min"},
	}
	for _, tt := range tests {
		if got := Duration(int64(tt.d)); got != tt.want {
			t.Errorf("Duration(%d) = %q, want %q", tt.d, got, tt.want)
		}
	}
}

func TestPercent(t *testing.T) {
	tests := []struct {
		pct  float64
		want string
	}{
		{98.04, "98%"}, {2.5, "2.5%"}, {0.25, "0.25%"}, {100, "100%"}, {0, "0%"}, {0.001, "<0.01%"}, {-0.001, ">-0.01%"},
		{94.15, "94.2%"}, {9.999, "10%"}, {150.4, "150%"}, {-3.21, "-3.21%"}, {math.NaN(), notKnown},
	}
	for _, tt := range tests {
		if got := Percent(tt.pct); got != tt.want {
			t.Errorf("Percent(%g) = %q, want %q", tt.pct, got, tt.want)
		}
	}
}

func TestCount(t *testing.T) {
	tests := []struct {
		n    int64
		want string
	}{
		{812743, "812 743"}, {0, "0"}, {999, "999"}, {1000, "1 000"}, {1234567, "1 234 567"}, {-1000, "-1 000"}, {-999, "-999"},
	}
	for _, tt := range tests {
		if got := Count(tt.n); got != tt.want {
			t.Errorf("Count(%d) = %q, want %q", tt.n, got, tt.want)
		}
	}
}

func TestList(t *testing.T) {
	for want, numbers := range map[string][]int{"": nil, "0": {0}, "0-3,8,10-11": {0, 1, 2, 3, 8, 10, 11}, "1,3-4": {4, 3, 1, 3}} {
		if got := List(numbers); got != want {
			t.Errorf("%d: %q, want %q", numbers, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 runs", 1: "1 run", 2: "2 runs", 1200: "1200 runs"} {
		if got := Plural(n, "run"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
