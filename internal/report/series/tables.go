package series

import (
	"fmt"
	"math"
	"strconv"

	"thru/internal/doc"
	"thru/internal/doc/draw"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

const maxStreamRows = 16

const maxSecondRows = 120

// StreamTable returns the streams of the run shown, as the sender measured them, or of datagrams the
// receiver. Requests have no rate in bit/s, and so no table.
func StreamTable(c *measure.Cell) doc.Table {
	e, receiver := result.ShownFlow(c)
	if e == nil || len(e.Streams) == 0 || result.IsUDP(c) && receiver != nil { // of datagrams the receiver knows more
		e = receiver
	}
	if e == nil || e.MeasuredNs <= 0 || result.Asks(c) {
		return doc.Table{}
	}
	t := doc.Table{Figures: true, Caption: "Streams of " + result.ShownName(c) + ", as the " + result.EndName(e) + " saw them",
		Columns: doc.FigureColumns("stream", "rate", "retransmits", "RTT", "cwnd", "MSS", "pinned CPU", "blocked")}
	print := streamRow
	if result.IsUDP(c) {
		t.Columns = doc.FigureColumns("stream", "rate", "datagrams", "lost", "reordered", "jitter", "pinned CPU", "blocked")
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
		retrans = doc.OrDash(doc.Known("%s", s.Delta(measure.Retransmits).Signed(), unit.Count))
		rtt = doc.OrDash(doc.Known("%s", s.TCP.RTT, unit.Duration))
	}
	if s.MSS > 0 {
		mss = strconv.Itoa(s.MSS)
	}
	return append([]string{strconv.Itoa(s.Index), streamRate(s, measuredNs), retrans, rtt, cwnd, mss}, threadColumns(s, measuredNs)...)
}

// datagramRow returns a stream of datagrams in the measured time.
func datagramRow(s measure.Stream, measuredNs int64) []string {
	packets, lost, late, jitter := "-", "-", "-", "-"
	if d := s.Datagrams; d != nil {
		packets, lost, late = unit.Count(d.Packets), unit.Count(d.Lost), unit.Count(d.Reordered)
		jitter = doc.OrDash(doc.Known("%s", d.JitterNs, doc.ShortTime))
	}
	return append([]string{strconv.Itoa(s.Index), streamRate(s, measuredNs), packets, lost, late, jitter}, threadColumns(s, measuredNs)...)
}

func streamRate(s measure.Stream, measuredNs int64) string {
	return unit.Rate(float64(s.Bytes) * 8 * result.Second / float64(measuredNs))
}

// threadColumns returns the CPU of a stream's thread, and how long it was blocked.
func threadColumns(s measure.Stream, measuredNs int64) []string {
	share := func(ns int64) string { return unit.Percent(100 * float64(ns) / float64(measuredNs)) }
	return []string{doc.OrDash(doc.Number(s.CPU)), doc.OrDash(doc.Known("%s", s.BlockedNs, share))}
}

func uint32Text(n *uint32) string {
	return doc.OrDash(doc.Known("%s", n, func(n uint32) string { return unit.Count(int64(n)) }))
}

// SecondTable returns the time line in figures: the same as the chart.
func SecondTable(c *measure.Cell) doc.Table {
	k := newTimeline(c)
	if len(k.received) < 2 {
		return doc.Table{}
	}
	t := doc.Table{Figures: true, Caption: "Time line of " + result.ShownName(k.cell), Columns: doc.FigureColumns("at", "sender", "receiver", "CPU sender", "CPU receiver", "RTT", "retransmits")}
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
			row = append(row, nth(k.RTT, i, rtt), nth(k.retransmits, i, number))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// nth prints the value of a series at an index, "-" if it has none.
func nth(ps []draw.Point, i int, print func(float64) string) string {
	if i >= len(ps) || math.IsNaN(ps[i].Y) || math.IsInf(ps[i].Y, 0) {
		return "-"
	}
	return print(ps[i].Y)
}
