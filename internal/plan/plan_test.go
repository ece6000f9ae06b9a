package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
)

func base() Request {
	return Request{Local: "local", Peer: "esx2", LocalCPUs: 8, PeerCPUs: 4, Duration: 10 * time.Second, Interval: time.Second}
}

func labels(p Plan) string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Label)
	}
	return strings.Join(out, "; ")
}

func TestTestPlans(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"default":     {func(*Request) {}, "forward; reverse; single stream"},
		"one stream":  {func(r *Request) { r.Streams = 1 }, "forward; reverse"},
		"reverse":     {func(r *Request) { r.Reverse, r.Streams = true, 1 }, "reverse"},
		"one way":     {func(r *Request) { r.OneWay, r.Streams = true, 1 }, "forward"},
		"bidir":       {func(r *Request) { r.Bidir, r.Streams = true, 1 }, "both directions at once"},
		"one machine": {func(r *Request) { r.Peer, r.Streams = "local", 1 }, "forward"},
		"acceptance":  {func(r *Request) { r.Acceptance, r.Streams = true, 1 }, "forward; reverse"},
	} {
		r := base()
		c.change(&r)
		p, err := Test(r)
		if err != nil || labels(p) != c.want {
			t.Errorf("%s: %q %v, want %q", name, labels(p), err, c.want)
		}
	}
}

// TestDirections: the end that runs the command dials in both directions; settings of the local end and its
// peer apply to sender and receiver.
func TestDirections(t *testing.T) {
	r := base()
	r.LocalCPU, r.PeerCPU, r.Streams = new(3), new(5), 1
	p, err := Test(r)
	if err != nil {
		t.Fatal(err)
	}
	f, b := p.Steps[0].Specs[0], p.Steps[1].Specs[0]
	if f.From != "local" || f.To != "esx2" || !f.DialFrom || *f.SenderCPU != 3 || *f.ReceiverCPU != 5 {
		t.Errorf("forward %+v", f)
	}
	if b.From != "esx2" || b.To != "local" || b.DialFrom || *b.SenderCPU != 5 || *b.ReceiverCPU != 3 {
		t.Errorf("reverse %+v", b)
	}
}

func TestAcceptance(t *testing.T) {
	r := base()
	r.Acceptance = true
	p, err := Test(r)
	if err != nil {
		t.Fatal(err)
	}
	if p.Repeat.Max != 5 || p.Steps[0].Specs[0].Duration != int64(time.Minute) || p.Runs() != 5*2+1 {
		t.Errorf("%+v, %d runs", p.Repeat, p.Runs())
	}
	// 10 runs of 60 s and one baseline, each with a second of ramp.
	if want := 10*(time.Minute+time.Second+Setup) + baselineTime + time.Second + Setup; p.Time() != want {
		t.Errorf("time %v, want %v", p.Time(), want)
	}
}

func TestDefaultStreams(t *testing.T) {
	for _, c := range [][3]int{{1, 1, 1}, {2, 2, 1}, {8, 4, 2}, {64, 64, 8}, {64, 6, 3}} {
		if got := DefaultStreams(c[0], c[1]); got != c[2] {
			t.Errorf("%d and %d CPUs: %d streams, want %d", c[0], c[1], got, c[2])
		}
	}
}

func TestRamp(t *testing.T) {
	for _, c := range []struct {
		asked, rtt, want time.Duration
	}{
		{0, time.Millisecond, time.Second}, {0, 100 * time.Millisecond, 2 * time.Second},
		{0, time.Minute, 10 * time.Second}, {5 * time.Second, time.Minute, 5 * time.Second},
	} {
		if got := Ramp(measure.Spec{Ramp: int64(c.asked)}, c.rtt); got != c.want {
			t.Errorf("asked %v at %v: %v, want %v", c.asked, c.rtt, got, c.want)
		}
	}
}

func TestNoRamp(t *testing.T) {
	r := base()
	r.RampSet = true
	p, err := Test(r)
	if err != nil || Ramp(p.Steps[0].Specs[0], time.Second) != 0 {
		t.Errorf("-O 0 gives a ramp of %v, %v", Ramp(p.Steps[0].Specs[0], time.Second), err)
	}
}

func TestLadder(t *testing.T) {
	r := base()
	r.Peer = "local"
	p, err := Ladder(r)
	if err != nil {
		t.Fatal(err)
	}
	want := "1 stream, default window; 2 streams, default window; 4 streams, default window; 8 streams, default window; " +
		"1 stream, 800 KiB window; 2 streams, 800 KiB window; 4 streams, 800 KiB window; 8 streams, 800 KiB window"
	if labels(p) != want {
		t.Errorf("%q", labels(p))
	}
	if s := p.Steps[7].Specs[0]; s.Streams != 8 || s.Window.Send != 819200 || s.Window.Recv != 819200 {
		t.Errorf("last cell %+v", s)
	}
}

// TestDeterministic: the same request gives the same bytes.
func TestDeterministic(t *testing.T) {
	a, _ := Test(base())
	b, _ := Test(base())
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if string(x) != string(y) || len(x) < 100 {
		t.Error("two plans of one request differ")
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"{streams} takes":     func(r *Request) { r.Streams = 129 },
		"{time} takes":        func(r *Request) { r.Duration = 48 * time.Hour },
		"{client_port} takes": func(r *Request) { r.Streams, r.BindPort = 10, 65530 },
		"{io} takes":          func(r *Request) { r.IO = "magic" },
	} {
		r := base()
		change(&r)
		_, err := Test(r)
		var refused *Refused
		if !errors.As(err, &refused) || fault.Code(err) != fault.Usage || !strings.Contains(refused.hint, name) {
			t.Errorf("%s: error %v, hint %q", name, err, fault.Hint(err))
		}
	}
}

// TestRRUL: one stream of each class in each direction, all at once with the latency probes, after probes on
// the idle path.
func TestRRUL(t *testing.T) {
	r := Request{Local: "local", Peer: "b", Duration: time.Second, Interval: time.Second, RRUL: true, Latency: true, LocalCPUs: 16, PeerCPUs: 16}
	p, err := Test(r)
	if err != nil || len(p.Steps) != 2 || len(p.Steps[1].Specs) != 9 {
		t.Fatalf("%v, %+v", err, p.Steps)
	}
	var got []string
	for _, s := range p.Steps[1].Specs {
		got = append(got, fmt.Sprintf("%s %d x%d from %d", s.From, s.DSCP, s.Streams, s.FirstStream))
	}
	if want := "local 0 x1 from 0,local 8 x1 from 1,local 40 x1 from 2,local 46 x1 from 3,b 0 x1 from 4,b 8 x1 from 5,b 40 x1 from 6,b 46 x1 from 7,local 0 x1 from 0"; strings.Join(got, ",") != want {
		t.Errorf("got %q", got)
	}
	if !p.Steps[1].Specs[8].LatencyProbe || !p.Steps[0].Specs[0].LatencyProbe || p.Steps[1].Specs[0].LatencyProbe {
		t.Error("the requests are not told from the data")
	}
	for _, change := range []func(*Request){
		func(r *Request) { r.Peer = "local" }, func(r *Request) { r.Streams = 2 }, func(r *Request) { r.Bidir = true }, func(r *Request) { r.Protocol = measure.UDP },
		func(r *Request) { r.DSCP = 8 }, func(r *Request) { r.Engine = measure.IPerf3 },
	} {
		x := r
		change(&x)
		if _, err := Test(x); err == nil || !strings.Contains(err.Error(), "rrul") {
			t.Errorf("%v", err)
		}
	}
}
