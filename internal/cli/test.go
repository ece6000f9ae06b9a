package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
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
	documentFlags
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
	if err := c.settle(&r, c.JSON || c.HTML != ""); err != nil {
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
	if c.asked() {
		return e.measureAsIPerf3(ctx, c.documentFlags, r, p, ends, link, c.Force)
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
	runner := control.Runner{Version: e.Version, Ends: ends.All(), Link: link, Watch: watch, Gating: quickGates(f.Force), Below: ends.Below}
	k.into(&runner)
	doc, err := runner.Run(ctx, p)
	watch.Clear()
	doc.Arguments = e.Arguments()
	keepCosts(doc)
	return e.outcome(doc, k.forms(out), err)
}

// outcome prints and keeps what was measured, also before an error, and makes of
// it how the command ends.
func (e *env) outcome(doc *measure.Document, f forms, err error) error {
	if len(e.archive.labels) > 0 { // a document that was read has its own
		doc.Labels = e.archive.labels
	}
	perr := e.print(doc, f)
	e.store(doc, f.JSON)
	if perr != nil && err == nil {
		return perr
	}
	switch v := doc.Verdict; {
	case err != nil && !f.JSON:
		e.ErrorLines(err)
		return printed{err}
	case err != nil:
		return printed{err}
	case v != nil && !v.Pass:
		return verdictError(v)
	}
	return nil
}

// verdictError ends a command whose figures did not pass: they have been printed.
func verdictError(v *measure.Verdict) error {
	code := fault.Verdict
	if v.Inconclusive {
		code = fault.Inconclusive
	}
	return printed{fault.New(code, "", "%s", v.Reason)}
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
			err = printed{x}
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
	if !measured(doc) && len(doc.Findings) == 0 && doc.Command != "check" && !tunedAnyhow(doc) && report.Answer(doc) == "" {
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

// tunedAnyhow tells of a tuning that has something to say without any figure: of a
// rollback, or of advice.
func tunedAnyhow(doc *measure.Document) bool {
	return doc.Tuning != nil && (doc.Error == nil || len(doc.Tuning.Restored)+len(doc.Tuning.Attempts) > 0)
}

// moved tells of a transfer of which anything is known.
func moved(doc *measure.Document) bool { return doc.Transfer != nil && len(doc.Transfer.Runs) > 0 }

// measured is false where an error came before any figure.
func measured(doc *measure.Document) bool {
	for _, c := range doc.Cells {
		if stat.Measured(&c) {
			return true
		}
	}
	return len(doc.Disks) > 0 || moved(doc) || doc.Command == "inventory" && len(doc.Inventories) > 0
}

// writable finds out before a long measurement whether a file that a flag names
// can be written.
func writable(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return unwritten(flag, fmt.Errorf("%s is a folder", path))
	}
	if isDevice(path) {
		return nil
	}
	f, err := besideFile(path, 0o644)
	if at := (*os.PathError)(nil); errors.As(err, &at) {
		err = fmt.Errorf("%s: %w", path, at.Err)
	}
	if err != nil {
		return unwritten(flag, err)
	}
	f.Close()
	return os.Remove(f.Name())
}

// besideFile makes a file of a name of its own where another one is to be: it is
// nobody's, and no link is followed.
func besideFile(path string, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(fmt.Sprintf("%s.%s%s", path, rand.Text()[:8], part), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
}

// unwritten is the error of a file that a flag names.
func unwritten(flag string, err error) error {
	return fault.Failf(flag+" wants a file in a folder that can be written to", "cli: writing the file of %s: %w", flag, err)
}

// part is the ending of a file that is not whole yet.
const part = ".part"

// replaceFile writes a file beside its place and renames it, so that no half
// one is ever found there.
func replaceFile(flag, path string, content []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the file is replaced, not the link to it
	}
	if isDevice(path) {
		if err := writeInto(path, content); err != nil {
			return unwritten(flag, err)
		}
		return nil
	}
	f, err := besideFile(path, 0o644)
	if err != nil {
		return unwritten(flag, err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return unwritten(flag, err)
	}
	return nil
}

// isDevice tells of a device, a pipe or the like: it is written to, and nobody's to replace.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// writeInto writes to what is there and stays.
func writeInto(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
