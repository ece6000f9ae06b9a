package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/iperfdoc"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/node"
	"thru/internal/plan/option"
	"thru/internal/stat"
	"thru/internal/store"
	"thru/internal/unit"
)

type reportCmd struct {
	Results  []string `arg:"" optional:"" name:"result" help:"Stored results: an id of thru history or its first characters, last, last~1, a run, a span such as today; or files: of thru (--json, a page --with-raw), of iperf3 (-J, --json-stream); - is stdin."`
	JSON     bool     `group:"Form" name:"json" xor:"form" help:"Print the thru result."`
	IPerf3   bool     `group:"Form" short:"J" name:"iperf3-json" xor:"form" help:"Print iperf3's JSON."`
	HTML     string   `group:"Form" name:"html" type:"newfile" placeholder:"FILE" help:"Write one page to hand over, signed by this host."`
	WithRaw  bool     `group:"Form" name:"with-raw" help:"With --html: embed the whole result, so that thru report FILE can read it."`
	Markdown string   `group:"Form" name:"markdown" type:"outfile" placeholder:"FILE" help:"Write it as Markdown, signed; - is stdout."`
	Summary  bool     `group:"Form" name:"summary" help:"With --markdown: only the answer, at most 40 lines, for a ticket."`
	CSV      string   `group:"Form" name:"csv" type:"outfile" placeholder:"FILE" help:"Write all samples as CSV; - is stdout."`
	JUnit    string   `group:"Form" name:"junit" type:"outfile" placeholder:"FILE" help:"Write what passed and what failed as JUnit XML; - is stdout."`
	Samples  bool     `group:"Form" name:"samples" help:"With --json: also each second of every stream, core and counter."`
	Watch    string   `group:"Form" name:"watch" placeholder:"WHEN" help:"Print what thru watch found out in a time, such as 2026-11 or last-month: of all pairs, or of the END POINTs that are named instead of results."`
	Verify   bool     `group:"Signature" name:"verify" help:"Check who signed these pages or Markdown files, and whether they were changed since (exit code 3)."`
	Signer   string   `group:"Signature" name:"signer" placeholder:"KEY" help:"With --verify: require this signing key."`
	MyKey    bool     `group:"Signature" name:"my-key" help:"Print this host's signing key."`
	wholeFlag
	storeFile
	asked
}

// takes implements asks.
func (*reportCmd) takes() (string, map[string]option.Flag) {
	return "link-rate", map[string]option.Flag{"link-rate": {Group: "Form", Help: "Nominal rate of the link, for ceiling and verdict, if the file has none or another."}}
}

// Run prints stored results, or checks signatures.
func (c *reportCmd) Run(ctx context.Context, e *env) error {
	if err := c.sensible(); err != nil {
		return err
	}
	switch {
	case c.MyKey:
		return c.printKey(e)
	case c.Verify:
		return c.verify(ctx, e)
	case c.Watch != "":
		return c.period(ctx, e)
	}
	r, err := c.request(0)
	if err != nil {
		return err
	}
	if _, err := c.forms().wanted(); err != nil {
		return err
	}
	all, err := c.find(ctx, e, stated(r.Link))
	if err != nil {
		return err
	}
	if len(all) > 1 && (c.JSON || c.filesAsked()) {
		return fault.Usagef("name them one at a time: `thru report` without --json, --html, --markdown, --csv and --junit prints them all", "these outputs take one result, and there are %d", len(all))
	}
	names := len(all) > 1 && !c.IPerf3
	failed, err := e.printEach(all, names, c.has("link_rate"), func(d *measure.Document) error { return c.print(e, d) },
		func(d *measure.Document) bool {
			return !library.Measured(d) && !library.Tuned(d) && !library.WorthKeeping(d)
		})
	if failed > 0 {
		err = console.Printed(fault.Failf("", "%d of the results hold no figures", failed))
	}
	return err
}

// sensible refuses flags that do not go together.
func (c *reportCmd) sensible() error {
	stdouts := unit.Trues(c.JSON, c.IPerf3, c.Markdown == "-", c.CSV == "-", c.JUnit == "-")
	switch {
	case c.MyKey && (len(c.Results) > 0 || c.Verify):
		return fault.Usagef("run one, then the other", "--my-key prints only the key of this host")
	case c.Watch != "" && (c.IPerf3 || c.WithRaw || c.CSV != "" || c.JUnit != "" || c.Summary || c.Samples || c.Verify):
		return fault.Usagef("it has --json, --html and --markdown", "this output has no form for --watch")
	case c.MyKey, c.Watch != "":
	case len(c.Results) == 0:
		return fault.Usagef("thru report last; thru history lists all", "no result is named")
	case c.Signer != "" && !c.Verify:
		return fault.Usagef("thru report --verify FILE --signer KEY", "--signer needs --verify")
	case c.Verify && c.filesAsked():
		return fault.Usagef("run one, then the other", "--verify writes no file")
	case c.WithRaw && c.HTML == "":
		return fault.Usagef("name the page: --html FILE", "--with-raw needs --html")
	case stdouts > 1:
		return fault.Usagef("name a file for one of them", "two outputs go to stdout")
	}
	return nil
}

// forms returns the forms that the flags ask for.
func (c *reportCmd) forms() forms {
	return forms{formFlags: formFlags{JSON: c.JSON, Samples: c.Samples, HTML: c.HTML, Markdown: c.Markdown, Summary: c.Summary, CSV: c.CSV, JUnit: c.JUnit}, raw: c.WithRaw}
}

// filesAsked reports whether a flag names an output file.
func (c *reportCmd) filesAsked() bool { return c.HTML+c.Markdown+c.CSV+c.JUnit != "" }

// printKey prints the key of this host, for recipients of its reports.
func (c *reportCmd) printKey(e *env) error {
	s, err := library.Signer()
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e.Out, map[string]any{"key": s.Key, "host": node.Hostname(), "error": nil})
	}
	_, err = fmt.Fprintln(e.Out, s.Key)
	return err
}

// find looks up the results.
func (c *reportCmd) find(ctx context.Context, e *env, link stat.Link) (all []library.Result, err error) {
	e.archive = archiveOf(keepFlags{storeFile: c.storeFile})
	shelf := e.reader().Shelf(link)
	defer func() { err = errors.Join(err, shelf.Close()) }()
	for _, word := range c.Results {
		found, err := shelf.Find(ctx, word, store.Filter{})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// print prints one result in the form asked for. A result without figures is printed as its error.
func (c *reportCmd) print(e *env, doc *measure.Document) error {
	if c.IPerf3 {
		return iperfdoc.Write(e.Out, doc)
	}
	f := c.forms()
	if c.JSON || !c.filesAsked() {
		return e.printKept(doc, f)
	}
	files := f.files(doc)
	if err := e.writeForms(files); err != nil { // the user asked for the files
		return err
	}
	if slices.ContainsFunc(files, func(x formFile) bool { return x.file == "-" }) {
		return nil // the form has stdout for itself
	}
	e.listFiles(files)
	return nil
}

// printKept prints a stored result with the error that it ended with.
func (e *env) printKept(doc *measure.Document, f forms) error {
	f.read = true
	if err := e.print(doc, f); err != nil {
		return err
	}
	if doc.Error != nil && !f.JSON {
		e.ErrorLines(fault.Failf(doc.Error.Hint, "%s", doc.Error.Message))
	}
	return nil
}

// verify prints what is known about the signatures of files.
func (c *reportCmd) verify(ctx context.Context, e *env) error {
	if c.Signer != "" && !bus.ValidSigner(c.Signer) {
		return fault.Usagef("give one word that begins with A, as thru report --my-key prints it", "--signer %q is not a key", fault.Short(c.Signer))
	}
	own := ""
	if dir, err := bus.DefaultState(); err == nil && bus.HasState(dir) { // a user who only verifies needs no key
		if s, err := library.Signer(); err == nil {
			own = s.Key
		}
	}
	var worst error
	for _, path := range c.Results {
		text, err := fault.Until(ctx, path, func() ([]byte, error) { return e.reader().WholeFile(path) })
		if err != nil {
			return err
		}
		v := library.Verify(path, text, c.Signer, own)
		var verr error
		switch {
		case !v.Signed:
			verr = fault.Failf("thru report RESULT --html FILE signs what it writes", "%s: %s", fault.Named(path), v.Reason)
		case !v.Valid:
			verr = fault.New(fault.Verdict, "get the file again from its author", "%s: %s", fault.Named(path), v.Reason)
		}
		if fault.Code(verr) > fault.Code(worst) {
			worst = verr
		}
		if err := e.printVerified(v, verr, c.JSON); err != nil {
			return err
		}
	}
	if worst != nil {
		return console.Printed(worst)
	}
	return nil
}

// printVerified prints the result for one file.
func (e *env) printVerified(v library.Verified, verr error, asJSON bool) error {
	if asJSON {
		if verr != nil {
			v.Error = control.Describe(verr)
		}
		return printJSON(e.Out, v)
	}
	if verr != nil {
		e.ErrorLines(verr)
		return nil
	}
	by := "with a key that this host does not know; compare it with the output of `thru report --my-key` on " + v.Host
	switch v.Signer {
	case library.SignerOwn:
		by = "which is this host"
	case library.SignerNamed:
		by = "with the key that you named"
	}
	_, err := fmt.Fprintf(e.Out, "%s: signed by %s at %s, %s\nkey: %s\nIt was not changed since.\n", fault.Printable(v.File), v.Host, v.SignedAt.Local().Format("2006-01-02 15:04:05 MST"), by, v.Key)
	return err
}
