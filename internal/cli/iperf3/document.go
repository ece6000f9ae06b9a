package iperf3

import (
	"context"
	"net"
	"slices"
	"strconv"

	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/iperfdoc"
	"thru/internal/measure"
	"thru/internal/plan"
)

// Document holds the flags that print a test as iperf3 does, for scripts that parse that.
type Document struct {
	Original bool `group:"Output" short:"J" name:"iperf3-json" help:"Print iperf3's JSON document (thru help iperf3); forward alone unless -R or --bidir."`
	Stream   bool `group:"Output" name:"json-stream" help:"The same line by line, while the test runs."`
}

// Asked reports whether one of them was given.
func (f Document) Asked() bool { return f.Original || f.Stream }

// Settle limits the request to what iperf3's document can hold: one test, in one direction or in both at
// once.
func (f Document) Settle(r *plan.Request, ours bool) error {
	if !f.Asked() {
		return nil
	}
	if ours || r.Traffic != measure.Bulk || r.Latency || r.Search || r.Acceptance || r.Repeat > 1 || r.PrecisionPct > 0 || r.Capture > 0 {
		return fault.Clashing("--json prints thru's own document, which holds everything", "-J --json-stream", "--json --html --repeat --precision --acceptance --latency --rrul --search --capture --keep --rr --crr")
	}
	r.OneWay = !r.Reverse && !r.Bidir
	r.EachStream = true
	return nil
}

// Fail prints the error as an iperf3 document, for programs that read those.
func Fail(e *console.Console, err error) {
	switch {
	case slices.Contains(e.Args, "--json-stream"):
		iperfdoc.NewStream(e.Out).Fail(fault.Unsecret(originalWords(err)))
	case slices.Contains(e.Args, "-J"), slices.Contains(e.Args, "--iperf3-json"):
		iperfdoc.Report{Test: iperfdoc.Test{Version: iperfdoc.Version(e.Version)}, Error: fault.Unsecret(originalWords(err))}.Write(e.Out)
	}
}

// Measure runs a plan and prints it as iperf3 does.
func (f Document) Measure(ctx context.Context, e Host, r plan.Request, p plan.Plan, peer *control.EndPoint, runner control.Runner) error {
	p.Steps = slices.DeleteFunc(p.Steps, func(s plan.Step) bool { return s.Baseline })
	o := &original{json: f.Original, jsonStream: f.Stream, jsonFull: f.Original && f.Stream, Request: r, host: peer.Name}
	if host, port, err := net.SplitHostPort(peer.Addr); err == nil {
		o.host = host
		o.port, _ = strconv.Atoi(port)
	}
	v := newOriginalView(o, e.Out, e.Version)
	v.introduce(ctx, runner.Ends[control.Local])
	runner.Watch = v
	doc, err := runner.Run(ctx, p)
	doc.Arguments = e.Arguments()
	defer e.Keep(doc)
	if werr := v.end(doc, err); werr != nil && err == nil {
		return werr
	}
	if err != nil {
		return console.Printed(err)
	}
	if d := doc.Verdict; d != nil && !d.Pass {
		return console.VerdictError(d)
	}
	return nil
}
