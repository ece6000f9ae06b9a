package cause

import (
	"net/netip"
	"testing"

	"thru/internal/cause/advise"
	"thru/internal/cause/scene"
)

// TestWith: parts of a value are replaced in place, and others stay.
func TestWith(t *testing.T) {
	for _, x := range []struct {
		value  string
		change []string
		want   string
	}{
		{"rx 1 tx 2", []string{"rx", "4"}, "rx 4 tx 2"},
		{"", []string{"rx-0", "3"}, "rx-0 3"},
		{"a 1", []string{"b", "2", "a", "3"}, "a 3 b 2"},
		{"odd one out", []string{"odd", "two"}, "odd two"},
	} {
		if got := advise.With(x.value, x.change...); got != x.want {
			t.Errorf("%q with %v is %q, not %q", x.value, x.change, got, x.want)
		}
	}
}

// TestCovers: the route with the longest matching prefix is used.
func TestCovers(t *testing.T) {
	to := netip.MustParseAddr("10.0.0.2")
	for dest, want := range map[string]int{"default": 0, "0.0.0.0/0": 0, "10.0.0.0/24": 24, "10.0.0.2": 32, "10.0.1.0/24": -1, "10.0.0.3": -1, "::/0": -1, "fd00::/8": -1, "nonsense": -1, "": -1} {
		if got := scene.Covers(dest, to); got != want {
			t.Errorf("%s covers %d bits, not %d", dest, got, want)
		}
	}
	if got := scene.Covers("10.0.0.0/8", netip.Addr{}); got != -1 {
		t.Errorf("an address that is not known is in a network: %d", got)
	}
}
