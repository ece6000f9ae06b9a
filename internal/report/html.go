package report

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	blocks "thru/internal/doc/html"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// HTMLOptions say what a page has beside the result itself.
type HTMLOptions struct {
	Raw    bool       // the whole document inside, which Embedded reads back; the page may be larger than 1 MB then
	Signed *Signature // who signs the page; nil: nobody
}

// Signature is what a page says of the one who signs it.
type Signature = doc.Signature

// page is a view with what only a page has: charts, and tables of the evidence.
type page struct {
	*view
	Picture *draw.Picture // of the answer
	Charts  []doc.Chart   // over time
	Heat    []doc.Chart   // of cores and queues
	Drawn   []string      // which run is drawn, where there are several
	Unseen  []string      // queues that are not in it, and why
	Latency *latencyPage
	Main    []cellPage
	Details []cellPage
}

// cellPage is a cell with its streams and seconds.
type cellPage struct {
	result.Cell
	Shown   bool // its rows stand further up the page
	Streams doc.Table
	Seconds doc.Table
}

const (
	maxStreamRows = 16
	maxSecondRows = 120
)

// HTML prints a document as one page that needs nothing else: no script, no
// network, and without the raw result under 1 MB; that of an inventory has a row
// for each of its guests, and grows with them.
func HTML(w io.Writer, d *measure.Document, o HTMLOptions) error {
	p := newPage(d)
	r := p.report()
	r.Signed = o.Signed.Clean()
	if o.Raw {
		raw, err := rawOf(d)
		if err != nil {
			return err
		}
		r.Kept = raw
	}
	return blocks.Print(w, r)
}

func newPage(d *measure.Document) page {
	v := newView(d)
	p := page{view: v}
	p.Picture = newPicture(result.LastState(d), v)
	drawn := v.Cells
	if len(v.Ladders) > 0 {
		drawn = nil // of a ladder the cell that is judged
		if c, _ := judged(d); c != nil {
			drawn = []result.Cell{result.NewCell(d, c)}
		}
	}
	if p.Charts = classCharts(d, drawn); p.Charts == nil {
		p.Charts = courseCharts(drawn)
	}
	p.Latency, p.Heat = newLatencyPage(drawn), heatmaps(drawn)
	p.Unseen, p.Drawn = uncounted(drawn), drawnRuns(drawn)
	for i, c := range v.Cells {
		if v.Silent {
			break // what the packets show is all there is
		}
		drawn := slices.ContainsFunc(drawn, func(x result.Cell) bool { return x.Source == c.Source })
		if inLadder(d, c.Source) && !drawn && !c.Tried {
			continue // its ladder has a row of it
		}
		q := cellPage{Cell: c, Streams: streamTable(c.Source)}
		if i < maxCourses || drawn && len(v.Ladders) > 0 {
			q.Seconds = secondTable(newCourse(c.Source))
		}
		if len(v.Ladders) == 0 && c.Main() && len(p.Main) < maxCourses {
			q.Shown = true
			p.Main = append(p.Main, q)
		} else if s := heldText(c.Source); s != "" && (!drawn || len(v.Judged) == 0) {
			q.Rows = append(q.Rows[:len(q.Rows):len(q.Rows)], doc.Row{Name: "held back by", Value: s})
		}
		if !q.Shown || len(q.Streams.Rows)+len(q.Seconds.Rows) > 0 {
			p.Details = append(p.Details, q)
		}
	}
	return p
}

// drawnRuns says which run of each flow is drawn, since the figures are of all.
func drawnRuns(cells []result.Cell) (all []string) {
	n := 0
	for _, c := range cells {
		if !c.Main() || n == maxCourses {
			continue
		}
		n++
		if len(c.Source.Runs) > 1 {
			all = append(all, c.Name+": drawn is "+result.ShownName(c.Source)+"; the figures are of all runs")
		}
	}
	return all
}

// ManyDetails tells whether the cells are too many to be printed one by one.
func (p page) ManyDetails() bool { return len(p.Details) > result.FewCells }

// Slowest tells whether the cells shown one by one are but the slowest pairs of a plan.
func (p page) Slowest() bool {
	return p.Fleet != nil && !p.Fleet.Few && len(p.Ladders) == 0 && len(p.Main) > 1
}

// Unsaid is the advice that does not stand among the things to do at the top.
func (p page) Unsaid() []string {
	said := func(s string) bool {
		return slices.ContainsFunc(p.First.Rows, func(r summaryRow) bool {
			return slices.ContainsFunc(r.Items, func(i summaryItem) bool { return i.Text == s })
		})
	}
	return slices.DeleteFunc(slices.Clone(p.Advice), said)
}

// streamTable is the streams of the run shown, as the sender saw them, or of
// datagrams the receiver. Requests have no rate in bit/s, and so no table.
func streamTable(c *measure.Cell) doc.Table {
	e, receiver := result.ShownFlow(c)
	if e == nil || len(e.Streams) == 0 || result.IsUDP(c) && receiver != nil { // of datagrams the receiver knows more
		e = receiver
	}
	if e == nil || e.MeasuredNs <= 0 || result.Asks(c) {
		return doc.Table{}
	}
	t := doc.Table{Figures: true, Caption: "Streams of " + result.ShownName(c) + ", as the " + result.EndName(e) + " saw them",
		Columns: doc.FigureColumns("stream", "rate", "retransmits", "RTT", "cwnd", "MSS", "bound to CPU", "blocked in calls")}
	print := streamRow
	if result.IsUDP(c) {
		t.Columns = doc.FigureColumns("stream", "rate", "datagrams", "lost", "late", "jitter", "bound to CPU", "blocked in calls")
		print = datagramRow
	}
	for i, s := range e.Streams {
		if i == maxStreamRows {
			t.More = fmt.Sprintf("and %s, see the JSON document", unit.Plural(len(e.Streams)-i, "more stream"))
			break
		}
		t.Rows = append(t.Rows, print(s, e.MeasuredNs))
	}
	return t
}

func streamRow(s measure.Stream, measuredNs int64) []string {
	retrans, rtt, cwnd, mss := "-", "-", "-", "-"
	if s.TCP != nil {
		cwnd = uint32Text(s.TCP.Cwnd)
		if n := s.Delta(measure.Retransmits).Signed(); n != nil {
			retrans = unit.Count(*n)
		}
		if s.TCP.RTT != nil {
			rtt = unit.Duration(*s.TCP.RTT)
		}
	}
	if s.MSS > 0 {
		mss = strconv.Itoa(s.MSS)
	}
	return append([]string{strconv.Itoa(s.Index), streamRate(s, measuredNs), retrans, rtt, cwnd, mss}, threadColumns(s, measuredNs)...)
}

// datagramRow is a stream of datagrams, in the measured time.
func datagramRow(s measure.Stream, measuredNs int64) []string {
	packets, lost, late, jitter := "-", "-", "-", "-"
	if d := s.Datagrams; d != nil {
		packets, lost, late = unit.Count(d.Packets), unit.Count(d.Lost), unit.Count(d.Reordered)
		if d.JitterNs != nil {
			jitter = doc.ShortTime(*d.JitterNs)
		}
	}
	return append([]string{strconv.Itoa(s.Index), streamRate(s, measuredNs), packets, lost, late, jitter}, threadColumns(s, measuredNs)...)
}

func streamRate(s measure.Stream, measuredNs int64) string {
	return unit.Rate(float64(s.Bytes) * 8 * result.Second / float64(measuredNs))
}

// threadColumns are the CPU of a stream's thread, and how long it was blocked.
func threadColumns(s measure.Stream, measuredNs int64) []string {
	cpu, blocked := "-", "-"
	if s.CPU != nil {
		cpu = strconv.Itoa(*s.CPU)
	}
	if s.BlockedNs != nil {
		blocked = unit.Percent(100 * float64(*s.BlockedNs) / float64(measuredNs))
	}
	return []string{cpu, blocked}
}

func uint32Text(n *uint32) string {
	if n == nil {
		return "-"
	}
	return unit.Count(int64(*n))
}

// secondTable is the course in figures: the same as the chart, to read.
func secondTable(k course) doc.Table {
	if len(k.received) < 2 {
		return doc.Table{}
	}
	t := doc.Table{Figures: true, Caption: "Course of " + result.ShownName(k.cell), Columns: doc.FigureColumns("at", "sender", "receiver", "CPU sender", "CPU receiver", "RTT", "retransmits")}
	if result.IsUDP(k.cell) {
		t.Columns = append(t.Columns[:5:5], doc.FigureColumns("", "lost")[1])
	}
	rate := func(v float64) string { return unit.Rate(v) }
	pct := func(v float64) string { return fmt.Sprintf("%.0f%%", v) }
	rtt := func(v float64) string { return unit.Duration(int64(min(v, 1e18))) }
	number := func(v float64) string { return doc.Plain(v) }
	for i, p := range k.received {
		if i == maxSecondRows {
			t.More = "the rest is in the JSON document"
			break
		}
		row := []string{fmt.Sprintf("%.1f s", p.X), nth(k.sent, i, rate), rate(p.Y), nth(k.senderCPU, i, pct), nth(k.receiverCPU, i, pct)}
		if result.IsUDP(k.cell) {
			row = append(row, nth(k.lost, i, number))
		} else {
			row = append(row, nth(k.rtt, i, rtt), nth(k.retransmits, i, number))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// nth prints the value of a series at an index, "-" where it has none.
func nth(ps []draw.Point, i int, print func(float64) string) string {
	if i >= len(ps) || math.IsNaN(ps[i].Y) || math.IsInf(ps[i].Y, 0) {
		return "-"
	}
	return print(ps[i].Y)
}
