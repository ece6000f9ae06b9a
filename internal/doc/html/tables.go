package html

import (
	"cmp"
	"strings"

	"thru/internal/doc"
)

// Table prints a table of figures, of cells with words, or of facts side by side.
func (p *printer) Table(b doc.Table) {
	t := b.For(doc.HTML)
	name, kind := "Figures", []string{"grid", cmp.Or(when(t.Figures, "figures"), "cards"), when(len(t.Classes) > 0, "vms")}
	if t.Sheet {
		name, kind = "Facts", []string{"facts", "inventory"}
	} else {
		p.put("\n")
	}
	p.put(`<div class="scroll" role="region" aria-label="%s" tabindex="0"><table%s`, cmp.Or(t.Caption, name), class(kind...))
	if t.Sheet {
		p.put(` style="--columns:%d"`, len(t.Columns)-1)
	}
	p.put(">\n")
	p.with("<caption>%s</caption>\n", t.Caption)
	p.head(t)
	p.put("<tbody>")
	for n, row := range t.Rows {
		p.put("<tr%s>", class(t.RowClass(n)))
		if t.Sheet {
			p.sheetRow(t, row)
		} else {
			p.gridRow(t, n, row)
		}
		p.put("</tr>\n")
	}
	p.put("</tbody>\n</table>")
	p.with("<p>%s</p>", t.More)
	p.put("</div>\n")
}

// head adds the titles of the columns.
func (p *printer) head(t doc.Table) {
	p.put("<thead>")
	if groups := t.Groups(); groups != nil && !t.Sheet {
		p.put(`<tr class="groups">`)
		for _, g := range groups {
			p.put(`<th scope="colgroup" colspan="%d">%s</th>`, g.Span, g.Name)
		}
		p.put("</tr>\n")
	}
	p.put("<tr>")
	for _, c := range t.Columns {
		p.put(`<th scope="col"%s>%s</th>`, class(when(c.Right && !t.Sheet, "n")), c.Name)
	}
	p.put("</tr></thead>\n")
}

// sheetRow adds a row of facts, in which equal values are one cell.
func (p *printer) sheetRow(t doc.Table, row []string) {
	p.put(`<th scope="row">%s</th>`, row[0])
	if same := t.Same(row); same != "" {
		p.put(`<td colspan="%d"%s>%s</td>`, len(t.Columns)-1, unknown(same), doc.Fixed(same))
		return
	}
	for i, v := range row[1:] {
		p.put(`<td data-of="%s"%s>%s</td>`, t.Columns[i+1].Name, unknown(v), doc.Fixed(v))
	}
}

// gridRow adds a row of figures or of cells with words.
func (p *printer) gridRow(t doc.Table, n int, row []string) {
	if head := t.Columns[0]; head.Right {
		p.put(`<th scope="row" class="n" data-of="%s">%s</th>`, head.Name, row[0])
	} else {
		p.put(`<th scope="row">%s</th>`, row[0])
	}
	for i, v := range row {
		switch {
		case i == 0:
		case t.Figures:
			p.put("<td>%s</td>", v)
		default:
			p.cell(t, n, i, v)
		}
	}
}

// cell adds a cell of words, of commands to copy, or of a figure with its bar.
func (p *printer) cell(t doc.Table, n, i int, value string) {
	p.put("<td%s", class(t.ClassOf(i, value)))
	if len(t.Classes) == 0 {
		p.put(` data-of="%s"`, strings.Join(doc.NonEmpty(t.Columns[i].Group, t.Columns[i].Name), " "))
	}
	p.put(">")
	for j, line := range strings.Split(value, "\n") {
		if typed := doc.Commands(line); typed != "" {
			p.code(typed)
			continue
		}
		p.put("%s%s", doc.Markup(when(j > 0, "<br>")), doc.Fixed(line))
	}
	if m := t.Meter(i, n); m != nil {
		p.put(`<span class="meter" aria-hidden="true"><i style="width:%.1f%%"></i>`, m.Percent())
		if m.Mark > 0 {
			p.put(`<b style="left:%.1f%%"></b>`, m.MarkPercent())
		}
		p.put("</span>")
	}
	p.put("</td>")
}

// Matrix prints figures of pairs, coloured by value.
func (p *printer) Matrix(b doc.Matrix) {
	const many = 8 // columns, above which their titles stand upright
	p.put("<p class=\"notes\">%s; %s</p>\n", b.Unit, b.Legend)
	p.put(`<div class="scroll" role="region" aria-label="Matrix of the pairs" tabindex="0"><table%s>`, class("matrix", when(len(b.Cols) > many, "many")))
	p.put("\n<thead><tr><td></td>")
	for _, c := range b.Cols {
		p.put(`<th scope="col"><span>%s</span></th>`, c)
	}
	p.put("</tr></thead>\n<tbody>")
	for i, cells := range b.Cells {
		p.put(`<tr><th scope="row">%s</th>`, b.Rows[i])
		for _, c := range cells {
			p.put("<td%s>%s</td>", class(c.Class()), c.Text)
		}
		p.put("</tr>\n")
	}
	p.put("</tbody>\n</table></div>\n")
}
