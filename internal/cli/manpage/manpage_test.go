package manpage

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

type grammar struct {
	Run struct {
		Streams int      `short:"P" placeholder:"N" group:"How much" help:"A back\\slash - and 'quotes'."`
		Quiet   bool     `hidden:""`
		Plan    []string `arg:"" help:".starts with a dot"`
	} `cmd:"" help:"Run it."`
	Sub struct {
		One struct{} `cmd:"" help:"The first."`
		Two struct{} `cmd:"" help:"The second."`
	} `cmd:"" help:"Two commands."`
}

func TestPages(t *testing.T) {
	k, err := kong.New(&grammar{}, kong.Name("thru"))
	if err != nil {
		t.Fatal(err)
	}
	m := Manual{Version: "1.0-x", Date: "2026-11-28", Described: "first\n\nsecond " + strings.Repeat("word ", 40), Sections: []Section{{"FILES", "some"}}}
	pages := map[string]string{}
	for _, p := range m.Pages(k.Model) {
		pages[p.Name] = string(p.Text)
		for line := range strings.Lines(string(p.Text)) {
			if len(line) > most+2 {
				t.Errorf("%s: a long line: %s", p.Name, line)
			}
		}
	}
	for page, parts := range map[string][]string{
		"thru.1":         {`.TH THRU 1 "2026-11-28" "thru 1.0\-x"`, "first\n.PP\nsecond word", "\\fBthru sub one\\fR\nThe first.", ".SH FILES\nsome\n", ".SH SEE ALSO\nthru(1)"},
		"thru-run.1":     {`thru\-run \- Run it`, ".B thru run <plan> ... [flags]\n", "\\&.starts with a dot", ".SS How much", `\fB\-P\fR, \fB\-\-streams\fR=\fIN\fR`, `A back\eslash \- and \(aqquotes\(aq.`},
		"thru-sub-one.1": {".TH THRU\\-SUB\\-ONE 1 "},
		"thru-sub-two.1": nil,
	} {
		text, there := pages[page]
		if !there {
			t.Errorf("there is no %s", page)
		}
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q:\n%s", page, part, text)
			}
		}
	}
	if len(pages) != 4 || strings.Contains(pages["thru-run.1"], "quiet") {
		t.Errorf("%d pages, or a hidden flag in %s", len(pages), pages["thru-run.1"])
	}
}
