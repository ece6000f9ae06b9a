package cli

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/compare"
	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/report/compared"
	"thru/internal/stat"
	"thru/internal/store"
	"thru/internal/unit"
)

type compareCmd struct {
	Before string `arg:"" help:"Baseline: an id of thru history, last~1, a span such as last-week or 2026-11-01..2026-11-07, a run, or a file (of thru or iperf3)."`
	After  string `arg:"" help:"New result, in the same form: last, today."`
	filterFlags
	Bar    string `name:"bar" default:"2%" placeholder:"PCT" help:"Smallest change that counts (default 2%)."`
	Anyway bool   `name:"anyway" help:"Compare although settings differ that change what the figures mean."`
	FailOn string `name:"fail-on" enum:"rate,any" default:"rate" placeholder:"rate|any" help:"What ends with exit code 3: only a worse rate (default), or any worse figure: CPU, round trip, loss or latency too."`
	JSON   bool   `group:"Form" name:"json" help:"Print one JSON document (thru help comparison)."`
	HTML   string `group:"Form" name:"html" type:"newfile" placeholder:"FILE" help:"Write one page to hand over, signed by this host."`

	Markdown string `group:"Form" name:"markdown" type:"outfile" placeholder:"FILE" help:"Write it as Markdown, signed; - is stdout."`
}

// Help explains the outcomes.
func (compareCmd) Help() string {
	return `Flows are paired by what they measure. With one result on each side every run is a value,
with a span every result is one. One run on each side shows little: thru test --repeat 5.

  improved, worse  the whole 95% interval of the change is beyond the bar
  equivalent       the whole interval is within the bar
  undecided        neither: measure more runs, or more results
  not compared     settings differ, or a side has no figure

A regression ends with exit code 3. If nothing could be compared, or a flow of the
baseline has failed, it is 1.`
}

// Run compares two results, or two periods of results.
func (c *compareCmd) Run(ctx context.Context, e *env) error {
	bar, err := unit.ParsePercent(c.Bar)
	if err != nil || !(bar > 0) || bar > 50 || math.IsNaN(bar) {
		return fault.Usagef("such as --bar 5%", "--bar %s: not a percentage above 0 and up to 50", fault.Short(c.Bar))
	}
	for _, f := range c.files(nil) {
		if err := writable(f.flag, strings.TrimPrefix(f.file, "-")); err != nil {
			return err
		}
	}
	if c.JSON && c.Markdown == "-" {
		return fault.Usagef("name a file for one of them", "two outputs go to stdout")
	}
	before, after, err := c.find(ctx, e)
	if err != nil {
		return err
	}
	o := compare.Options{BarPct: bar, Anyway: c.Anyway, Guards: c.FailOn == "any", Before: c.Before, After: c.After, BeforeNames: namesOf(before), AfterNames: namesOf(after)}
	x := compare.Of(documentsOf(before), documentsOf(after), o)
	x.Thru, x.Arguments, x.ComparedAt = e.Version, e.Arguments(), new(time.Now().UTC().Truncate(time.Second))
	if err := c.print(e, x); err != nil {
		return err
	}
	return e.comparedError(x)
}

// find looks up both arguments.
func (c *compareCmd) find(ctx context.Context, e *env) (before, after []library.Result, err error) {
	filter, err := c.filter(time.Now())
	if err != nil {
		return nil, nil, err
	}
	e.archive = archiveOf(keepFlags{storeFile: c.storeFile})
	shelf := e.reader().Shelf(stat.Link{})
	defer func() { err = errors.Join(err, shelf.Close()) }()
	if before, err = c.one(ctx, shelf, c.Before, filter); err != nil {
		return nil, nil, err
	}
	after, err = c.one(ctx, shelf, c.After, filter)
	return before, after, err
}

func (c *compareCmd) one(ctx context.Context, shelf *library.Shelf, word string, f store.Filter) ([]library.Result, error) {
	found, err := shelf.Find(ctx, word, f)
	if err == nil && len(found) == 0 {
		err = fault.Usagef("thru history lists the results", "%s: no result", fault.Named(fault.Short(word)))
	}
	return found, err
}

func namesOf(all []library.Result) (names []string) {
	for _, n := range all {
		names = append(names, n.Name)
	}
	return names
}

func documentsOf(all []library.Result) (docs []*measure.Document) {
	for _, n := range all {
		docs = append(docs, n.Doc)
	}
	return docs
}

// print prints the comparison in the forms that the flags ask for.
func (c *compareCmd) print(e *env, x *measure.Compared) error {
	files := c.files(x)
	if err := e.writeForms(files); err != nil {
		return err
	}
	switch {
	case c.JSON:
		return report.ComparedJSON(e.Out, x)
	case c.Markdown == "-":
		return nil
	}
	if err := report.ComparedText(e.Out, x, e.text()); err != nil {
		return err
	}
	e.listFiles(files)
	return nil
}

// files returns the files to write a comparison to; x may be nil before the comparison.
func (c *compareCmd) files(x *measure.Compared) []formFile {
	return pageFiles(c.HTML, c.Markdown, func() doc.Report { return compared.Report(x) })
}

// comparedError returns the error, and so the exit code, of a printed comparison.
func (e *env) comparedError(x *measure.Compared) error {
	failed := unit.CountFunc(x.Cells, func(f measure.ComparedCell) bool { return f.Failed && !f.Baseline })
	if x.Regression {
		return console.Printed(fault.New(fault.Verdict, "", "%s", x.Reason))
	}
	if x.Outcome != measure.NotCompared && failed == 0 {
		return nil
	}
	err := fault.Failf(nothingHint(x), "%s", x.Reason)
	e.ErrorLines(err)
	return console.Printed(err)
}

// nothingHint returns the hint if no cell could be compared.
func nothingHint(x *measure.Compared) string {
	refused := false
	for _, c := range x.Cells {
		refused = refused || c.Before != nil && c.After != nil
	}
	switch {
	case len(x.Cells) > 0 && !refused:
		return ""
	case len(x.Cells) > 0:
		return "measure with the same settings, or compare them --anyway"
	}
	return "compare two results of the same command and hosts: thru history lists them"
}
