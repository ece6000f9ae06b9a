// Package manpage writes the manual of a command line as roff: a page for the program and one for each command.
package manpage

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Manual is what the pages say beside the command line itself.
type Manual struct {
	Version   string
	Date      string // "2026-11-28"; the same for equal builds
	Described string // the program
	Sections  []Section
}

// Section is a section of every page.
type Section struct{ Title, Text string }

// Page is a page of the manual.
type Page struct {
	Name string // "thru-test.1"
	Text []byte
}

// Pages returns a page for the program and one for each of its commands.
func (m Manual) Pages(model *kong.Application) []Page {
	all := append([]*kong.Node{model.Node}, model.Leaves(true)...)
	var pages []Page
	for _, n := range all {
		pages = append(pages, Page{nameOf(n) + ".1", m.page(n, all)})
	}
	return pages
}

// nameOf returns the name of a command's page: thru-plan-new.
func nameOf(n *kong.Node) string { return strings.ReplaceAll(spelled(n), " ", "-") }

// spelled returns a command as it is typed: thru plan new.
func spelled(n *kong.Node) string { return strings.TrimSpace("thru " + n.Path()) }

// page writes the page of a command.
func (m Manual) page(n *kong.Node, all []*kong.Node) []byte {
	var w writer
	w.line(`.TH %s 1 "%s" "thru %s"`, strings.ToUpper(escape(nameOf(n))), m.Date, escape(m.Version))
	w.line(".SH NAME")
	w.line(`%s \- %s`, escape(nameOf(n)), escape(strings.TrimSuffix(n.Help, ".")))
	w.line(".SH SYNOPSIS")
	w.synopsis(n)
	w.line(".SH DESCRIPTION")
	if n.Parent == nil {
		w.text(m.Described)
		w.line(".SH COMMANDS")
		for _, c := range all[1:] {
			w.item(`\fB`+escape(spelled(c))+`\fR`, c.Help)
		}
	} else {
		w.text(n.Help)
	}
	for i, p := range n.Positional {
		if i == 0 {
			w.line(".SH ARGUMENTS")
		}
		w.item(`\fI`+escape(p.Name)+`\fR`, p.Help)
	}
	w.options(n)
	for _, s := range m.Sections {
		w.line(".SH %s", s.Title)
		w.text(s.Text)
	}
	w.line(".SH SEE ALSO")
	w.related(n, all)
	return []byte(w.String())
}

// writer writes roff.
type writer struct{ strings.Builder }

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// most is the length of a line of the source, which mandoc checks.
const most = 78

// text writes paragraphs: roff joins the lines.
func (w *writer) text(text string) {
	for i, para := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			w.line(".PP")
		}
		length := 0
		for _, word := range strings.Fields(para) {
			word = escape(word)
			if length > 0 && length+1+len(word) > most {
				io.WriteString(w, "\n")
				length = 0
			}
			if length > 0 {
				io.WriteString(w, " ")
				length++
			} else if word[0] == '.' || word[0] == '\'' { // it would be a request
				word = `\&` + word
			}
			io.WriteString(w, word)
			length += len(word)
		}
		w.line("")
	}
}

// item writes a term and its description.
func (w *writer) item(term, text string) {
	w.line(".TP\n%s", term)
	w.text(text)
}

// synopsis writes how a command is called.
func (w *writer) synopsis(n *kong.Node) {
	w.line(".B %s", escape(spelled(n)))
	switch {
	case n.Parent == nil:
		w.line(`\fICOMMAND\fR [\fIflags\fR] [\fIarguments\fR]`)
		return
	case len(n.Flags) > 0 && !n.Passthrough:
		w.line(`[\fIflags\fR]`)
	}
	for _, p := range n.Positional {
		form := `\fI%s\fR`
		if p.IsSlice() {
			form += " ..."
		}
		if !p.Required {
			form = "[" + form + "]"
		}
		w.line(form, escape(p.Name))
	}
}

// options writes the flags in their groups.
func (w *writer) options(n *kong.Node) {
	group, first := "", true
	for _, all := range n.AllFlags(true) {
		for _, f := range all {
			if first {
				w.line(".SH OPTIONS")
				first = false
			}
			if f.Group != nil && f.Group.Title != group {
				group = f.Group.Title
				w.line(".SS %s", escape(group))
			}
			w.item(flag(f), f.Help)
		}
	}
}

// flag returns the spellings of a flag.
func flag(f *kong.Flag) string {
	names := `\fB` + escape("--"+f.Name) + `\fR`
	if f.Short != 0 {
		names = `\fB` + escape("-"+string(f.Short)) + `\fR, ` + names
	}
	if f.IsBool() {
		return names
	}
	return names + `=\fI` + escape(f.FormatPlaceHolder()) + `\fR`
}

// related writes the pages of the other commands.
func (w *writer) related(n *kong.Node, all []*kong.Node) {
	var others []*kong.Node
	for _, x := range all {
		if x != n && (n.Parent == nil || x.Parent == nil || x.Parent == n.Parent && n.Parent.Parent != nil) {
			others = append(others, x)
		}
	}
	for i, x := range others {
		end := ","
		if i+1 == len(others) {
			end = ""
		}
		w.line(".BR %s (1)%s", escape(nameOf(x)), end)
	}
}

// escape escapes what roff would read as its own.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`).Replace(text)
}
