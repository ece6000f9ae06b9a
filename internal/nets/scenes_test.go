package nets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"thru/internal/cause"
	"thru/internal/cause/advise"
	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/compare"
	"thru/internal/measure"
	"thru/internal/report"
)

// sceneCase is a case from the packages' own tests that reaches code which no stored result reaches; a line
// of testdata/scenes.jsonl.gz. It has a document to judge; or, with Seen, one whose findings ask for advice;
// or documents of a ladder; or the input of gates; or results to compare.
type sceneCase struct {
	Name     string            `json:"name"`
	Document json.RawMessage   `json:"document,omitempty"`
	Seen     *seen             `json:"seen,omitempty"`
	Ladder   []json.RawMessage `json:"ladder,omitempty"`
	Subject  *subject          `json:"subject,omitempty"`
	Compare  *compared         `json:"compare,omitempty"`
	Print    string            `json:"print,omitempty"` // prints reports of the document: "as it is", or "judged"
}

// seen mirrors advise.Seen.
type seen struct {
	Kept   []string
	Undone map[string]int
	Never  map[string]bool
	Only   []string
}

// subject mirrors scene.Subject, with its own fields so that those can be renamed.
type subject struct {
	Ends    []end
	Path    *measure.Path
	NoPath  string
	LinkBps int64
	LinkL2  bool
	Streams int
	UDP     bool
}

// end mirrors scene.End.
type end struct {
	Name   string
	Facts  *measure.Facts
	Route  *measure.Route
	Shared bool
	Below  []measure.HostPlacement
	Costs  []struct {
		Sends        bool
		Protocol, IO string
		Bps, Cores   float64
		BusiestPct   float64
		Streams      int
		CPUModel     string
		At           time.Time
	}
}

// compared holds results and compare.Options.
type compared struct {
	Before, After []json.RawMessage
	Options       struct {
		BarPct                  float64
		Anyway, Guards          bool
		Before, After           string
		BeforeNames, AfterNames []string
	}
}

// concluded returns the document and the text of a comparison.
func (c *compared) concluded(t *testing.T) string {
	t.Helper()
	o := c.Options
	x := compare.Of(documents(t, c.Before), documents(t, c.After), compare.Options{BarPct: o.BarPct, Anyway: o.Anyway, Guards: o.Guards, Before: o.Before, After: o.After, BeforeNames: o.BeforeNames, AfterNames: o.AfterNames})
	var b strings.Builder
	if err := errors.Join(report.ComparedJSON(&b, x), report.ComparedText(&b, x, report.TextOptions{Width: 80}), report.ComparedMarkdown(&b, x, report.MarkdownOptions{})); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// gates returns the gates of a subject.
func (s *subject) gates() []measure.Gate {
	x := scene.Subject{Path: s.Path, NoPath: s.NoPath, LinkBps: s.LinkBps, LinkL2: s.LinkL2, Streams: s.Streams, UDP: s.UDP}
	for _, e := range s.Ends {
		y := scene.End{Name: e.Name, Facts: e.Facts, Route: e.Route, Shared: e.Shared, Placements: e.Below}
		for _, c := range e.Costs {
			y.Costs = append(y.Costs, scene.Cost{Sends: c.Sends, Protocol: c.Protocol, IO: c.IO, Bps: c.Bps, Cores: c.Cores, BusiestPct: c.BusiestPct, Streams: c.Streams, CPUModel: c.CPUModel, At: c.At})
		}
		x.Ends = append(x.Ends, y)
	}
	return gate.Sort(append(cause.Judge(x), cause.JudgeHypervisors(x)...))
}

// concluded returns the conclusions from a scene.
func (s *sceneCase) concluded(t *testing.T) string {
	t.Helper()
	var all []string
	switch {
	case s.Compare != nil:
		all = append(all, s.Compare.concluded(t))
	case s.Subject != nil:
		all = append(all, section(t, "gates", s.Subject.gates()))
	case len(s.Ladder) > 0:
		docs := documents(t, s.Ladder)
		cause.Rungs(docs)
		for _, d := range docs {
			all = append(all, section(t, "findings", d.Findings))
		}
	case s.Seen != nil:
		d := documents(t, []json.RawMessage{s.Document})[0]
		advice := cause.Propose(d, advise.Seen(*s.Seen))
		all = append(all, section(t, "advice", advice))
		for _, e := range d.EndPoints {
			do, undo := advise.Script(advice, e.Name)
			all = append(all, "script "+e.Name, do, "undo", undo)
		}
	default:
		all = append(all, string(concluded(t, documents(t, []json.RawMessage{s.Document})[0])))
	}
	return strings.Join(all, "\n")
}

// documents decodes the documents of a scene.
func documents(t *testing.T, texts []json.RawMessage) (all []*measure.Document) {
	t.Helper()
	for _, text := range texts {
		d, err := measure.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// TestScenes compares the conclusions from every scene with one golden file.
func TestScenes(t *testing.T) {
	var got bytes.Buffer
	known := map[string]bool{}
	for _, s := range scenes(t) {
		if s.Print != "as it is" {
			fmt.Fprintf(&got, "\n%s\n", s.Name)
			short(&got, s.concluded(t), known)
		}
	}
	golden(t, "scenes.golden", got.Bytes())
}

// TestPrinted compares the reports of scenes that reach printing code which no golden document of package
// report reaches.
func TestPrinted(t *testing.T) {
	type form struct {
		print func(io.Writer, *measure.Document) error
		got   bytes.Buffer
		known map[string]bool
	}
	forms := map[string]*form{
		"txt":  {print: func(w io.Writer, d *measure.Document) error { return report.Text(w, d, report.TextOptions{Width: 80}) }},
		"html": {print: func(w io.Writer, d *measure.Document) error { return report.HTML(w, d, report.HTMLOptions{}) }},
		"md":   {print: func(w io.Writer, d *measure.Document) error { return report.Markdown(w, d, report.MarkdownOptions{}) }},
		"short.md": {print: func(w io.Writer, d *measure.Document) error {
			return report.Markdown(w, d, report.MarkdownOptions{Summary: true})
		}},
		"xml": {print: report.JUnit},
	}
	for _, s := range scenes(t) {
		if s.Print == "" {
			continue
		}
		d := documents(t, []json.RawMessage{s.Document})[0]
		if s.Print == "judged" {
			judge(d)
		}
		for kind, f := range forms {
			var b strings.Builder
			if err := f.print(&b, d); err != nil {
				t.Fatalf("%s as %s: %v", s.Name, kind, err)
			}
			if f.known == nil {
				f.known = map[string]bool{}
			}
			fmt.Fprintf(&f.got, "\n%s\n", s.Name)
			text := b.String()
			if kind == "html" {
				text = tag.ReplaceAllString(drawn.ReplaceAllString(text, ""), "")
			}
			short(&f.got, text, f.known)
		}
	}
	for kind, f := range forms {
		golden(t, "printed."+kind+".golden", f.got.Bytes())
	}
}

// The golden files of pages contain only the words: layout and drawings change more often, and the golden pages of
// package report cover them.
var (
	drawn = regexp.MustCompile(`(?s)<(style|script|svg)\b.*?</(style|script|svg)>`)
	tag   = regexp.MustCompile(`(?s)<[^>]*>`)
)

// scenes returns the scenes of testdata, in order.
func scenes(t *testing.T) (all []sceneCase) {
	t.Helper()
	f, err := os.Open("testdata/scenes.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(z); ; {
		var s sceneCase
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
}

// short writes in full the lines that no earlier scene has. For consecutive known lines it writes their ids,
// if any, and a digest.
func short(w io.Writer, text string, known map[string]bool) {
	var ids []string
	n, sum := 0, sha256.New()
	for line := range strings.Lines(text + "\n\n") {
		line = strings.TrimRight(line, ",]\n")
		if known[line] && line != "" {
			if m := idOf.FindStringSubmatch(line); m != nil {
				ids = append(ids, m[1])
			}
			n++
			io.WriteString(sum, line)
			continue
		}
		if known[line] = true; n > 0 {
			fmt.Fprintf(w, "= %d lines %.3x %s\n", n, sum.Sum(nil), strings.Join(ids, " "))
			sum.Reset()
			n, ids = 0, nil
		}
		if line != "" {
			fmt.Fprintln(w, line)
		}
	}
}

// idOf matches the id of a finding, a gate or a proposal in JSON.
var idOf = regexp.MustCompile(`^\{"(?:cause|id)":"([^"]*)"`)
