package text

import (
	"strings"

	"thru/internal/doc"
	"thru/internal/unit"
)

var (
	itemMark  = unit.Pattern(`^(?:[-*]|\d+\.) `)
	link      = unit.Pattern(`\[([^\]]+)\]\(([^)]+)\)`)
	tableRule = unit.Pattern(`^\|[ :|-]+\|$`)
)

const (
	codeIndent = 4  // a paragraph indented this far is code
	leastCell  = 12 // minimum width of a text column
)

// Page prints a page of Markdown: headings, paragraphs, lists, tables and code, as used in docs/. refer words
// a link.
func (p *Printer) Page(markdown string, refer func(text, target string) string) {
	pg := page{Printer: p, refer: refer}
	for line := range strings.Lines(markdown) {
		pg.line(strings.TrimRight(line, " \n"))
	}
	pg.flush()
}

// page holds what was read and not printed yet: the lines of one paragraph, list item or table.
type page struct {
	*Printer
	refer  func(text, target string) string
	lines  []string
	margin int // columns before the text of the current item
	mark   string
	table  bool
	fence  bool
}

func (pg *page) line(line string) {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	switch {
	case strings.HasPrefix(text, "```"):
		pg.flush()
		pg.fence = !pg.fence
	case pg.fence:
		pg.WriteString(strings.Repeat(" ", codeIndent) + line + "\n")
	case len(pg.lines) == 0 && text != "" && indent >= pg.margin+codeIndent:
		pg.WriteString(line + "\n")
	case text == "":
		pg.flush()
		pg.blank()
	case strings.HasPrefix(text, "#"):
		pg.flush()
		pg.margin = 0
		pg.Broken(Bold, 0, pg.plain(strings.TrimLeft(text, "# ")))
	case itemMark().MatchString(text):
		pg.flush()
		pg.mark = strings.Repeat(" ", indent) + itemMark().FindString(text)
		pg.margin = len(pg.mark)
		pg.lines = append(pg.lines, text[len(itemMark().FindString(text)):])
	default:
		if len(pg.lines) == 0 {
			pg.margin = min(pg.margin, indent)
			pg.table = strings.HasPrefix(text, "|")
		}
		pg.lines = append(pg.lines, text)
	}
}

// blank prints one blank line, never two.
func (pg *page) blank() {
	if s := pg.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
		pg.WriteByte('\n')
	}
}

// flush prints the collected lines.
func (pg *page) flush() {
	if len(pg.lines) == 0 {
		return
	}
	if pg.table {
		pg.grid()
	} else {
		head := Pad(pg.mark, pg.margin)
		for _, line := range Cell(pg.plain(strings.Join(pg.lines, " ")), pg.Width-pg.margin) {
			pg.WriteString(head + line + "\n")
			head = strings.Repeat(" ", pg.margin)
		}
	}
	pg.lines, pg.mark, pg.table = nil, "", false
}

// grid prints a table; the heading row may be empty.
func (pg *page) grid() {
	var t doc.Table
	for _, line := range pg.lines {
		if tableRule().MatchString(line) {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = pg.plain(strings.TrimSpace(cells[i]))
		}
		if t.Columns == nil {
			for _, name := range cells {
				t.Columns = append(t.Columns, doc.Column{Name: name, Least: leastCell})
			}
			continue
		}
		t.Rows = append(t.Rows, append(cells, make([]string, len(t.Columns))...)[:len(t.Columns)])
	}
	if len(t.Rows) > 0 {
		pg.Grid(t)
	}
}

// plain removes marks for bold, and words links.
func (pg *page) plain(s string) string {
	s = link().ReplaceAllStringFunc(s, func(whole string) string {
		m := link().FindStringSubmatch(whole)
		return pg.refer(m[1], m[2])
	})
	return strings.ReplaceAll(s, "**", "")
}
