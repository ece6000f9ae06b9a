package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/cause/knob"
)

// TestTuneReportsOnly: a tuning limited to some knobs says so where it finds nothing; one
// whose target is met before any change announces no time for changes.
func TestTuneReportsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sick()
		doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, Only: []string{knob.MTU}, propose: proposing()})
		if err != nil || !slices.Equal(doc.Tuning.Only, []string{knob.MTU}) || !strings.Contains(doc.Ended, "--only") {
			t.Errorf("%v: only %v, ended %q", err, doc.Tuning.Only, doc.Ended)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := sick()
		doc, err := w.runner(&quiet{}).Tune(t.Context(), tunePlan(t), Probing{}, Tuning{Budget: time.Hour, TargetBps: 1, propose: proposing(cures()...)})
		if err != nil || doc.Tuning.ExpectNs != 0 || len(doc.Tuning.Attempts) != 0 {
			t.Errorf("%v: %d ns for changes, %d tried", err, doc.Tuning.ExpectNs, len(doc.Tuning.Attempts))
		}
	})
}
