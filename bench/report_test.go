//go:build linux

package bench

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// report collects what is printed and what is written as Markdown.
type report struct {
	settings settings
	site     site
	tools    []tool
	tables   []table
	bars     [][]string
}

// table is a title, rows, and remarks below; the first row names the columns.
type table struct {
	title   string
	rows    [][]string
	remarks []string
}

// head describes the machine and the tools.
func (r *report) head() []string {
	where := "a network namespace of its own"
	if !r.site.own {
		where = "the host's own loopback interface (no namespace could be made: counters include other traffic)"
	}
	lines := []string{
		fmt.Sprintf("%s, %d CPUs, %s", r.site.cpu, r.site.cpus, r.site.kernel),
		fmt.Sprintf("loopback in %s, %s, rounds of %g s runs: %d", where, r.site.congestion, r.settings.seconds, r.settings.repeats),
	}
	for _, t := range r.tools {
		if t.missing != "" {
			lines = append(lines, "missing: "+strings.TrimSpace(t.name)+": "+t.missing)
		}
	}
	var there []string
	for _, t := range r.tools {
		if t.missing == "" && !strings.HasSuffix(t.name, t.version) {
			there = append(there, t.name+" "+t.version)
		} else if t.missing == "" {
			there = append(there, t.name)
		}
	}
	return append(lines, "tools: "+strings.Join(there, ", "))
}

func (r *report) writeHead(w io.Writer) {
	for _, line := range r.head() {
		fmt.Fprintln(w, line)
	}
}

// add prints a comparison, and keeps its tables.
func (r *report) add(w io.Writer, c *result) {
	for _, b := range c.bars {
		o := c.judge(b)
		r.bars = append(r.bars, []string{c.name, o.bar, o.words, o.basis})
	}
	r.print(w, c.table(r.site))
}

// print prints a table, and keeps it.
func (r *report) print(w io.Writer, t table) {
	r.tables = append(r.tables, t)
	fmt.Fprintln(w)
	t.text(w)
}

// table returns the comparison with a line for each tool.
func (c *result) table(at site) table {
	unit, _ := c.shape.unit()
	head := []string{"tool", unit, "range"}
	switch {
	case c.shape.latency():
		head = append(head, "p50 µs", "p99 µs")
	case c.shape.kind != fileMove:
		head = append(head, "CPU s/GB")
	}
	t := table{title: fmt.Sprintf("%s: %s; %s", c.name, c.title, c.shape.place), rows: [][]string{append(head, "thru / tool (95%)")}}
	thru := c.find("thru")
	for i := range c.entries {
		e := &c.entries[i]
		t.rows = append(t.rows, e.row(thru, c.shape))
		t.remarks = append(t.remarks, e.remarks(at, c.shape)...)
	}
	t.remarks = append(t.remarks, c.out...)
	return t
}

func (e *entry) row(thru *entry, s shape) []string {
	_, scale := s.unit()
	xs := slices.DeleteFunc(e.column(figure), math.IsNaN)
	if len(xs) == 0 {
		return []string{e.name, "failed"}
	}
	row := []string{e.name, digits(e.median(figure) / scale), digits(slices.Min(xs)/scale) + "-" + digits(slices.Max(xs)/scale)}
	switch {
	case s.latency():
		var p50 []float64
		for _, r := range e.readings {
			p50 = append(p50, r.p50)
		}
		row = append(row, digits(median(p50)/1e3), digits(e.median(p99)/1e3))
	case s.kind != fileMove:
		row = append(row, digits(e.median(cost)))
	}
	if thru == nil || thru == e {
		return append(row, "")
	}
	ratio, ok := ratioOf(thru.column(figure), e.column(figure))
	if !ok {
		return append(row, "-")
	}
	return append(row, ratio.String())
}

// remarks returns anomalies of a tool's runs.
func (e *entry) remarks(at site, s shape) []string {
	var lines []string
	if e.costHidden != "" && (s.bulk() || s.udp()) {
		lines = append(lines, e.name+": CPU not known: "+e.costHidden)
	}
	for _, r := range e.readings {
		if r.control != "" && r.control != at.congestion && s.bulk() {
			lines = append(lines, fmt.Sprintf("%s: ran with %s, not %s", e.name, r.control, at.congestion))
		}
	}
	return lines
}

// digits formats with three significant digits; "-" if unknown.
func digits(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "-"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func (r *report) barTable() table {
	met := 0
	for _, row := range r.bars {
		if strings.HasPrefix(row[2], "met") {
			met++
		}
	}
	return table{title: fmt.Sprintf("bars: %d of %d met", met, len(r.bars)),
		rows: append([][]string{{"comparison", "at least", "outcome", "ratio (95%)"}}, r.bars...)}
}

func (r *report) writeBars(w io.Writer) {
	fmt.Fprintln(w)
	r.barTable().text(w)
}

// text prints columns with right-aligned numbers.
func (t table) text(w io.Writer) {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	fmt.Fprintln(w, t.title)
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "  %-*s", widths[i], cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
	for _, remark := range t.remarks {
		fmt.Fprintln(w, "  "+remark)
	}
}

// markdown writes the table as GitHub Flavored Markdown.
func (t table) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n### %s\n\n", t.title)
	for i, row := range t.rows {
		full := append(slices.Clone(row), make([]string, len(t.rows[0])-len(row))...)
		fmt.Fprintf(w, "| %s |\n", strings.Join(full, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat(" --- |", len(row)))
		}
	}
	if len(t.remarks) > 0 {
		fmt.Fprintln(w)
	}
	for _, remark := range t.remarks {
		fmt.Fprintln(w, "- "+remark)
	}
}

// Markers around the tables in a document.
const (
	tablesBegin = "<!-- tables: written by bench -markdown -->\n"
	tablesEnd   = "<!-- end of the tables -->\n"
)

// save writes all tables to a file: between the markers, or as the whole file.
func (r *report) save(path string) error {
	var b strings.Builder
	b.WriteString("\n")
	for _, line := range r.head() {
		fmt.Fprintln(&b, "- "+line)
	}
	r.barTable().markdown(&b)
	for _, t := range r.tables {
		t.markdown(&b)
	}
	b.WriteString("\n")
	text := b.String()
	if old, err := os.ReadFile(path); err == nil {
		before, rest, begins := strings.Cut(string(old), tablesBegin)
		_, after, ends := strings.Cut(rest, tablesEnd)
		if begins && ends {
			text = before + tablesBegin + text + tablesEnd + after
		}
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("bench: writing the tables: %w", err)
	}
	return nil
}
