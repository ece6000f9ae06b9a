package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// directions returns each step with its flows; > marks flows that the sender dials.
func directions(steps []Step) string {
	var out []string
	for _, s := range steps {
		text := s.Label
		for _, o := range s.Specs {
			text += fmt.Sprintf(" %s%s%s", o.From, map[bool]string{true: ">", false: "<"}[o.DialFrom], o.To)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestPairSteps: the dialing end changes neither the flows nor their order.
func TestPairSteps(t *testing.T) {
	pair, turned := Pair{From: "a", To: "b"}, Pair{From: "a", To: "b", DialTo: true}
	for name, c := range map[string]struct {
		pair   Pair
		change func(*Request)
		want   string
	}{
		"both":              {pair, func(*Request) {}, "forward a>b; reverse b<a"},
		"both, turned":      {turned, func(*Request) {}, "forward a<b; reverse b>a"},
		"one way":           {pair, func(r *Request) { r.OneWay = true }, "forward a>b"},
		"one way, turned":   {turned, func(r *Request) { r.OneWay = true }, "forward a<b"},
		"reverse":           {pair, func(r *Request) { r.Reverse = true }, "reverse b<a"},
		"reverse, turned":   {turned, func(r *Request) { r.Reverse = true }, "reverse b>a"},
		"bidir":             {pair, func(r *Request) { r.Bidir = true }, "both directions at once a>b b<a"},
		"bidir, turned":     {turned, func(r *Request) { r.Bidir = true }, "both directions at once b>a a<b"},
		"requests":          {pair, func(r *Request) { r.Traffic = measure.RR }, "forward a>b"},
		"requests, turned":  {turned, func(r *Request) { r.Traffic = measure.RR }, "forward a<b"},
		"latency, turned":   {turned, func(r *Request) { r.Latency, r.OneWay = true, true }, "latency, idle b>a; forward a<b b>a"},
		"within a host":     {Pair{From: "a", To: "a"}, func(*Request) {}, "forward a>a"},
		"reverse, the same": {Pair{From: "a", To: "a"}, func(r *Request) { r.Reverse = true }, "forward a<a"},
	} {
		r := base()
		r.Streams, r.LocalCPU, r.PeerCPU = 1, new(3), new(5)
		c.change(&r)
		steps, err := c.pair.Steps(r)
		if err != nil || directions(steps) != c.want {
			t.Errorf("%s: %q %v, want %q", name, directions(steps), err, c.want)
		}
		for _, s := range steps {
			o := s.Specs[0]
			if o.From == o.To || s.Baseline {
				continue
			}
			if from := map[bool]int{true: 3, false: 5}[o.From == "a"]; *o.SenderCPU != from || *o.ReceiverCPU != 8-from {
				t.Errorf("%s: CPUs %d and %d", name, *o.SenderCPU, *o.ReceiverCPU)
			}
		}
	}
	r := base()
	r.CPUs = 4
	steps, err := Pair{From: "a", To: "b", Either: true, Engine: measure.IPerf3}.Steps(r)
	if err != nil {
		t.Fatal(err)
	}
	if s := steps[1].Specs[0]; !s.Either || s.Engine != measure.IPerf3 || s.SenderCPUs != "0-3" || s.ReceiverCPUs != "0-3" || s.Streams != 2 {
		t.Errorf("%+v", s)
	}
}

func TestRungs(t *testing.T) {
	r := base()
	r.Duration = time.Minute
	rungs := []Rung{{Name: RungLocalhost, Pair: Pair{From: "a", To: "a"}}, {Name: RungLAN, Pair: Pair{From: "a", To: "local", DialTo: true}, Link: Link{RateBps: 25e9, Layer: "l1"}}}
	p, err := Rungs(rungs, r)
	if err != nil || len(p.Steps) != 16 || p.Command != "ladder" {
		t.Fatalf("%d steps, %v", len(p.Steps), err)
	}
	if s := p.Steps[0]; s.Rung != RungLocalhost || s.Link.RateBps != 0 || s.Label != "1 stream, default window" {
		t.Errorf("first %+v", s)
	}
	if s := p.Steps[15]; s.Rung != RungLAN || s.Link.RateBps != 25e9 || s.Label != "8 streams, 800 KiB window" || directions([]Step{s}) != s.Label+" a<local" ||
		fmt.Sprint(s.Axes) != "[{streams 8} {window 800K}]" || s.Independent {
		t.Errorf("last %+v", s)
	}
	if want := 16 * (time.Minute + leastRamp + Setup); p.Time() != want {
		t.Errorf("takes %v, want %v", p.Time(), want)
	}
	r.Bidir = true
	if _, err := Rungs(rungs, r); err == nil {
		t.Error("both directions of a rung at once are planned")
	}
}

// TestVCPUs: the study goes up to the CPUs of both ends, with the default streams for each number.
func TestVCPUs(t *testing.T) {
	r := base()
	for _, c := range []struct {
		local, peer, streams int
		want                 string
	}{
		{64, 8, 0, "1 CPU, 1 stream; 2 CPUs, 1 stream; 4 CPUs, 2 streams; 8 CPUs, 4 streams"},
		{2, 6, 0, "1 CPU, 1 stream; 2 CPUs, 1 stream"},
		{6, 6, 3, "1 CPU, 3 streams; 2 CPUs, 3 streams; 4 CPUs, 3 streams"},
	} {
		r.LocalCPUs, r.PeerCPUs, r.Streams = c.local, c.peer, c.streams
		p, err := VCPUs(r)
		if err != nil || labels(p) != c.want {
			t.Errorf("%+v: %q, %v", c, labels(p), err)
		}
		if s := p.Steps[1]; s.Specs[0].SenderCPUs != "0-1" || s.Specs[0].ReceiverCPUs != "0-1" || fmt.Sprint(s.Axes[0]) != "{cpus 2}" {
			t.Errorf("%+v", s)
		}
	}
	r.LocalCPUs = 0
	if _, err := VCPUs(r); err == nil {
		t.Error("a study of no CPUs is planned")
	}
}

// TestTimeOf: the time of a plan is that of its runs, and the time left is that of the remaining runs.
func TestTimeOf(t *testing.T) {
	second := measure.Spec{Duration: int64(time.Second), NoRamp: true}
	p := Plan{Repeat: Repeat{Min: 2, Max: 3}, Order: OrderInterleaved, Steps: []Step{
		{Specs: []measure.Spec{second}}, {Specs: []measure.Spec{second, second}, Independent: true}, {Specs: []measure.Spec{second}, Baseline: true},
	}}
	alone, apart := time.Second+Setup, time.Second+Setup+meeting
	if p.Time() != 3*alone+3*apart+alone || p.Runs() != 7 {
		t.Errorf("%v, %d runs", p.Time(), p.Runs())
	}
	left := p.Schedule()[3:]
	if got := p.TimeOf(left); got != 2*alone+2*apart || len(left) != 4 {
		t.Errorf("%d runs are left: %v", len(left), got)
	}
	many := Step{Specs: make([]measure.Spec, 500), Independent: true}
	if got := many.Time(); got <= (Step{Specs: many.Specs, Independent: false}).Time()+meeting {
		t.Errorf("500 flows at once take %v", got)
	}
}

func TestParseDSCP(t *testing.T) {
	for text, want := range map[string]int{"ef": 46, "af41": 34, "CS1": 8, "46": 46, "0x2e": 46, "le": 1, "0": 0} {
		if got, err := ParseDSCP(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "64", "-1", "af44", "cs8", "expedited"} {
		if _, err := ParseDSCP(text); err == nil {
			t.Errorf("%q is a code point", text)
		}
	}
}
