package control

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// TestUneven: what the sum of several clients hides is said.
func TestUneven(t *testing.T) {
	for _, tt := range []struct {
		name string
		each []float64
		want string
	}{
		{"one client", nil, ""},
		{"alike", []float64{24e6, 28e6, 26e6}, ""},
		{"one is starved", []float64{24e6, 60e6, 26e6}, "from 24.0 Mb/s to 60.0 Mb/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := uneven(&measure.Transfer{Runs: []measure.TransferRun{{Each: tt.each}}})
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
