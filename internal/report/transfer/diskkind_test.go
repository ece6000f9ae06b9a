package transfer

import (
	"testing"

	"thru/internal/measure"
)

// TestKindOfDisk: the properties that a virtual disk reports are not trusted.
func TestKindOfDisk(t *testing.T) {
	const unsure = "reports as rotational (a virtual disk: not known)"
	for _, tt := range []struct {
		device, model string
		turns         *bool
		want          string
	}{
		{"sda", "ST4000NM", new(true), "rotational"},
		{"vda", "", new(true), unsure},
		{"xvdb", "", new(true), unsure},
		{"sda", "QEMU HARDDISK", new(true), unsure},
		{"vda", "", new(false), "not rotational"},
		{"sda", "", nil, ""},
	} {
		if got := kindOfDisk(&measure.DiskTest{Device: tt.device, Model: tt.model, Rotational: tt.turns}); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.device, tt.model, got, tt.want)
		}
	}
}
