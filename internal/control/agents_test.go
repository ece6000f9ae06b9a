package control

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/engine/native"
	"thru/internal/engine/worker"
	"thru/internal/host"
	"thru/internal/measure"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Verb {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// realEnd is an agent of this process, with its own control plane and workers.
func realEnd(t *testing.T, name string, program *worker.Program) *EndPoint {
	t.Helper()
	a := agent.New(agent.Config{
		Name: name, Version: "test", Engines: engine.Table{measure.Native: native.Engine{Program: program}}, Host: host.New(),
		Limits: agent.DefaultLimits(), Listen: engine.Listen{Addrs: []string{"127.0.0.1"}},
	})
	c, err := bus.InProcess(a)
	if err != nil {
		t.Fatal(err)
	}
	a.Publisher(c.Publish)
	t.Cleanup(func() { c.Close(); a.Close() })
	hello, err := c.Hello(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &EndPoint{Name: name, Client: c, Hello: hello, DataHosts: []string{"127.0.0.1"}}
}

// Real agents and workers over loopback: a triangle at once, and an end that cannot
// be dialled.
func TestRealAgents(t *testing.T) {
	program, err := worker.Self()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	ends := map[string]*EndPoint{}
	for _, n := range []string{"a", "b", "c"} {
		ends[n] = realEnd(t, n, program)
	}
	ends["c"].DataHosts = []string{"127.0.0.1", "127.0.0.2"} // the agent does not listen at the second address
	specs := []measure.Spec{spec("a", "b"), spec("b", "c"), spec("c", "a"), spec("a", "c"), spec("b", "c")}
	for i := range specs {
		specs[i].Duration, specs[i].Rate = int64(300*time.Millisecond), 8e6
	}
	specs[3].DataAddr = "127.0.0.2"
	specs[4].DataAddr, specs[4].Either = "", true
	doc, err := (&Runner{Ends: ends, Watch: &quiet{}}).Run(t.Context(), atOnce(specs...))
	if err == nil || doc.Cells[3].Error == nil || doc.Cells[3].Goodput != nil {
		t.Errorf("a data port that is closed behind an open control port: %v, %+v", err, doc.Cells[3].Error)
	}
	for i := range doc.Cells {
		x := doc.Cells[i].Runs[0]
		if i == 3 {
			t.Logf("closed: %s; %s", x.Error.Message, x.Error.Hint)
			continue
		}
		if x.Error != nil || x.Timing == nil || x.Goodput == nil || x.Flows[0].Sender.BeganNs == nil {
			t.Fatalf("cell %d: %+v", i, x)
		}
		if late := time.Duration(x.Timing.StartNs); late < -time.Duration(x.Timing.BoundNs) {
			t.Errorf("cell %d began %v before the common start", i, -late)
		}
		t.Logf("cell %d began %v after the common start, give or take %v", i, time.Duration(x.Timing.StartNs), time.Duration(x.Timing.BoundNs))
	}
}
