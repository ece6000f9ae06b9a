package unit

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	tests := []struct {
		in   string
		want int64
	}{
		{"10G", 10e9}, {"956M", 956e6}, {"1.5g", 1.5e9}, {"500k", 500e3}, {"0", 0}, {"64", 64},
		{"10Gbit/s", 10e9}, {"10gbps", 10e9}, {"49.2 Gb/s", 49.2e9}, {" 1T ", 1e12}, {"0.1", 0}, {"0.5", 1},
		{"1.23456789g", 1234567890}, {"100 bit/s", 100}, {"9223372036854775807", math.MaxInt64}, {".5k", 500},
	}
	for _, tt := range tests {
		if got, err := ParseRate(tt.in); err != nil || got != tt.want {
			t.Errorf("ParseRate(%q) = %d, %v, want %d", tt.in, got, err, tt.want)
		}
	}
}

func TestParseSize(t *testing.T) {
	tests := []struct {
		in   string
		want int64
	}{
		{"128K", 128 << 10}, {"800k", 800 << 10}, {"1M", 1 << 20}, {"64KiB", 64 << 10}, {"1460", 1460}, {"1460B", 1460},
		{"1.5 MiB", 3 << 19}, {"2G", 2 << 30}, {"64kb", 64 << 10}, {"0", 0}, {"0.25K", 256},
	}
	for _, tt := range tests {
		if got, err := ParseSize(tt.in); err != nil || got != tt.want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", tt.in, got, err, tt.want)
		}
	}
}

func TestParseSizePair(t *testing.T) {
	tests := []struct {
		in         string
		send, recv int64
	}{
		{"800K", 800 << 10, 800 << 10}, {"1M/256K", 1 << 20, 256 << 10}, {"0/64K", 0, 64 << 10}, {"1M / 2M", 1 << 20, 2 << 20},
	}
	for _, tt := range tests {
		if send, recv, err := ParseSizePair(tt.in); err != nil || send != tt.send || recv != tt.recv {
			t.Errorf("ParseSizePair(%q) = %d, %d, %v, want %d, %d", tt.in, send, recv, err, tt.send, tt.recv)
		}
	}
}

func TestParseLinkRate(t *testing.T) {
	tests := []struct {
		in    string
		bps   int64
		layer string
	}{
		{"10G", 10e9, L1}, {"10G/l1", 10e9, L1}, {"1G/l2", 1e9, L2}, {"1g/L2", 1e9, L2}, {"10Gbit/s", 10e9, L1}, {"10Gb/s/l2", 10e9, L2},
	}
	for _, tt := range tests {
		if bps, layer, err := ParseLinkRate(tt.in); err != nil || bps != tt.bps || layer != tt.layer {
			t.Errorf("ParseLinkRate(%q) = %d, %q, %v, want %d, %q", tt.in, bps, layer, err, tt.bps, tt.layer)
		}
	}
}

func TestParsePercent(t *testing.T) {
	for in, want := range map[string]float64{"2.5%": 2.5, "2.5": 2.5, "0": 0, "95 %": 95, ".5": 0.5} {
		if got, err := ParsePercent(in); err != nil || got != want {
			t.Errorf("ParsePercent(%q) = %g, %v, want %g", in, got, err, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
	}{
		{"10", 10 * time.Second}, {"2.5", 2500 * time.Millisecond}, {"60s", time.Minute}, {"1m", time.Minute},
		{"1m30s", 90 * time.Second}, {"1m30", 90 * time.Second}, {"100ms", 100 * time.Millisecond}, {"0", 0}, {" 5 ", 5 * time.Second},
	}
	for _, tt := range tests {
		if got, err := ParseDuration(tt.in); err != nil || got != tt.want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
}

// parsers lists each parser with an input that it accepts.
var parsers = []struct {
	name, good, accepts string
	parse               func(string) error
}{
	{"rate", "10G", takesRate, func(s string) error { _, err := ParseRate(s); return err }},
	{"size", "128K", takesSize, func(s string) error { _, err := ParseSize(s); return err }},
	{"size pair", "128K", takesPair, func(s string) error { _, _, err := ParseSizePair(s); return err }},
	{"link rate", "10G", takesLink, func(s string) error { _, _, err := ParseLinkRate(s); return err }},
	{"percentage", "5%", takesPercent, func(s string) error { _, err := ParsePercent(s); return err }},
	{"duration", "5s", takesDuration, func(s string) error { _, err := ParseDuration(s); return err }},
}

// TestRefused gives every parser input that none accepts, and checks its error.
func TestRefused(t *testing.T) {
	bad := []string{
		"", " ", "-1", "-", "NaN", "Inf", "+Inf", "inf", "1X", "K", "1..5", ".", "0x10", "1_000", "1e3", "1K2", "1KK", "1 2",
		"999999999999999999999999G", "1/2/3", "1GB/s", "\x00", "１", strings.Repeat("9", 400), "1" + strings.Repeat("0", 400) + "h",
	}
	for _, p := range parsers {
		if err := p.parse(p.good); err != nil {
			t.Errorf("%s refuses %q: %v", p.name, p.good, err)
		}
		for _, in := range bad {
			err := p.parse(in)
			if err == nil {
				t.Errorf("%s takes %q", p.name, in)
				continue
			}
			begin := "unit: parsing " + p.name + " " + strconv.Quote(in)
			if !strings.HasPrefix(err.Error(), begin) || !strings.HasSuffix(err.Error(), p.accepts) {
				t.Errorf("%s(%q) says %q, want %q ... %q", p.name, in, err, begin, p.accepts)
			}
		}
	}
	for in, parse := range map[string]func(string) error{"0": parsers[3].parse, "1G/l3": parsers[3].parse, "8E": parsers[1].parse, "10E": parsers[0].parse, "10GBps": parsers[0].parse, "1M": parsers[5].parse} {
		if parse(in) == nil {
			t.Errorf("%q is taken", in)
		}
	}
}

// within reports whether a figure, printed to three digits and read again, is the same.
func within(got, want, pct float64) bool {
	return math.Abs(got-want) <= math.Abs(want)*pct/100+0.5
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"10G", "1.5g", "500kbit/s", "0", "9e", "-1", "NaN"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseRate(s)
		if err != nil {
			return
		}
		if again, err := ParseRate(strconv.FormatInt(n, 10) + "bit/s"); err != nil || again != n || n < 0 {
			t.Errorf("%q is %d, read again %d, %v", s, n, again, err)
		}
		if again, err := ParseRate(Rate(float64(n))); err != nil && n < 9e18 || err == nil && !within(float64(again), float64(n), 0.5) {
			t.Errorf("%q prints as %q, read again %d, %v", s, Rate(float64(n)), again, err)
		}
	})
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"128K", "64KiB", "1460", "1.5 MiB", "7e", "-1", "1X"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			return
		}
		if again, err := ParseSize(strconv.FormatInt(n, 10)); err != nil || again != n || n < 0 {
			t.Errorf("%q is %d, read again %d, %v", s, n, again, err)
		}
		if again, err := ParseSize(Size(n)); err != nil && n < 9e18 || err == nil && !within(float64(again), float64(n), 0.5) {
			t.Errorf("%q prints as %q, read again %d, %v", s, Size(n), again, err)
		}
	})
}

func FuzzParseSizePair(f *testing.F) {
	f.Add("800K")
	f.Add("1M/256K")
	f.Add("/")
	f.Fuzz(func(t *testing.T, s string) {
		send, recv, err := ParseSizePair(s)
		if err != nil {
			return
		}
		text := strconv.FormatInt(send, 10) + "/" + strconv.FormatInt(recv, 10)
		if a, b, err := ParseSizePair(text); err != nil || a != send || b != recv {
			t.Errorf("%q is %s, read again %d, %d, %v", s, text, a, b, err)
		}
	})
}

func FuzzParseLinkRate(f *testing.F) {
	f.Add("10G")
	f.Add("1Gb/s/l2")
	f.Add("/l1")
	f.Fuzz(func(t *testing.T, s string) {
		bps, layer, err := ParseLinkRate(s)
		if err != nil {
			return
		}
		text := strconv.FormatInt(bps, 10) + "/" + layer
		if a, b, err := ParseLinkRate(text); err != nil || a != bps || b != layer || bps <= 0 {
			t.Errorf("%q is %s, read again %d, %q, %v", s, text, a, b, err)
		}
	})
}

func FuzzParsePercent(f *testing.F) {
	f.Add("2.5%")
	f.Add("-1")
	f.Add("NaN")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePercent(s)
		if err != nil {
			return
		}
		text := strconv.FormatFloat(p, 'f', -1, 64) + "%"
		if again, err := ParsePercent(text); len(text) <= longest && (err != nil || again != p) || p < 0 || !finite(p) {
			t.Errorf("%q is %g, read again %g, %v", s, p, again, err)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	f.Add("10")
	f.Add("1m30s")
	f.Add("2.5")
	f.Add("1h-5s")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			return
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d || d < 0 {
			t.Errorf("%q is %v, read again %v, %v", s, d, again, err)
		}
	})
}
