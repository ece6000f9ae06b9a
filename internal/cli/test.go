package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/cli/iperf3"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/remote"
	"thru/internal/report"
	"thru/internal/report/short"
)

type testCmd struct {
	EndPoint string `arg:"" optional:"" name:"end-point" help:"A joined name, CONTROLLER/NAME, HOST[:PORT], iperf3://HOST[:PORT] or iperf2://HOST[:PORT]; without it this machine against itself."`
	iperf3.Document
	captureFlags
	hypervisorFlags
	trafficFlags
	endFlags
}

// endFlags choose how to reach an end point.
type endFlags struct {
	Port int `group:"Ends and directions" short:"p" default:"5200" help:"Control port of the end point."`
	esxFlags
}

// esxFlags are for end points at ESXi hosts.
type esxFlags struct {
	Firewall bool `group:"Ends and directions" name:"esx-firewall" help:"For ssh://root@ESXI: if its firewall blocks its iperf3, enable the rule set that opens it, and disable it at the end."`
}

// Run measures one pair.
func (c *testCmd) Run(ctx context.Context, e *env) error {
	r, err := c.read(e)
	if err != nil {
		return err
	}
	if err := c.Document.Settle(&r, c.JSON || c.HTML != ""); err != nil {
		return err
	}
	// Check the request before connecting anything: usage errors come at once.
	if _, err := plan.Test(withCPUs(r, 2, 2)); err != nil {
		return err
	}
	s, err := e.open(ctx, e.dial(r, c.Port, c.esxFlags), c.EndPoint, &r, c.formFlags, c.hypervisorFlags)
	if err != nil {
		return err
	}
	defer s.close()
	s.runner.Gating.Force = c.Force
	p, err := plan.Test(withCPUs(r, s.ends.Local.Hello.CPUs, s.ends.PeerCPUs()))
	if err != nil {
		return err
	}
	if c.Asked() {
		return c.Document.Measure(ctx, e.asIPerf3(), r, p, s.ends.Peer, s.runner)
	}
	if err := s.capture(c.captureFlags, p); err != nil {
		return err
	}
	s.runner.Watch = newWatch(e, p, s.ends, time.Duration(p.Steps[0].Specs[0].Interval), c.silent)
	doc, err := s.runner.Run(ctx, p)
	return s.end(doc, err)
}

// read converts the flags to a plan.Request.
func (c *testCmd) read(e *env) (plan.Request, error) {
	r, err := c.request(plan.TestTime)
	if err != nil {
		return r, err
	}
	if err := c.sensible(e, r); err != nil {
		return r, err
	}
	if err := c.packets(&r, c.has("capture")); err != nil {
		return r, err
	}
	r.Engine, err = remote.EngineOf(c.EndPoint)
	return r, err
}

// takes implements asks: all options.
func (*testCmd) takes() (string, map[string]option.Flag) { return "", nil }

// sensible refuses values without meaning, which an unset shell variable gives.
func (c *testCmd) sensible(e *env, r plan.Request) error {
	switch {
	case r.Acceptance && c.has("time"):
		return fault.Usagef("--acceptance measures 60 s x 5 in both directions; for other times: --repeat 5 -t SECONDS", "-t does not go with --acceptance")
	}
	return nil
}

func withCPUs(r plan.Request, local, peer int) plan.Request {
	r.LocalCPUs, r.PeerCPUs = max(local, 1), max(peer, 1)
	return r
}

// outcome prints and stores the result, also before an error, and returns the error that ends the command.
func (e *env) outcome(doc *measure.Document, f forms, err error) error {
	if len(e.archive.Labels) > 0 { // a stored document has its own labels
		doc.Labels = e.archive.Labels
	}
	perr := e.print(doc, f)
	e.store(doc, f.JSON)
	if perr != nil && err == nil {
		return perr
	}
	switch v := doc.Verdict; {
	case err != nil:
		if !f.JSON && !(doc.Command == "check" && fault.Code(err) == fault.Verdict) { // its gates have reported it
			e.ErrorLines(err)
		}
		return console.Printed(err)
	case v != nil && !v.Pass:
		return console.VerdictError(v)
	}
	return nil
}

// forms are the forms in which to print a document.
type forms struct {
	formFlags          // the page contains the whole document
	raw       bool     // a file may be -, for stdout, if the command allows that
	packets   []string // the page contains the whole document
	read      bool     // capture files already written
	kept      string   // the file of the document; empty: none
	unkept    error    // of packets that could not be written
}

// print writes the document in the forms asked for. If a file cannot be written, it still prints the figures;
// the error goes to stderr and into the printed document.
func (e *env) print(doc *measure.Document, f forms) error {
	var err, unwritten error
	unwritten = e.writeForms(f.files(doc))
	for _, x := range []error{f.unkept, unwritten} {
		if x != nil {
			e.ErrorLines(x)
			err = console.Printed(x)
		}
	}
	if f.JSON {
		if err != nil && doc.Error == nil {
			doc.Error = control.Describe(err)
		}
		if !f.Samples {
			doc = measure.WithoutSamples(doc)
		}
		return errors.Join(err, report.JSON(e.Out, doc))
	}
	show := report.Text
	if !e.isGiven("all") {
		show = func(w io.Writer, d *measure.Document, o report.TextOptions) error {
			return short.Text(w, d, o, e.showAll(f.read))
		}
	}
	if !library.Measured(doc) && len(doc.Findings) == 0 && doc.Command != "check" && !library.Tuned(doc) && report.Answer(doc) == "" {
		show = report.GateFailures
	}
	if terr := show(e.Out, doc, e.text()); terr != nil {
		return errors.Join(err, terr)
	}
	if unwritten == nil {
		e.listFiles(f.files(doc))
	}
	if len(f.packets) > 0 {
		fmt.Fprintf(e.Out, "packets: %s\n", strings.Join(f.packets, " "))
	}
	if f.kept != "" {
		fmt.Fprintf(e.Out, "document: %s\n", f.kept)
	}
	return err
}
