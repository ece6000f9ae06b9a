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

// formFlags choose the forms in which a result is printed and written.
type formFlags struct {
	JSON     bool   `group:"Output" name:"json" help:"Print one JSON document (thru help result)."`
	Samples  bool   `group:"Output" name:"samples" help:"With --json: also each second of every stream, core and counter."`
	HTML     string `group:"Output" name:"html" type:"newfile" placeholder:"FILE" help:"Also write a self-contained report."`
	Markdown string `group:"Output" name:"markdown" type:"newfile" placeholder:"FILE" help:"Also write it as Markdown."`
	Summary  bool   `group:"Output" name:"summary" help:"With --markdown: only the answer, at most 40 lines, for a ticket."`
	CSV      string `group:"Output" name:"csv" type:"newfile" placeholder:"FILE" help:"Also write all samples as CSV."`
	JUnit    string `group:"Output" name:"junit" type:"newfile" placeholder:"FILE" help:"Also write what passed and what failed as JUnit XML, for a pipeline."`
	wholeFlag
}

// wholeFlag prints more than the answer.
type wholeFlag struct {
	All bool `group:"Output" name:"all" help:"Print the whole report, not only the answer."`
}

// showAll returns the command that prints all of the last measurement, or of a stored result.
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

// formFile is a file to write a result to.
type formFile struct {
	flag, file string
	write      func(w io.Writer, s *report.Signature) error
	signed     bool
}

// formNames returns the flags of formFlags.
func formNames() []string {
	return []string{"--json", "--samples", "--html", "--markdown", "--summary", "--csv", "--junit", "--all", "--color"}
}

// files returns the files to write a document to; doc may be nil before the measurement.
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

// pageFiles returns the files to write a separate document to, which is made then.
func pageFiles(html, markdown string, page func() doc.Report) []formFile {
	return []formFile{
		{"--html", html, func(w io.Writer, s *report.Signature) error { return report.PageHTML(w, page(), s) }, true},
		{"--markdown", markdown, func(w io.Writer, s *report.Signature) error { return report.PageMarkdown(w, page(), s) }, true},
	}
}

// wanted returns the forms after it has checked that their files can be written.
func (f formFlags) wanted() (forms, error) {
	out := forms{formFlags: f}
	switch {
	case f.Samples && !f.JSON:
		return out, fault.Usagef("add --json, or write all samples by --csv FILE", "--samples needs --json")
	case f.Summary && f.Markdown == "":
		return out, fault.Usagef("name the file: --markdown FILE", "--summary needs --markdown")
	}
	named := map[string]string{}
	for _, x := range out.files(nil) {
		if before := named[x.file]; before != "" && x.file != "" && !isDevice(x.file) {
			return out, fault.Usagef("name a file for each of them", "%s and %s name the same file", before, x.flag)
		}
		named[x.file] = x.flag
		if err := writable(x.flag, strings.TrimPrefix(x.file, "-")); err != nil {
			return out, err
		}
	}
	return out, nil
}

// writeForms writes the files that the flags name. It signs HTML and Markdown.
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

// listFiles prints the names of the files that were written.
func (e *env) listFiles(files []formFile) {
	for _, x := range files {
		if x.file != "" {
			fmt.Fprintf(e.Out, "report: %s\n", x.file)
		}
	}
}

// text returns the options to print a result on stdout.
func (e *env) text() report.TextOptions {
	width, colour := e.Terminal()
	return report.TextOptions{Width: width, Colour: colour}
}

// writeForm writes one file. Without a key on this host it writes it unsigned and prints a warning.
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

// plainLetters need no quoting in a shell.
const plainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// plainName returns a file name that needs no quoting, or FILE.
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
