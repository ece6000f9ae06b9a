package faults

import (
	"slices"
	"strings"
	"testing"
)

// TestFaultsLive finds five of the faults of `make faults` on this machine's kernel, which shows that the
// evidence that the other tests replay is still real. These faults mostly wait, so they run in parallel, but
// not next to other tests.
func TestFaultsLive(t *testing.T) {
	live := []string{"receive-window", "loss-1", "mtu-black-hole", "broken-tso-far", "healthy-200M-20ms"}
	for _, f := range All() {
		if !slices.Contains(live, f.Name) {
			continue
		}
		live = slices.DeleteFunc(live, func(name string) bool { return name == f.Name })
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			_, rows := Run(t, f, strings.Fields("explain -t 2 --budget 12")...)
			for _, r := range rows {
				if !r.Right() {
					t.Errorf("%s", r)
				}
				t.Log(r)
			}
		})
	}
	if len(live) > 0 {
		t.Errorf("the table has no %v", live)
	}
}
