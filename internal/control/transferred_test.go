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

// TestTooShort: a short way needs no long transfer.
func TestTooShort(t *testing.T) {
	for _, tt := range []struct {
		name    string
		seconds float64
		rttUs   uint32
		want    string
	}{
		{"many round trips of loopback", 4.95, 47, ""},
		{"few of a long way", 4.95, 100_000, "49 round trips"},
		{"enough of a long way", 11, 100_000, ""},
		{"half a second", 0.5, 47, "too short for a sure figure"},
		{"the round trip is not known", 3, 0, "too short for a sure figure"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := measure.TransferRun{ElapsedNs: int64(tt.seconds * 1e9), Bps: &measure.Figure{Value: 1e9}}
			if tt.rttUs > 0 {
				run.Sockets = []measure.Stream{{TCP: &measure.TCPInfo{MinRTTUs: &tt.rttUs}}}
			}
			got := tooShort(&measure.Transfer{Runs: []measure.TransferRun{run}})
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
