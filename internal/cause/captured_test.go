package cause

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

// explained is the document of an explanation of a path that reorders or loses, which packets would distinguish.
func explained(ends ...measure.EndPoint) *measure.Document {
	d := made{bps: 20e6, againPct: 0.1, recoveries: 30, reordered: 5}.document()
	d.Command = "explain"
	for i := range d.EndPoints {
		d.EndPoints[i].Captures, d.EndPoints[i].NoCapture = ends[i].Captures, ends[i].NoCapture
	}
	Diagnose(d)
	return d
}

// wantsCapture counts how often the document says that a capture would decide, and returns the last reason.
func wantsCapture(d *measure.Document) (n int, why string) {
	for _, m := range d.Missing {
		if m.Fact == "capture" {
			n++
			why = m.Why
		}
	}
	return n, why
}

// TestCaptureWhereItMayBe: the capture experiment is made if an end can capture; otherwise the result says once
// what it would show, and how to get one.
func TestCaptureWhereItMayBe(t *testing.T) {
	may, not := measure.EndPoint{Captures: true}, measure.EndPoint{NoCapture: "b does not allow this client to capture"}
	unknown := measure.EndPoint{}
	for _, tt := range []struct {
		name        string
		one, other  measure.EndPoint
		tried, says bool
	}{
		{"both may", may, may, true, false},
		{"one may", may, not, true, false},
		{"none may", not, not, false, true},
		{"an old result", unknown, unknown, false, false},
	} {
		d := explained(tt.one, tt.other)
		Diagnose(d) // again, as after each experiment
		if got := slices.Contains(tries(d), diagnose.Captured); got != tt.tried {
			t.Errorf("%s: a capture is tried: %v", tt.name, got)
		}
		n, why := wantsCapture(d)
		if n > 1 || (n == 1) != tt.says || tt.says && (!strings.Contains(why, "b does not allow") || !strings.Contains(why, "loss")) {
			t.Errorf("%s: said %d times: %q", tt.name, n, why)
		}
	}
}

// TestCaptureSaysNothing if a capture would show nothing: for a plain test, and for a certain cause.
func TestCaptureSaysNothing(t *testing.T) {
	not := measure.EndPoint{NoCapture: "not as root"}
	d := explained(not, not)
	d.Command = "test"
	Diagnose(d)
	if n, why := wantsCapture(d); n > 0 {
		t.Errorf("a test asks for a capture: %s", why)
	}
}

// TestCaptureOnce: traffic that has captures of its own needs no experiment.
func TestCaptureOnce(t *testing.T) {
	d := explained(measure.EndPoint{Captures: true}, measure.EndPoint{Captures: true})
	d.Cells[0].Runs[0].Flows[0].Captures = []measure.Capture{{EndPoint: "a", Conns: []measure.Connection{}}}
	if ids := tries(d); slices.Contains(ids, diagnose.Captured) {
		t.Errorf("it was captured, and is to be again: %q", ids)
	}
}
