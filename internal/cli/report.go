package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"thru/internal/diagnose"
	"thru/internal/fault"
	"thru/internal/iperfdoc"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/stat"
)

type reportCmd struct {
	Files    []string `arg:"" name:"file" help:"Results of thru (--json) or of iperf3 (-J, --json-stream); - is stdin."`
	JSON     bool     `name:"json" xor:"form" help:"Print the thru result."`
	IPerf3   bool     `short:"J" name:"iperf3-json" xor:"form" help:"Print iperf3's JSON."`
	HTML     string   `name:"html" type:"newfile" placeholder:"FILE" help:"Write the report as one page."`
	LinkRate string   `name:"link-rate" placeholder:"RATE" help:"Nominal rate of the link, for ceiling and verdict, where the file knows none or another."`
}

// Run prints results that were kept.
func (c *reportCmd) Run(ctx context.Context, e *env) error {
	link, err := linkRate(c.LinkRate)
	if err != nil {
		return err
	}
	if err := writable("--html", c.HTML); err != nil {
		return err
	}
	sources, err := e.open(ctx, c.Files)
	if err != nil {
		return err
	}
	defer closeSources(sources)
	var all []named
	for _, s := range sources {
		found, err := e.results(ctx, s, link)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if len(all) > 1 && (c.JSON || c.HTML != "") {
		return fault.Usagef("name them one at a time: `thru report` without --json and --html prints them all", "--json and --html take one result, and here are %d", len(all))
	}
	failed := 0
	var below *measure.Verdict
	for i, r := range all {
		if len(all) > 1 && !c.IPerf3 {
			fmt.Fprintf(e.out, "%s%s\n", strings.Repeat("\n", min(i, 1)), r.name)
		}
		if err := c.print(e, r.doc); err != nil {
			return err
		}
		if !measured(r.doc) && !tunedAnyhow(r.doc) {
			failed++
		}
		if v := r.doc.Verdict; c.LinkRate != "" && v != nil && !v.Pass {
			below = v
		}
	}
	if failed > 0 {
		return printed{fault.Failf("", "%d of the results hold no figures", failed)}
	}
	if below != nil {
		return printed{fault.New(fault.Verdict, "", "%s", below.Reason)}
	}
	return nil
}

// named is a result with what to call it among several.
type named struct {
	name string
	doc  *measure.Document
}

// print writes one result in the form asked for. One without figures is its error.
func (c *reportCmd) print(e *env, doc *measure.Document) error {
	if c.IPerf3 {
		return iperfdoc.Write(e.out, doc)
	}
	return e.printKept(doc, forms{json: c.JSON, html: c.HTML})
}

// printKept writes a result that was kept, with the error that it ended by.
func (e *env) printKept(doc *measure.Document, f forms) error {
	if err := e.print(doc, f); err != nil {
		return err
	}
	if doc.Error != nil && !f.json {
		e.errorLines(fault.Failf(doc.Error.Hint, "%s", doc.Error.Message))
	}
	return nil
}

// results reads what a file holds: one result of thru, or one or more of iperf3.
// Findings are those of this version's rules.
func (e *env) results(ctx context.Context, from *source, link stat.Link) ([]named, error) {
	text, err := until(ctx, from.name, func() ([]byte, error) { return e.read(from) })
	if err != nil {
		return nil, err
	}
	if isCapture(text) {
		return nil, fault.Usagef("thru explain "+from.name+" reads it", "%s is a packet capture, no result", from.name)
	}
	if isResult(text) {
		doc, err := report.ReadJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fault.New(fault.Usage, fault.Hint(err), "%s: %w", from.name, err)
		}
		rediagnose(doc, link)
		return []named{{from.name, doc}}, nil
	}
	docs, warnings, err := iperfdoc.Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.name, err)
	}
	for _, w := range warnings {
		e.line("warning: " + from.name + ": " + w)
	}
	var all []named
	for i, doc := range docs {
		doc.Thru = e.version
		summarise(doc, link)
		name := from.name
		if len(docs) > 1 {
			name = fmt.Sprintf("%s, test %d of %d", from.name, i+1, len(docs))
		}
		all = append(all, named{name, doc})
	}
	return all, nil
}

// read takes all of it, up to the most that a result may have.
func (e *env) read(s *source) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(s, iperfdoc.MaxFile+1))
	if err != nil {
		return nil, e.notOpened(s.name, err)
	}
	return text, nil
}

// isResult tells thru's documents from iperf3's.
func isResult(text []byte) bool {
	var head struct {
		Schema *string `json:"schema"`
	}
	return json.Unmarshal(text, &head) == nil && head.Schema != nil
}

// isCapture recognises pcap files, of either byte order and with times in
// microseconds or nanoseconds, and pcapng (draft-ietf-opsawg-pcap, -pcapng).
func isCapture(text []byte) bool {
	for _, magic := range []string{"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1", "\xa1\xb2\xcd\x34", "\x34\xcd\xb2\xa1", "\x0a\x0d\x0d\x0a"} {
		if bytes.HasPrefix(text, []byte(magic)) {
			return true
		}
	}
	return false
}

// rediagnose makes the findings of a kept document anew, and where a link rate
// is stated the figures that hang on it.
func rediagnose(doc *measure.Document, link stat.Link) {
	if link.RateBps > 0 {
		summarise(doc, link)
		return
	}
	together(doc)
	diagnose.Diagnose(doc)
	diagnose.Rungs([]*measure.Document{doc})
}

// together judges what ran at the same time in a document that was kept while
// its plan was running.
func together(doc *measure.Document) {
	if doc.Plan != nil && doc.Groups == nil {
		stat.Groups(doc)
		stat.Compare(doc)
	}
}

// summarise makes figures of the evidence that a document has.
func summarise(doc *measure.Document, link stat.Link) {
	facts := map[string]*measure.Facts{}
	for _, p := range doc.EndPoints {
		facts[p.Name] = p.Facts
	}
	for i := range doc.Cells {
		stat.Summarise(&doc.Cells[i], facts, link)
	}
	before := doc.Verdict
	doc.Verdict = stat.Verdict(doc.Cells)
	if doc.Plan != nil {
		stat.Groups(doc)
		stat.Ladder(doc, func(string) stat.Link { return link })
		stat.Compare(doc)
	}
	if len(doc.Targets) > 0 { // what was demanded then still decides
		doc.Verdict = before
	}
	diagnose.Diagnose(doc)
	diagnose.Rungs([]*measure.Document{doc})
}
