package plan

import (
	"testing"
	"time"

	"thru/internal/measure"
)

// TestExplain: an explanation uses one stream by default, each direction by itself, and no baseline.
func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		change  func(*Request)
		streams int
		steps   int
	}{
		{func(*Request) {}, 1, 2},
		{func(r *Request) { r.Streams = 4 }, 4, 2},
		{func(r *Request) { r.Reverse = true }, 1, 1},
		{func(r *Request) { r.OneWay = true }, 1, 1},
		{func(r *Request) { r.Peer = r.Local }, 1, 1},
	} {
		r := Request{Local: "local", Peer: "b", LocalCPUs: 16, PeerCPUs: 16, Duration: 5 * time.Second, Interval: time.Second}
		tt.change(&r)
		p, err := Explain(r)
		if err != nil || p.Command != "explain" || len(p.Steps) != tt.steps || p.Steps[0].Specs[0].Streams != tt.streams {
			t.Errorf("%v, %+v", err, p)
		}
		for _, s := range p.Steps {
			if s.Baseline {
				t.Errorf("%s is beside", s.Label)
			}
		}
	}
	if _, err := Explain(Request{Local: "local", Peer: "b", Streams: 200, Duration: time.Second, Interval: time.Second}); err == nil {
		t.Error("200 streams are planned")
	}
}

// TestExperimentRamp: the ramp of an experiment follows the round-trip time as any other does, within limits.
func TestExperimentRamp(t *testing.T) {
	for _, tt := range []struct {
		spec measure.Spec
		rtt  time.Duration
		want time.Duration
	}{
		{measure.Spec{}, 0, time.Second},
		{measure.Spec{}, time.Millisecond, 400 * time.Millisecond},
		{measure.Spec{}, 30 * time.Millisecond, 600 * time.Millisecond},
		{measure.Spec{}, 100 * time.Millisecond, 2 * time.Second},
		{measure.Spec{}, 400 * time.Millisecond, 3 * time.Second},
		{measure.Spec{Ramp: int64(5 * time.Second)}, 0, 5 * time.Second},
		{measure.Spec{NoRamp: true}, 100 * time.Millisecond, 0},
	} {
		s := Experiment("x", tt.spec, tt.rtt)
		if got := time.Duration(s.Specs[0].Ramp); got != tt.want || s.Label != "x" || !s.Baseline || s.Specs[0].NoRamp != tt.spec.NoRamp {
			t.Errorf("%+v at %v: %v, want %v", tt.spec, tt.rtt, got, tt.want)
		}
	}
}

// TestBaseTraffic: on a path with a short round-trip time the base ramps as its experiments do; what the user set,
// and a long path's ramp, stay.
func TestBaseTraffic(t *testing.T) {
	for _, tt := range []struct {
		spec measure.Spec
		rtt  time.Duration
		want time.Duration // 0: left to the round trip of the connection
	}{
		{measure.Spec{}, 0, 400 * time.Millisecond},
		{measure.Spec{}, 24 * time.Millisecond, 480 * time.Millisecond},
		{measure.Spec{}, 30 * time.Millisecond, 0},
		{measure.Spec{Ramp: int64(5 * time.Second)}, time.Millisecond, 5 * time.Second},
		{measure.Spec{NoRamp: true}, time.Millisecond, 0},
	} {
		before := Step{Specs: []measure.Spec{tt.spec}}
		s := BaseTraffic(before, tt.rtt)
		if got := time.Duration(s.Specs[0].Ramp); got != tt.want || s.Specs[0].NoRamp != tt.spec.NoRamp || before.Specs[0].Ramp != tt.spec.Ramp {
			t.Errorf("%+v at %v: %v, want %v", tt.spec, tt.rtt, got, tt.want)
		}
	}
}
