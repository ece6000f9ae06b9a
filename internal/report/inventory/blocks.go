// Package inventory prints what hypervisors tell of their machines: tables, what stands out, a sheet of each host
// and guest, the lines of an acceptance record, and CSV. Of a test it is what lies below the end points.
package inventory

import (
	"fmt"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// textGuests bounds the guests that are listed on a terminal of some width; a
// program, or a file, gets all.
const textGuests = 200

// Blocks are the inventories that were asked for, or what lies below the end points of a test.
func Blocks(d *measure.Document) (out []doc.Block) {
	all := newEstates(d)
	for i := range all {
		out = append(out, all[i].section(len(all) > 1))
	}
	return out
}

// section is one inventory. Of one guest, or one host, a terminal has all that is known.
func (e *view) section(several bool) doc.Block {
	title := "Inventory"
	if e.Below {
		title = "Below the end points"
	}
	answer, guests := doc.Block(doc.Para{Text: e.Answer}), e.all()
	if !e.Below && !several { // the answer of all
		answer = doc.Only{For: doc.Markdown, Body: []doc.Block{answer}}
	}
	hosts, machines := []doc.Block{e.Hosts}, []doc.Block{guests}
	switch {
	case len(guests.Rows) == 1 && len(e.GuestFactSheets) == 1:
		hosts, machines = []doc.Block{e.GuestFactSheets[0].pairs()}, []doc.Block{e.Hosts}
	case len(e.HostFactSheets) == 1:
		hosts = []doc.Block{e.HostFactSheets[0].pairs()}
	}
	return doc.Titled(title+doc.Prefixed(" ", doc.Bracket(e.Source)), answer, e.standOut(),
		doc.Only{For: doc.Terminal, Body: append(hosts, append(machines, e.Networks, e.open())...)},
		doc.Only{For: doc.Pages, Body: []doc.Block{e.Hosts, e.machines(), e.Networks, e.Stores, factSheets("The sheet of each host", e.HostFactSheets),
			factSheets("The sheet of each VM", e.GuestFactSheets, doc.Para{Text: e.unshown()}), doc.Titled("Not checked", doc.GapTable(e.Gaps))}})
}

// standOut is what the settings speak against.
func (e *view) standOut() doc.Notice {
	n := doc.Notice{Title: "Stands out", Tone: doc.ToneWarn}
	for _, m := range e.Observations {
		n.Lines = append(n.Lines, m.Line())
	}
	return n
}

// open is what is not known, in few lines.
func (e *view) open() doc.Notice {
	n := doc.Notice{Name: doc.NotChecked}
	for i, g := range e.Gaps {
		if i == doc.FewLines {
			n.Lines = append(n.Lines, fmt.Sprintf("%s, see the JSON document", unit.Plural(len(e.Gaps)-i, "more reason")))
			break
		}
		n.Lines = append(n.Lines, g.Text(doc.GapFacts))
	}
	return n
}

// machines are the guests, by their hosts where they are many.
func (e *view) machines() doc.Block {
	f := doc.Filter{}
	if e.filtered() {
		f.Choices = []doc.Choice{{Class: "only-on", Text: "only those that are on"}, {Class: "only-odd", Text: "only those that stand out"}}
	}
	for _, g := range e.Groups {
		if g.Name == "" {
			f.Body = append(f.Body, g.Table)
		} else {
			f.Body = append(f.Body, doc.Details{Title: g.Name, Note: g.Count(), Body: []doc.Block{g.Table}})
		}
	}
	return doc.Titled("Virtual machines", f)
}

// all is one table of the guests of all groups, as a terminal lists them.
func (e *view) all() doc.Table {
	t := doc.Table{Caption: "Virtual machines", Columns: guestColumns(), Fit: true, Most: textGuests, Rest: "--vm PATTERN chooses, --csv FILE, --json and --html FILE have all"}
	for _, group := range e.Groups {
		t.Rows = append(t.Rows, group.Rows...)
		t.More = group.More
	}
	return t.WithoutEmpty()
}

// factSheets are folded, each by itself.
func factSheets(title string, all []factSheet, more ...doc.Block) doc.Block {
	d := doc.Details{Title: title}
	for _, s := range all {
		p := s.pairs()
		p.Name = ""
		d.Body = append(d.Body, doc.Details{Title: s.Name, Note: s.About, Brief: true, Body: []doc.Block{p}})
	}
	d.Body = append(d.Body, more...)
	return d
}

// pairs are all that is known of one host or guest.
func (s factSheet) pairs() doc.Pairs { return doc.Pairs{Name: doc.Join(s.Name, s.About), Rows: s.Rows} }

// Method says where an inventory comes from, and what it leaves open.
func Method() []string {
	return []string{
		"What stands here is what the hypervisor's own interfaces say of guests, hosts and networks; it was only read, and nothing was changed or measured.",
		"What stands out is judged by settings alone: it may cost traffic, and only a test shows whether it does. What could not be read is named as not checked, with the reason.",
	}
}

// unshown says how to see the guests that have no sheet; "" where all have one.
func (e view) unshown() string {
	if e.Unsheeted == 0 {
		return ""
	}
	return fmt.Sprintf("%d more VMs have no sheet here: thru inventory with --vm PATTERN shows those that it chooses; the JSON document has all.", e.Unsheeted)
}
