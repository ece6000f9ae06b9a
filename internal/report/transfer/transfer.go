// Package transfer words file transfers and disks: their layers, and which of them limits the rate.
package transfer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/report/series"
	"thru/internal/unit"
)

// Limits of what is shown of a transfer.
const (
	maxLayers   = 20
	maxRatios   = 20
	maxPrograms = 3 // of the server, by name
)

// View is a file transfer, ready to print.
type View struct {
	Fall      draw.Fall // its layers as the rungs of a waterfall
	Runs      []measure.TransferRun
	Binds     string
	Why       string
	Rows      []doc.Row // facts of the transfer
	Published doc.Table
}

// Moved reports whether a transfer has a figure.
func Moved(d *measure.Document) bool {
	return result.IsTransfer(d) && slices.ContainsFunc(d.Transfer.Runs, func(r measure.TransferRun) bool { return r.Bps != nil })
}

// MovedLines returns the rate of each run: "1.02 Gb/s files -> local, protocol over disk".
func MovedLines(d *measure.Document) (all []string) {
	from, to := d.Transfer.Ends()
	for _, r := range d.Transfer.Runs {
		if r.Bps != nil {
			all = append(all, doc.Join(unit.Rate(r.Bps.Value)+" "+doc.Clean(from+" -> "+to), doc.Clean(r.Layer)))
		}
	}
	slices.Reverse(all) // the whole first
	return all
}

// New returns the view of a transfer; nil if there is none.
func New(d *measure.Document) *View {
	if !result.IsTransfer(d) {
		return nil
	}
	t := d.Transfer
	m := &View{Binds: doc.Clean(t.Binds), Why: doc.Clean(t.Why), Runs: t.Runs, Rows: transferRows(t)}
	m.Fall = fallOf(t)
	m.Published = doc.Table{Caption: "Published figures of such transfers, from other machines: no target",
		Columns: []doc.Column{{Name: "id"}, {Name: "of", Least: 20}, {Name: "carried", Right: true}}}
	for _, r := range t.Ratios[:min(len(t.Ratios), maxRatios)] {
		m.Published.Rows = append(m.Published.Rows, []string{doc.Clean(r.ID), doc.Clean(r.Name), unit.Rate(r.Bps)})
	}
	return m
}

// fallOf draws layers as rungs: each against the last measured one before it.
func fallOf(t *measure.Transfer) draw.Fall {
	var w draw.Fall
	layers := t.Layers[:min(len(t.Layers), maxLayers)]
	for _, l := range layers {
		if l.Bps != nil {
			w.Most = max(w.Most, *l.Bps)
		}
	}
	for _, l := range layers {
		b := draw.Rung{Name: doc.Clean(l.Name), Path: doc.Clean(l.Where), Value: "not checked", With: doc.Clean(l.How), Binds: l.Name == t.Binds}
		if l.Bps != nil {
			b.Value, b.Carried = unit.Rate(*l.Bps), w.Share(*l.Bps)
		} else {
			b.With, b.Absent = doc.Reason(l.Missing), true
		}
		w.Rungs = append(w.Rungs, b)
	}
	return w
}

// Blocks returns the layers with the limiting one, the facts of the transfer, and published figures.
func Blocks(m *View) []doc.Block {
	if m == nil {
		return nil
	}
	layers := []doc.Block{doc.Charts{Charts: m.Timeline()}, m.Layers(), doc.OnTerminal(doc.List{Lines: m.hows()}), doc.Pairs{Name: "The transfer", Rows: m.Rows}}
	return []doc.Block{doc.Section{Title: "Layers", Body: append(layers, m.Published)}}
}

// hows explains how each layer was measured.
func (m *View) hows() (all []string) {
	for _, r := range m.Fall.Rungs {
		if r.With != "" {
			all = append(all, r.Name+": "+r.With)
		}
	}
	return all
}

// Layers returns the layers as a table.
func (m *View) Layers() doc.Table {
	bars := make([]doc.Bar, 0, len(m.Fall.Rungs))
	t := doc.Table{Caption: "What each layer carries. The slowest layer limits the transfer", Tone: bindsTone}
	for _, r := range m.Fall.Rungs {
		mark := ""
		if m.Binds == "" {
			mark = "-"
		}
		if r.Binds {
			mark = "limit"
		}
		bars = append(bars, doc.Bar{Share: r.Carried})
		t.Rows = append(t.Rows, []string{r.Name, "-", r.Value, mark, doc.OrDash(r.With)})
	}
	t.Columns = []doc.Column{{Name: "layer", Least: 14}, {Bars: bars}, {Name: "carries", Right: true}, {}, {Name: "how", Wide: true}}
	return t.WithoutEmpty()
}

func bindsTone(cell string) doc.Tone {
	if cell == "limit" {
		return doc.ToneWarn
	}
	return doc.ToneNone
}

// Timeline draws the seconds of each run, if there are several.
func (m *View) Timeline() []doc.Chart {
	most, long := 0.0, 0
	for _, r := range m.Runs {
		for _, bps := range r.Seconds {
			most = max(most, bps)
		}
		long = max(long, len(r.Seconds))
	}
	if long < 2 {
		return nil
	}
	in := doc.ScaleFor(most)
	p := draw.Panel{Title: "goodput, " + in.Name, Height: 160, Max: most / in.Div}
	d := draw.Drawing{ID: "seconds", Title: "Goodput of each second", X: draw.XAxis{High: float64(long), Title: "time, s"}}
	d.X.Ticks = draw.NiceTicks(float64(long), 8)
	d.X.High = d.X.Ticks[len(d.X.Ticks)-1].At
	var legends []doc.Legend
	var words []string
	for i, r := range m.Runs[:min(len(m.Runs), draw.Styles)] {
		l := draw.Line{Style: i, Markers: 12}
		for s, bps := range r.Seconds {
			l.Points = append(l.Points, draw.Point{X: float64(s) + 0.5, Y: bps / in.Div})
		}
		l.Points = series.Thin(l.Points)
		p.Lines, legends = append(p.Lines, l), append(legends, doc.Legend{Key: draw.Key(l), Name: doc.Clean(r.Layer)})
		words = append(words, doc.Clean(r.Layer)+": "+runRate(&r))
	}
	d.Panels, d.Desc = []draw.Panel{p}, strings.Join(words, "; ")
	return []doc.Chart{draw.Chart(d, "Goodput of each second, of all clients.", legends)}
}

// runRate returns the goodput of a run.
func runRate(r *measure.TransferRun) string {
	if r.Bps == nil {
		return "no figure"
	}
	return unit.Rate(r.Bps.Value)
}

// Answers returns "94.1 Mb/s by sftp, download: the network carries no more".
func Answers(d *measure.Document) []string {
	t := d.Transfer
	var last *measure.TransferRun
	for i := range t.Runs {
		if t.Runs[i].Bps != nil {
			last = &t.Runs[i]
		}
	}
	if last == nil {
		return nil
	}
	s := fmt.Sprintf("%s by %s, %s of %s", unit.Rate(last.Bps.Value), doc.Clean(t.Protocol), doc.Clean(t.Direction), unit.Size(last.Bytes))
	if t.Asked.Clients > 1 {
		s += " by " + unit.Plural(t.Asked.Clients, "client")
	}
	if last.Error != nil {
		s += " (partial: ended early)"
	}
	if t.Why != "" {
		s += ": " + doc.Clean(t.Why)
	}
	return []string{s}
}

// Limit returns the finding that the answer contains; nil if it has none.
func Limit(d *measure.Document) *measure.Finding {
	if d.Transfer.Why == "" || len(d.Findings) == 0 {
		return nil
	}
	return &d.Findings[0]
}

// transferRows returns the facts of a transfer.
func transferRows(t *measure.Transfer) []doc.Row {
	var rows doc.Rows
	add := rows.Add
	add("from", doc.Clean(t.URL))
	if t.Direction == measure.Upload {
		rows[len(rows)-1].Name = "to"
	}
	add("server", doc.Join(doc.Clean(t.Server), doc.Clean(t.Identity)))
	add("client", doc.Clean(t.Client))
	add("agreed", strings.Join(doc.CleanAll(t.Agreed), "; "))
	add("requested", askedText(t.Asked))
	for i := range t.Runs {
		r := &t.Runs[i]
		for _, x := range runRows(r) {
			if len(t.Runs) > 1 {
				x.Name += ", " + strings.TrimPrefix(doc.Clean(r.Layer), "protocol over ")
			}
			rows = append(rows, x)
		}
	}
	return append(rows, smallRows(t)...)
}

func askedText(a measure.Amount) string {
	s := doc.Join(unit.Size(a.Bytes), doc.Clean(a.From)+" -> "+doc.Clean(a.To))
	if a.Clients > 1 {
		s = doc.Join(s, unit.Plural(a.Clients, "client"))
	}
	if a.BlockBytes > 0 {
		s = doc.Join(s, "blocks of "+unit.Size(a.BlockBytes))
	}
	if a.BufferBytes > 0 {
		s = doc.Join(s, "socket buffers of "+unit.Size(a.BufferBytes))
	}
	if a.SizeWhy != "" {
		s = doc.Join(s, "the size is "+doc.Clean(a.SizeWhy)+" (change it with --size)")
	}
	return s
}

// runRows returns the facts of one run.
func runRows(r *measure.TransferRun) (rows []doc.Row) {
	if r.Bps != nil {
		value := unit.Rate(r.Bps.Value)
		if r.Bps.High > r.Bps.Low {
			value += ", each second " + unit.RateRange(r.Bps.Low, r.Bps.High)
		}
		rows = append(rows, doc.Row{Name: "goodput", Value: doc.Join(value, unit.Size(r.Bytes)+" in "+unit.Duration(r.ElapsedNs), "first byte after "+unit.Duration(r.SetupNs))})
	}
	if len(r.Each) > 0 {
		rows = append(rows, doc.Row{Name: "each client", Value: unit.RateRange(slices.Min(r.Each), slices.Max(r.Each))})
	}
	for _, x := range []doc.Row{
		{Name: "CPU, client", Value: transferCPU(r.HereCPU, cmp.Or(doc.Clean(r.HereProgram), "this process"))}, {Name: "CPU, server", Value: transferCPU(r.ThereCPU, programsText(r.Programs))},
		{Name: "TCP, client", Value: socketText(r.Sockets)}, {Name: "TCP, server", Value: socketText(r.There)},
	} {
		if x.Value != "" {
			rows = append(rows, x)
		}
	}
	switch {
	case r.Checked != nil && *r.Checked:
		rows = append(rows, doc.Row{Name: "compared", Value: doc.Join("the received data equals the sent data", sumText(r))})
	case r.Checked != nil:
		rows = append(rows, doc.Row{Name: "compared", Value: "the received data DIFFERS from the sent data", Brief: true})
	case sumText(r) != "":
		rows = append(rows, doc.Row{Name: "checksum", Value: sumText(r)})
	}
	if r.Error != nil {
		rows = append(rows, doc.Row{Name: "error", Value: doc.Reason(r.Error.Message), Brief: true})
	}
	return rows
}

// transferCPU returns the CPU load of one end, and of its processes named who.
func transferCPU(c *measure.CPUFigure, who string) string {
	if c == nil {
		return ""
	}
	s := unit.Percent(c.Pct) + " of the machine"
	if c.OtherCores != nil {
		own := *c
		own.Cores = max(0, c.Cores-*c.OtherCores)
		if others := result.OthersText(&own); others != "" {
			s = "host " + unit.Percent(c.Pct) + " busy, " + others
		}
	}
	s += fmt.Sprintf(", core %d %s", c.MaxCore, unit.Percent(c.MaxCorePct))
	if c.WorkerCores != nil {
		s += fmt.Sprintf(", %s %.2f cores", who, *c.WorkerCores)
	}
	return s
}

// programsText names the processes of the server, each name once: "sshd (3 processes)".
func programsText(names []string) string {
	var all []string
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			continue
		}
		same := unit.CountFunc(names, func(x string) bool { return x == n })
		text := doc.Clean(n)
		if same > 1 {
			text += fmt.Sprintf(" (%d processes)", same)
		}
		if all = append(all, text); len(all) == maxPrograms {
			break
		}
	}
	return strings.Join(all, ", ")
}

// sumText returns the checksums of a run.
func sumText(r *measure.TransferRun) string {
	return doc.Join(doc.Prefixed("CRC-32C ", doc.Clean(r.CRC32C)), doc.Prefixed("SHA-256 ", doc.Clean(r.SHA256)))
}

// socketText returns the TCP figures of the connection that carried most.
func socketText(sockets []measure.Stream) string {
	if len(sockets) == 0 || sockets[0].TCP == nil {
		return ""
	}
	s, parts := &sockets[0], []string{}
	if n := len(sockets); n > 1 {
		parts = append(parts, unit.Plural(n, "connection"))
	}
	if ns := s.TCP.MinRTT; ns != nil && *ns > 0 {
		parts = append(parts, "min RTT "+unit.Duration(*ns))
	}
	if ns := s.TCP.RTT; ns != nil {
		parts = append(parts, "RTT "+unit.Duration(*ns))
	}
	if n := s.Delta(measure.Retransmits).Signed(); n != nil {
		parts = append(parts, unit.Count(*n)+" retransmits")
	}
	if n := s.TCP.RecvSpace; n != nil && s.TCP.BytesReceived != nil && (s.TCP.BytesAcked == nil || *s.TCP.BytesReceived > *s.TCP.BytesAcked) {
		parts = append(parts, "receive window "+unit.Size(int64(*n)))
	} else if n, mss := s.TCP.Cwnd, s.TCP.SendMSS; n != nil && mss != nil {
		parts = append(parts, "congestion window "+unit.Size(int64(*n)*int64(*mss)))
	}
	if s.Window.Asked > 0 {
		parts = append(parts, "buffer "+unit.Size(s.Window.Usable)+" of "+unit.Size(s.Window.Asked)+" requested")
	}
	if s.Congestion != "" {
		parts = append(parts, doc.Clean(s.Congestion))
	}
	return strings.Join(parts, ", ")
}

// smallRows compares many small files with the large one.
func smallRows(t *measure.Transfer) []doc.Row {
	s := t.Small
	if s == nil || s.Bps == nil || s.Files == 0 {
		return nil
	}
	each := s.ElapsedNs / int64(s.Files)
	text := fmt.Sprintf("%s of %s: %s, %s each", unit.Plural(s.Files, "file"), unit.Size(s.Bytes/int64(s.Files)), unit.Rate(s.Bps.Value), unit.Duration(each))
	for _, r := range t.Runs {
		if r.Bps != nil && r.Layer == measure.LayerMemory && r.Bps.Value > 0 {
			text += fmt.Sprintf(" (%s of the rate of one large file)", unit.Percent(100*s.Bps.Value/r.Bps.Value))
		}
	}
	return []doc.Row{{Name: "small files", Value: text, Brief: true}}
}
