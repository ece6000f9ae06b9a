package diagnose

import (
	"slices"
	"testing"

	"thru/internal/measure"
)

// tries are the experiments that Next proposes one after the other, none of
// which is made.
func tries(d *measure.Document) (ids []string) {
	for {
		t, ok := Next(d, 0, ids)
		if !ok {
			return ids
		}
		ids = append(ids, t.ID)
	}
}

// Where nothing passes, only what is smaller could.
func TestNextWherePacketsDoNotPass(t *testing.T) {
	hole := made{bps: 0, againPct: 100}.document()
	Diagnose(hole)
	for _, id := range tries(hole) {
		if id != smallSegments {
			t.Errorf("%s is tried on a path that carries nothing", id)
		}
	}
	lossy := made{bps: 20e6, againPct: 0.1, recoveries: 30}.document()
	Diagnose(lossy)
	if ids := tries(lossy); len(ids) < 2 || !slices.Contains(ids, udpBelow) {
		t.Errorf("on a path that loses: %q", ids)
	}
}

// No experiment is proposed twice, and what is certain needs none.
func TestNextEnds(t *testing.T) {
	d := made{bps: 20e6, againPct: 0.1, recoveries: 30}.document()
	Diagnose(d)
	ids := tries(d)
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("twice: %q", ids)
	}
	d.Cells[0].Findings[0].Confidence = measure.Certain
	if x, more := Next(d, 0, nil); more {
		t.Errorf("certain, and %s is tried", x.ID)
	}
}

// Programs of others know one window for both ends.
func TestWindowOfOtherPrograms(t *testing.T) {
	for engine, want := range map[string]measure.Pair{
		measure.Native: {Recv: 200_000},
		measure.IPerf3: {Send: 200_000, Recv: 200_000},
		measure.IPerf2: {Send: 200_000, Recv: 200_000},
	} {
		d := made{bps: 40e6, window: 100_000}.document()
		s := d.Cells[0].Spec
		s.Engine = engine
		if !varyWindow(newFlow(d, &d.Cells[0]), &s) || s.Window != want {
			t.Errorf("%s: %+v", engine, s.Window)
		}
	}
}
