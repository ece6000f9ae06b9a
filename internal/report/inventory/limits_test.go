package inventory

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// TestHeld checks that the limit of Network I/O Control is shown after that of the adapter's port, unless it
// is off.
func TestHeld(t *testing.T) {
	at := func(on bool, bps int64) *measure.Shaping {
		return &measure.Shaping{Enabled: &on, AverageBps: &bps}
	}
	for _, tc := range []struct {
		nic        measure.GuestNIC
		says, nots string
	}{
		{measure.GuestNIC{IOLimit: at(true, 5e8), Limit: at(false, 0)}, "500 Mb/s by Network I/O Control", ", "},
		{measure.GuestNIC{IOLimit: at(true, 5e8), Limit: at(true, 1e9)}, ", 500 Mb/s by Network I/O Control", ""},
		{measure.GuestNIC{IOLimit: at(false, 5e8), LimitIn: at(true, 1e9)}, "1.00 Gb/s", "Control"},
		{measure.GuestNIC{}, "", "a"},
	} {
		if got := nicLimitText(&tc.nic); !strings.Contains(got, tc.says) || tc.nots != "" && strings.Contains(got, tc.nots) {
			t.Errorf("%+v: %q", tc.nic, got)
		}
	}
}
