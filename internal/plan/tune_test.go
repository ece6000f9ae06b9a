package plan

import (
	"reflect"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
)

func tuneRequest() Request {
	return Request{Local: "local", Peer: "b", LocalCPUs: 16, PeerCPUs: 8, Interval: time.Second}
}

// TestTune: a tuning measures each direction by itself, in many short runs, with the streams of a test.
func TestTune(t *testing.T) {
	for name, tt := range map[string]struct {
		change         func(*Request)
		steps, streams int
		repeat         int
		time           time.Duration
	}{
		"default":       {func(*Request) {}, 2, 4, 3, 2 * time.Second},
		"one stream":    {func(r *Request) { r.Streams = 1 }, 2, 1, 3, 2 * time.Second},
		"one direction": {func(r *Request) { r.Reverse = true }, 1, 4, 3, 2 * time.Second},
		"longer, once":  {func(r *Request) { r.Duration, r.Repeat = 5*time.Second, 1 }, 2, 4, 1, 5 * time.Second},
		"one host":      {func(r *Request) { r.Peer = r.Local }, 1, 4, 3, 2 * time.Second},
	} {
		r := tuneRequest()
		tt.change(&r)
		p, err := Tune(r)
		if err != nil || p.Command != "tune" || len(p.Steps) != tt.steps || p.Repeat.Max != tt.repeat {
			t.Fatalf("%s: %v, %+v", name, err, p)
		}
		for _, s := range p.Steps {
			if len(s.Specs) != 1 || s.Baseline || s.Specs[0].Streams != tt.streams || time.Duration(s.Specs[0].Duration) != tt.time {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

// TestTuneRefuses: options under which the traffic does not show the path's capacity are refused.
func TestTuneRefuses(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"-u":      func(r *Request) { r.Protocol = measure.UDP },
		"--rr":    func(r *Request) { r.Traffic = measure.RR },
		"--bidir": func(r *Request) { r.Bidir = true },
		"-b":      func(r *Request) { r.Rate = 1e6 },
		"-n":      func(r *Request) { r.Amount = 1e6 },
		"foreign": func(r *Request) { r.Engine = measure.IPerf3 },
		"-P 200":  func(r *Request) { r.Streams = 200 },
	} {
		r := tuneRequest()
		change(&r)
		if _, err := Tune(r); fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStepWith: the options of a proposal change what they name, and leave the original step unchanged.
func TestStepWith(t *testing.T) {
	s := Step{Specs: []measure.Spec{{From: "a", To: "b", Streams: 1, Window: measure.Pair{Send: 1, Recv: 1}}}}
	was := s.Specs[0]
	if got := s.With(nil); !reflect.DeepEqual(got, s) {
		t.Errorf("nothing: %+v", got)
	}
	got := s.With(&measure.TestOptions{Streams: 4, Window: &measure.Pair{}, Length: &measure.Pair{Send: 9}, IO: measure.IOLean, Congestion: "bbr", SenderCPU: new(1), ReceiverCPU: new(2)}).Specs[0]
	want := measure.Spec{From: "a", To: "b", Streams: 4, Length: measure.Pair{Send: 9}, IO: measure.IOLean, Congestion: "bbr", SenderCPU: new(1), ReceiverCPU: new(2)}
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(s.Specs[0], was) {
		t.Errorf("%+v, of %+v", got, s.Specs[0])
	}
}
