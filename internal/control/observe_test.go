package control

import (
	"context"
	"errors"
	"strings"
	"testing"

	"thru/internal/bus"
	"thru/internal/measure"
)

// witness returns the observation that the test sets.
type witness struct {
	*fakeAgent
	refuses, lost error
	seen          bus.ObserveResult
	heard         chan int // number of connections in each request
}

func (w *witness) Observe(_ context.Context, _ string, m bus.ObserveStart) (bus.JobReply, error) {
	w.called("observe")
	w.heard <- len(m.Conns)
	return bus.JobReply{Session: "o1"}, w.refuses
}

func (w *witness) Observed(_ context.Context, _ string, m bus.JobEnd) (bus.ObserveResult, error) {
	w.called("observed " + m.Session)
	return w.seen, w.lost
}

// runner makes a run of two connections; the second comes after the server's agent has
// received the first.
type runner struct {
	TransferRunner
	heard chan int
	fails error // returned before the bytes move
}

func (m *runner) Move(ctx context.Context, _ string, b PeerWatch) (measure.TransferRun, error) {
	if m.fails != nil {
		return measure.TransferRun{}, m.fails
	}
	one, two := measure.Addresses{Local: "10.0.0.1:5", Peer: "10.0.0.2:80"}, measure.Addresses{Local: "10.0.0.1:6", Peer: "10.0.0.2:80"}
	came := make(chan bool)
	conns := func() []measure.Addresses {
		select {
		case <-came:
			return []measure.Addresses{one, two}
		default:
			return []measure.Addresses{one}
		}
	}
	b.Begin(ctx, conns)
	if m.heard != nil {
		<-m.heard
		close(came)
		<-m.heard
	}
	b.End()
	return measure.TransferRun{Bps: &measure.Figure{Value: 1e9}}, nil
}

func (*runner) Greet(context.Context, *measure.Transfer) error      { return nil }
func (*runner) Settle(context.Context, *measure.Transfer) error     { return nil }
func (*runner) Layers() []string                                    { return []string{measure.LayerMemory} }
func (*runner) Small(context.Context) (*measure.TransferRun, error) { return nil, nil }
func (*runner) Ceiling(context.Context) measure.Layer {
	return measure.Layer{Name: measure.LayerLibrary}
}
func (*runner) Clean() error       { return nil }
func (*runner) Warnings() []string { return nil }

// TestObserved: the observation of the server's end is in the run, and missing facts
// have a reason.
func TestObserved(t *testing.T) {
	cpus := measure.HostSpan{Span: 1e9, CPUs: []measure.CPU{{User: 40, Idle: 60}}, Worker: &measure.Process{UserNs: 4e8}}
	partly := []measure.NotChecked{{Fact: "streams", Why: "1 of 2 connections"}, {Fact: "worker", Why: "root"}}
	tests := []struct {
		name    string
		agent   *witness // nil: there is none
		runner  runner
		cores   float64 // of the server's process; 0: unknown
		missing string
		calls   string
	}{
		{"all", &witness{seen: bus.ObserveResult{Host: cpus, Programs: []string{"nginx"}, Streams: []measure.Stream{{Bytes: 5}}}}, runner{}, 0.4, "", "reserve observe observe observed o1 release"},
		{"a part", &witness{seen: bus.ObserveResult{Host: measure.HostSpan{CPUs: cpus.CPUs}, Missing: partly}}, runner{}, 0,
			"there_sockets: 1 of 2 connections; there_cpu.worker_cores_used: root", "reserve observe observe observed o1 release"},
		{"no CPUs", &witness{}, runner{}, 0, "there_cpu: the agent at the server could not read its CPUs", "reserve observe observe observed o1 release"},
		{"refused", &witness{refuses: errors.New("agent: too old")}, runner{}, 0, "there_cpu: agent: too old; there_sockets: agent: too old", "reserve observe release"},
		{"it is not reported", &witness{lost: errors.New("bus: no reply")}, runner{}, 0, "there_cpu: bus: no reply; there_sockets: bus: no reply", "reserve observe observe observed o1 release"},
		{"no agent", nil, runner{}, 0, "there_cpu: " + noAgent + "; there_sockets: " + noAgent, ""},
		{"the run fails before", &witness{}, runner{fails: errors.New("login")}, 0, "there_cpu: the run ended before the observation began; there_sockets: the run ended before the observation began", "reserve release"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := Transferring{Runner: &tt.runner, Transfer: measure.Transfer{Direction: measure.Download}}
			if a := tt.agent; a != nil {
				a.fakeAgent, a.heard = newAgent("peer"), make(chan int, 8)
				a.Handle(bus.On(bus.Observe.Begin, a.Observe), bus.On(bus.Observe.End, a.Observed))
				if a.refuses == nil {
					tt.runner.heard = a.heard
				}
				x.Server = &EndPoint{Name: "peer", Client: a}
			}
			r := &Runner{Version: "v", Watch: &quiet{}, Ends: map[string]*EndPoint{}}
			doc, err := r.Transfer(t.Context(), x)
			if (err != nil) != (tt.runner.fails != nil) || len(doc.Transfer.Runs) != 1 {
				t.Fatal(err, doc.Transfer.Runs)
			}
			run := doc.Transfer.Runs[0]
			if (run.ThereCPU != nil && run.ThereCPU.WorkerCores != nil) != (tt.cores > 0) || tt.cores > 0 && *run.ThereCPU.WorkerCores != tt.cores {
				t.Errorf("%+v", run.ThereCPU)
			}
			if seen := tt.agent != nil && len(tt.agent.seen.Streams) > 0; (len(run.There) > 0) != seen || (len(run.Programs) > 0) != seen {
				t.Errorf("%+v, %v", run.There, run.Programs)
			}
			var missing []string
			for _, m := range doc.Missing {
				if f, ok := strings.CutPrefix(m.Fact, "transfer.runs."); ok {
					missing = append(missing, f+": "+m.Why)
				}
			}
			if got := strings.Join(missing, "; "); got != tt.missing {
				t.Errorf("missing %q, want %q", got, tt.missing)
			}
			if tt.agent != nil {
				if got := strings.Join(tt.agent.asked(), " "); got != tt.calls {
					t.Errorf("asked %q, want %q", got, tt.calls)
				}
			}
		})
	}
}
