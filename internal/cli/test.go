package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/cli/iperf3"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/remote"
	"thru/internal/report"
	"thru/internal/stat"
)

// testTime is how long a direction is measured unless -t says otherwise, as in iperf3.
const testTime = 10 * time.Second

type testCmd struct {
	EndPoint string `arg:"" optional:"" name:"end-point" help:"A name that was joined, CONTROLLER/NAME, HOST[:PORT], iperf3://HOST[:PORT] or iperf2://HOST[:PORT]; without it this machine against itself."`
	loginFlags
	iperf3.Document
	captureFlags
	belowFlags
	trafficFlags
	endFlags
}

// endFlags say how an end point is reached.
type endFlags struct {
	Port int `group:"Ends and directions" short:"p" default:"5200" help:"Control port of the end point."`
	esxFlags
}

// esxFlags are of end points at ESXi hosts.
type esxFlags struct {
	Firewall bool `group:"Ends and directions" name:"esx-firewall" help:"Of ssh://root@ESXI: where its firewall lets nothing in to its iperf3, enable the one rule set that does, and disable it at the end."`
}

// Run measures one pair.
func (c *testCmd) Run(ctx context.Context, e *env) error {
	r, err := c.read(e)
	if err != nil {
		return err
	}
	link, err := linkRate(c.LinkRate)
	if err != nil {
		return err
	}
	if err := c.Document.Settle(&r, c.JSON || c.HTML != ""); err != nil {
		return err
	}
	// The request is checked before anything is connected: usage errors come at once.
	if _, err := plan.Test(withCPUs(r, 2, 2)); err != nil {
		return err
	}
	ends, closeAll, err := c.above(ctx, e, c.dial(e, r, c.loginFlags), c.EndPoint)
	if err != nil {
		return err
	}
	defer closeAll()
	ends.Settle(&r)
	p, err := plan.Test(withCPUs(r, ends.Local.Hello.CPUs, ends.PeerCPUs()))
	if err != nil {
		return err
	}
	if c.Asked() {
		return c.Document.Measure(ctx, e.asIPerf3(), r, p, ends, link, c.Force)
	}
	k, err := c.keeper(p, ends)
	if err != nil {
		return err
	}
	return e.measure(ctx, p, ends, link, &c.trafficFlags, k)
}

// read turns the flags into plan's terms.
func (c *testCmd) read(e *env) (plan.Request, error) {
	r, err := c.request(testTime)
	if err != nil {
		return r, err
	}
	if err := c.sensible(e, r); err != nil {
		return r, err
	}
	if err := c.packets(&r); err != nil {
		return r, err
	}
	r.Engine, err = c.engineOf(e, c.EndPoint)
	return r, err
}

// takes implements asks: all options.
func (*testCmd) takes() (names string, help map[string]string) { return "", nil }

// dial is what connects the ends.
func (f *endFlags) dial(e *env, r plan.Request, l loginFlags) remote.Dialer {
	d := remote.Dialer{Network: e.network, Family: r.Family, Port: f.Port, Device: r.BindDev, Source: r.BindAddr, DataAddr: r.DataAddr, VMkernel: true, Firewall: f.Firewall}
	d.Login = func() (*bus.Login, error) { return l.login(e) }
	return d
}

// sensible refuses values that say nothing, which an unset variable of a script gives.
func (c *testCmd) sensible(e *env, r plan.Request) error {
	switch {
	case c.EndPoint == "" && slices.Contains(e.Args, ""):
		return fault.Usagef("leave it out to measure this machine, or say `local`", "the end point is empty")
	case r.Acceptance && c.has("time"):
		return fault.Usagef("--acceptance measures 60 s x 5 in both directions; for other times: --repeat 5 -t SECONDS", "-t does not go with --acceptance")
	}
	return nil
}

func withCPUs(r plan.Request, local, peer int) plan.Request {
	r.LocalCPUs, r.PeerCPUs = max(local, 1), max(peer, 1)
	return r
}

// measure runs a plan and prints what came of it; what was measured before an
// error is printed too.
func (e *env) measure(ctx context.Context, p plan.Plan, ends remote.Pair, link stat.Link, f *trafficFlags, k *keeper) error {
	out, err := f.wanted()
	if err != nil {
		return err
	}
	watch := newWatch(e, p, ends, time.Duration(p.Steps[0].Specs[0].Interval), f.silent)
	runner := control.Runner{Version: e.Version, Ends: ends.All(), Link: link, Watch: watch, Gating: library.QuickGates(f.Force), Below: ends.Below}
	k.into(&runner)
	doc, err := runner.Run(ctx, p)
	watch.Clear()
	doc.Arguments = e.Arguments()
	library.KeepCosts(doc)
	return e.outcome(doc, k.forms(out), err)
}

// outcome prints and keeps what was measured, also before an error, and makes of
// it how the command ends.
func (e *env) outcome(doc *measure.Document, f forms, err error) error {
	if len(e.archive.Labels) > 0 { // a document that was read has its own
		doc.Labels = e.archive.Labels
	}
	perr := e.print(doc, f)
	e.store(doc, f.JSON)
	if perr != nil && err == nil {
		return perr
	}
	switch v := doc.Verdict; {
	case err != nil && !f.JSON:
		e.ErrorLines(err)
		return console.Printed(err)
	case err != nil:
		return console.Printed(err)
	case v != nil && !v.Pass:
		return console.VerdictError(v)
	}
	return nil
}

// forms are those in which a document is asked for.
type forms struct {
	formFlags          // a file may be -, which is stdout, where the command takes that
	raw       bool     // the page has the whole document inside
	packets   []string // files that were written already
	kept      string   // the file that the document is kept in; empty: none
	unkept    error    // of packets that could not be written
}

// print writes the document in the forms asked for. A file that cannot be
// written does not take the figures along: its error is said, and stands in
// the one document that is printed.
func (e *env) print(doc *measure.Document, f forms) error {
	var err, unwritten error
	doc.Error = console.UnsecretError(doc.Error)
	unwritten = e.writeForms(doc, f)
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
	width, colour := console.Terminal(e.Out)
	options := report.TextOptions{Width: width, Colour: colour}
	show := report.Text
	if !library.Measured(doc) && len(doc.Findings) == 0 && doc.Command != "check" && !library.Tuned(doc) && report.Answer(doc) == "" {
		show = report.GateFailures
	}
	if terr := show(e.Out, doc, options); terr != nil {
		return errors.Join(err, terr)
	}
	for _, x := range f.files(doc) {
		if x.file != "" && unwritten == nil {
			fmt.Fprintf(e.Out, "report: %s\n", x.file)
		}
	}
	if len(f.packets) > 0 {
		fmt.Fprintf(e.Out, "packets: %s\n", strings.Join(f.packets, " "))
	}
	if f.kept != "" {
		fmt.Fprintf(e.Out, "kept: %s\n", f.kept)
	}
	return err
}
