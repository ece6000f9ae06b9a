// Package manpage writes the manual of a command line as roff: a page for the program and one for each command.
package manpage

import (
	"fmt"
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
func (m Manual) Pages(model *kong.Application) (pages []Page) {
	commands := model.Leaves(true)
	for _, n := range append([]*kong.Node{model.Node}, commands...) {
		var w writer
		name := strings.ReplaceAll(n.FullPath(), " ", "-")
		w.line(`.TH %s 1 "%s" "thru %s"`, strings.ToUpper(escape(name)), m.Date, escape(m.Version))
		w.line(".SH NAME\n%s \\- %s", escape(name), escape(strings.TrimSuffix(n.Help, ".")))
		w.line(".SH SYNOPSIS\n.B %s %s", escape(model.Name), escape(n.Summary()))
		w.line(".SH DESCRIPTION")
		if n == model.Node {
			w.text(m.Described)
			w.line(".SH COMMANDS")
			for _, c := range commands {
				w.item(`\fB`+escape(c.FullPath())+`\fR`, c.Help)
			}
		} else {
			w.text(n.Help)
		}
		w.flags(n)
		for _, s := range append(m.Sections, Section{"SEE ALSO", "thru(1), thru help"}) {
			w.line(".SH %s", s.Title)
			w.text(s.Text)
		}
		pages = append(pages, Page{name + ".1", []byte(w.String())})
	}
	return pages
}

// writer writes roff.
type writer struct{ strings.Builder }

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// flags writes the arguments of a command, and its flags in their groups.
func (w *writer) flags(n *kong.Node) {
	for i, p := range n.Positional {
		if i == 0 {
			w.line(".SH ARGUMENTS")
		}
		w.item(`\fI`+escape(p.Name)+`\fR`, p.Help)
	}
	w.line(".SH OPTIONS")
	group := ""
	for _, all := range n.AllFlags(true) {
		for _, f := range all {
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

// item writes a term and its description.
func (w *writer) item(term, text string) {
	w.line(".TP\n%s", term)
	w.text(text)
}

// most is the length of a line of the source, which mandoc checks.
const most = 78

// text writes paragraphs: roff joins the lines.
func (w *writer) text(text string) {
	for i, para := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			w.line(".PP")
		}
		line := ""
		for _, word := range strings.Fields(escape(para)) {
			if line != "" && len(line)+1+len(word) > most {
				w.line("%s", line)
				line = ""
			}
			if line == "" && word[0] == '.' { // it would be a request
				word = `\&` + word
			}
			line = strings.TrimSpace(line + " " + word)
		}
		w.line("%s", line)
	}
}

// escape escapes what roff would read as its own.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`).Replace(text)
}
