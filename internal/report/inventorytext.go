package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"thru/internal/unit"
)

// textGuests bounds the guests that are listed on a terminal; a program, or a
// file, gets all.
const textGuests = 200

// sheetColumn is where the values of a sheet stand at most.
const sheetColumn = 27

// inventoryText prints a document of `thru inventory`: hosts, guests, networks,
// and what stands out; of one guest alone all that is known of it.
func (p *printer) inventoryText(v *view) {
	p.answer(v)
	for i := range v.Estates {
		e := &v.Estates[i]
		if len(v.Estates) > 1 {
			p.Wrap("", 0, "", e.Answer)
		}
		guests := e.all()
		switch {
		case len(guests.Rows) == 1 && len(e.GuestSheets) == 1:
			p.sheet(e.GuestSheets[0])
			p.section(e.Hosts)
		case len(e.HostSheets) == 1:
			p.sheet(e.HostSheets[0])
			p.section(guests)
		default:
			p.section(e.Hosts)
			p.section(guests)
		}
		p.section(e.Networks)
		p.marks(e)
	}
	p.lists(v)
}

// all is one table of the guests of all groups, as a terminal lists them.
func (e *estate) all() grid {
	g := grid{Caption: "Virtual machines", Columns: guestColumns()}
	for _, group := range e.Groups {
		g.Rows = append(g.Rows, group.Rows...)
		g.More = group.More
	}
	return g.WithoutEmpty()
}

// section prints a table below its name. Columns for which there is no room are
// left out, the last ones first, and named.
func (p *printer) section(g grid) {
	if len(g.Rows) == 0 {
		return
	}
	if n := len(g.Rows) - textGuests; n > 0 && !p.Whole {
		g.Rows, g.More = g.Rows[:textGuests], fmt.Sprintf("and %d more: --vm PATTERN chooses, --csv FILE, --json and --html FILE have all", n)
	}
	p.Fitting(g)
}

// sheet prints all that is known of one host or guest.
func (p *printer) sheet(s sheet) {
	title := s.Name
	if s.About != "" {
		title += ", " + s.About
	}
	fmt.Fprintf(p, "\n%s\n", p.Paint(bold, title))
	column := 0
	for _, r := range s.Rows {
		column = min(max(column, utf8.RuneCountInString(r.Name)+2), sheetColumn)
	}
	for _, r := range s.Rows {
		p.Wrap("", column, "  "+r.Name, r.Value)
	}
}

// marks prints what stands out.
func (p *printer) marks(e *estate) {
	if len(e.Marks)+len(e.Gaps) > 0 {
		p.WriteByte('\n')
	}
	if len(e.Marks) > 0 {
		fmt.Fprintln(p, p.Paint(bold, "Stands out"))
	}
	for _, m := range e.Marks {
		p.Wrap(yellow, 3, "  -", m.Line())
	}
	if len(e.Marks) > 0 && len(e.Gaps) > 0 {
		p.WriteByte('\n')
	}
	for i, g := range e.Gaps {
		if i == fleetLines {
			p.Wrap("", 12, "not checked:", fmt.Sprintf("%s, see the JSON document", unit.Plural(len(e.Gaps)-i, "more reason")))
			break
		}
		p.Wrap("", 12, "not checked:", g.text(gapFacts))
	}
}

// inventoryMethod says where an inventory comes from, and what it leaves open.
func inventoryMethod() []string {
	return []string{
		"What stands here is what the hypervisor's own interfaces say of guests, hosts and networks; it was only read, and nothing was changed or measured.",
		"What stands out is judged by settings alone: it may cost traffic, and only a test shows whether it does. What could not be read is named as not checked, with the reason.",
	}
}

// estates prints inventories in Markdown: those that were asked for, or those of
// what lies below the end points of a test.
func (m *markup) estates(all []estate, below bool) {
	for _, e := range all {
		if e.Below != below {
			continue
		}
		title := "Inventory"
		if e.Below {
			title = "Below the end points"
		}
		m.Head(2, title+spaced(bracket(e.Source)))
		m.para(e.Answer)
		var lines []string
		for _, x := range e.Marks {
			lines = append(lines, x.Line())
		}
		m.list(lines)
		for _, g := range []grid{e.Hosts, e.all(), e.Networks, e.Stores} {
			m.Table(g)
		}
		for _, s := range slices.Concat(e.HostSheets, e.GuestSheets) {
			m.Head(3, s.Name)
			m.pairs("", s.Rows)
		}
		if e.Unsheeted > 0 {
			m.para(e.Unshown())
		}
		var rows [][]string
		for _, g := range e.Gaps {
			rows = append(rows, []string{strings.Join(g.Facts, ", "), g.Why})
		}
		m.table("Not checked", []string{"fact", "why"}, nil, rows)
	}
}

// Unshown says how to see the guests that have no sheet.
func (e estate) Unshown() string {
	return fmt.Sprintf("%d more VMs have no sheet here: thru inventory with --vm PATTERN shows those that it chooses; the JSON document has all.", e.Unsheeted)
}
