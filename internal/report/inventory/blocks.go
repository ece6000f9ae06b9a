// Package inventory prints the inventories of hypervisors: tables, anomalies, a fact sheet of each host and
// guest, the lines of an acceptance record, and CSV. For a test it prints the hosts and guests of the end
// points.
package inventory

import (
	"fmt"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// textGuests limits the guests listed on a terminal; output to a program or a file has all.
const textGuests = 200

// Blocks returns the requested inventories, or the placement of a test's end points.
func Blocks(d *measure.Document) (out []doc.Block) {
	all := newEstates(d)
	for i := range all {
		out = append(out, all[i].section(len(all) > 1))
	}
	return out
}

// section returns one inventory. For a single guest or host a terminal shows the whole fact sheet.
func (e *view) section(several bool) doc.Block {
	title := "Inventory"
	if e.Below {
		title = "Hypervisors of the end points"
	}
	answer, guests := doc.Block(doc.Para{Text: e.Answer}), e.all()
	if !e.Below && !several { // the report's answer already has it
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
		doc.Only{For: doc.Pages, Body: []doc.Block{e.Hosts, e.machines(), e.Networks, e.Stores, factSheets("Fact sheet of each host", e.HostFactSheets),
			factSheets("Fact sheet of each VM", e.GuestFactSheets, doc.Para{Text: e.unshown()}), doc.Titled("Not checked", doc.GapTable(e.Gaps))}})
}

// standOut returns the anomalies in the settings.
func (e *view) standOut() doc.Notice {
	n := doc.Notice{Title: "Anomalies", Tone: doc.ToneWarn}
	for _, m := range e.Observations {
		n.Lines = append(n.Lines, m.Line())
	}
	return n
}

// open returns what is not known, in few lines.
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

// machines returns the guests, grouped by host if there are many.
func (e *view) machines() doc.Block {
	f := doc.Filter{}
	if e.filtered() {
		f.Choices = []doc.Choice{{Class: "only-on", Text: "only powered on"}, {Class: "only-odd", Text: "only with anomalies"}}
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

// all returns one table of the guests of all groups, for a terminal.
func (e *view) all() doc.Table {
	t := doc.Table{Caption: "Virtual machines", Columns: guestColumns(), Fit: true, Most: textGuests, Rest: "select with --vm PATTERN; all are in --csv FILE, --json and --html FILE"}
	for _, group := range e.Groups {
		t.Rows = append(t.Rows, group.Rows...)
		t.More = group.More
	}
	return t.WithoutEmpty()
}

// factSheets returns the fact sheets, each folded.
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

// pairs returns all facts of one host or guest.
func (s factSheet) pairs() doc.Pairs { return doc.Pairs{Name: doc.Join(s.Name, s.About), Rows: s.Rows} }

// Method explains the source of an inventory, and its limits.
func Method() []string {
	return []string{
		"The inventory comes from the hypervisor's own interfaces for guests, hosts and networks. thru only read it; it changed and measured nothing.",
		"Anomalies are judged by settings alone: they may reduce the rate, and only a test shows whether they do. Facts that could not be read are listed as not checked, with the reason.",
	}
}

// unshown explains how to see the guests without a fact sheet; "" if all have one.
func (e view) unshown() string {
	if e.Unsheeted == 0 {
		return ""
	}
	return fmt.Sprintf("%d more VMs have no fact sheet here: select VMs with thru inventory --vm PATTERN; the JSON document has all.", e.Unsheeted)
}
