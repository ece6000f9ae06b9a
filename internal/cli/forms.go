package cli

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/node"
	"thru/internal/report"
)

// formFlags say in which forms a result is printed and written.
type formFlags struct {
	JSON     bool   `group:"Output" name:"json" help:"Print one JSON document (thru help result)."`
	Samples  bool   `group:"Output" name:"samples" help:"With --json: also each second of every stream, core and counter."`
	HTML     string `group:"Output" name:"html" type:"newfile" placeholder:"FILE" help:"Also write a self-contained report."`
	Markdown string `group:"Output" name:"markdown" type:"newfile" placeholder:"FILE" help:"Also write it as Markdown."`
	Summary  bool   `group:"Output" name:"summary" help:"With --markdown: the answer alone, at most 40 lines, for a ticket."`
	CSV      string `group:"Output" name:"csv" type:"newfile" placeholder:"FILE" help:"Also write all samples as CSV."`
	JUnit    string `group:"Output" name:"junit" type:"newfile" placeholder:"FILE" help:"Also write what passed and what failed as JUnit XML, for a pipeline."`
}

// wholeFlag goes with commands whose default is the answer.
type wholeFlag struct {
	All bool `group:"Output" name:"all" help:"Print all that is known, not the answer alone."`
}

// showAll is the command that prints all of what was measured, or of a result that was kept.
func (e *env) showAll(kept bool) string {
	switch {
	case kept:
		words := []string{"thru"}
		for _, a := range append(e.Arguments(), "--all") {
			words = append(words, doc.Quote(a))
		}
		return strings.Join(words, " ")
	case e.archive.Off:
		return "--all"
	}
	return "thru report last --all"
}

// formFile is a file in which a result is asked for.
type formFile struct {
	flag, file string
	write      func(w io.Writer, s *report.Signature) error
	signed     bool
}

// formNames are the flags of forms.
func formNames() []string {
	return []string{"--json", "--samples", "--html", "--markdown", "--summary", "--csv", "--junit", "--all", "--color"}
}

// files are those that a document, which may still be measured, is written to.
func (f forms) files(doc *measure.Document) []formFile {
	return []formFile{
		{"--html", f.HTML, func(w io.Writer, s *report.Signature) error {
			return report.HTML(w, doc, report.HTMLOptions{Raw: f.raw, Signed: s})
		}, true},
		{"--markdown", f.Markdown, func(w io.Writer, s *report.Signature) error {
			return report.Markdown(w, doc, report.MarkdownOptions{Signed: s, Summary: f.Summary})
		}, true},
		{"--csv", f.CSV, func(w io.Writer, _ *report.Signature) error { return report.CSV(w, doc) }, false},
		{"--junit", f.JUnit, func(w io.Writer, _ *report.Signature) error { return report.JUnit(w, doc) }, false},
	}
}

// wanted are the forms, whose files can be written.
func (f formFlags) wanted() (forms, error) {
	out := forms{formFlags: f}
	switch {
	case f.Samples && !f.JSON:
		return out, fault.Usagef("--csv FILE has all samples, too", "--samples goes with --json")
	case f.Summary && f.Markdown == "":
		return out, fault.Usagef("name the file: --markdown FILE", "--summary goes with --markdown")
	}
	named := map[string]string{}
	for _, x := range out.files(nil) {
		if before := named[x.file]; before != "" && x.file != "" && !isDevice(x.file) {
			return out, fault.Usagef("a file for each of them", "%s and %s name the same file", before, x.flag)
		}
		named[x.file] = x.flag
		if err := writable(x.flag, strings.TrimPrefix(x.file, "-")); err != nil {
			return out, err
		}
	}
	return out, nil
}

// writeForms writes the files that are asked for beside what is printed. A page
// and Markdown are signed.
func (e *env) writeForms(files []formFile) error {
	for _, x := range files {
		if x.file == "" {
			continue
		}
		if err := e.writeForm(x); err != nil {
			return err
		}
	}
	return nil
}

// listFiles names the files that were written.
func (e *env) listFiles(files []formFile) {
	for _, x := range files {
		if x.file != "" {
			fmt.Fprintf(e.Out, "report: %s\n", x.file)
		}
	}
}

// text is how results are printed where this command prints.
func (e *env) text() report.TextOptions {
	width, colour := e.Terminal()
	return report.TextOptions{Width: width, Colour: colour}
}

// writeForm writes one of them. Where this host has no key it is written without
// a signature, and says so.
func (e *env) writeForm(x formFile) error {
	var who *report.Signature
	var key *bus.Signer
	if x.signed {
		var err error
		if key, err = library.Signer(); err != nil {
			e.Warn("the report is not signed", err)
		} else {
			who = &report.Signature{Host: node.Hostname(), Key: key.Key, Verify: "thru report --verify " + plainName(filepath.Base(x.file)) + " --signer KEY"}
		}
	}
	var b bytes.Buffer
	if err := x.write(&b, who); err != nil {
		return fmt.Errorf("cli: writing the report: %w", err)
	}
	text := b.Bytes()
	if who != nil {
		var err error
		if text, err = library.Sealed(text, key, who.Host, time.Now()); err != nil {
			return err
		}
	}
	return e.deliver(x.flag, x.file, text)
}

// plainLetters mean nothing to a shell.
const plainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// plainName is a file's name where a shell takes it as it is.
func plainName(name string) string {
	if name == "-" || strings.Trim(name, plainLetters) != "" {
		return "FILE"
	}
	return name
}

// deliver writes a form to its file, or to stdout.
func (e *env) deliver(flag, file string, text []byte) error {
	if file == "-" {
		_, err := e.Out.Write(text)
		return err
	}
	return replaceFile(flag, file, text)
}
