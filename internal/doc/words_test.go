package doc_test

import (
	"math"
	"strings"
	"testing"

	"thru/internal/doc"
)

func TestShortTime(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 ns", 850: "850 ns", 4_800: "4.8 µs", 12_345: "12.3 µs", 999_400: "999 µs", 999_600: "1 ms", 4_100_000: "4.1 ms",
		212_000_000: "212 ms", 1_500_000_000: "1.5 s", -3_900_000: "-3.9 ms", math.MinInt64: "-2562047 h 47 min",
	} {
		if got := doc.ShortTime(ns); got != want {
			t.Errorf("%d ns is %q, want %q", ns, got, want)
		}
	}
}

func TestUnbroken(t *testing.T) {
	for text, want := range map[string]string{
		"of 2 041 230 requests": "of|2 041 230|requests", "p99.9 101 µs, then p": "p99.9 101 µs,|then|p", "range 202 000-206 000": "range|202 000-206 000",
		"core 1: 98% 1000 x": "core|1:|98%|1000|x", "": "", "1 2034": "1|2034", "3 GiB of 16 GiB": "3 GiB|of|16 GiB",
	} {
		if got := strings.Join(doc.Unbroken(text), "|"); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestGapOfBothDirections: a fact that both directions lack for the same reason appears once.
func TestGapOfBothDirections(t *testing.T) {
	const one = "the link rate is not known: interface va at local has a speed in name only; interface vb at peer has a speed in name only"
	const other = "the link rate is not known: interface vb at peer has a speed in name only; interface va at local has a speed in name only"
	var all []doc.Gap
	for _, why := range []string{one, other, "the goodput is not known"} {
		all = doc.AddGap(all, "ceiling", why)
	}
	if len(all) != 2 || all[0].Why != one || len(all[0].Facts) != 1 {
		t.Errorf("%+v", all)
	}
}

func TestReasonText(t *testing.T) {
	if got := doc.Reason("agent: this client may measure here, but not tune"); got != "this client may measure here, but not tune" {
		t.Errorf("%q", got)
	}
}
