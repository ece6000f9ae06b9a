package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/inventory"
	"thru/internal/report/result"
)

// csvColumns returns the columns of CSV; each name has its unit. The first ones identify the row and are
// filled in every row.
func csvColumns() []string {
	return []string{"cell", "rung", "from", "to", "direction", "protocol", "traffic", "streams", "window", "length", "experiment",
		"run", "run_started_at", "run_partial", "end", "end_point", "scope", "number", "at_s", "length_s",
		"goodput_bps", "goodput_low_bps", "goodput_high_bps", "retransmits_segments", "rtt_ns", "rtt_variation_ns", "cwnd_segments", "mss_bytes", "requests_per_s",
		"datagrams", "datagrams_lost", "datagrams_reordered", "jitter_ns",
		"cpu_busy_pct", "cpu_user_pct", "cpu_system_pct", "cpu_irq_pct", "cpu_softirq_pct", "cpu_steal_pct", "busiest_core", "busiest_core_pct",
		"memory_used_bytes", "rx_packets", "tx_packets", "rx_dropped", "tx_dropped",
		"layer", "access", "target", "block_bytes", "workers", "bytes_per_s", "accesses_per_s"}
}

// CSV prints a document as self-contained rows: one for each flow with its figure over all runs ("cell"), for
// each second of it ("flow"), of each of its streams ("stream"), and of each core of the host ("core"), of
// both ends and of every run; for each second of a transfer ("transfer"), and for each number of workers of a
// disk test ("disk"). The time is in seconds since the measured time of that end began. Values that were not
// measured are empty. No spreadsheet reads a cell as a formula.
func CSV(w io.Writer, d *measure.Document) error {
	if inventory.Is(d) {
		return inventory.CSV(w, d)
	}
	t := &csvTable{out: bufio.NewWriter(w), index: map[string]int{}}
	for i, name := range csvColumns() {
		t.index[name] = i
	}
	fmt.Fprintf(t.out, "%s\r\n", strings.Join(csvColumns(), ","))
	for i := range d.Cells {
		c := &d.Cells[i]
		t.about(i, c, forward(d, c), &measure.Run{}, nil)
		t.cell(c)
		for _, r := range c.Runs {
			for _, f := range r.Flows {
				for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
					if e != nil {
						t.about(i, c, forward(d, c), &r, e)
						t.flow(e)
						t.cores(e)
					}
				}
			}
		}
	}
	t.transfer(d.Transfer)
	for i := range d.Disks {
		t.disk(&d.Disks[i])
	}
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("report: writing CSV: %w", err)
	}
	return nil
}

// csvTable prints rows with common first cells.
type csvTable struct {
	out   *bufio.Writer
	index map[string]int
	head  []string // the common first cells, ready to print
	row   []string
}

// about sets the first cells of the next rows: of a run at one end, or with a nil end of all runs of a cell.
func (t *csvTable) about(n int, c *measure.Cell, direction string, r *measure.Run, e *measure.Evidence) {
	run, began, partial, end, endPoint := "", "", "", "", ""
	if e != nil {
		run, partial, end, endPoint = strconv.Itoa(r.Index), strconv.FormatBool(r.Partial), result.EndName(e), doc.CSV(e.EndPoint)
	}
	if !r.StartedAt.IsZero() {
		began = r.StartedAt.UTC().Format(time.RFC3339Nano)
	}
	traffic := c.Spec.Traffic
	if traffic == measure.Bulk {
		traffic = "bulk"
	}
	t.head = []string{strconv.Itoa(n), doc.CSV(csvRung(c)), doc.CSV(c.From), doc.CSV(c.To), direction, doc.CSV(c.Protocol), doc.CSV(traffic),
		strconv.Itoa(c.Streams), csvPair(c.Window), csvPair(c.Length), doc.CSV(c.Experiment), run, began, partial, end, endPoint}
}

// csvRung returns the rung of a cell, or a description if it has no name, since a pivot table drops empty
// cells.
func csvRung(c *measure.Cell) string {
	switch {
	case c.Rung != "":
		return c.Rung
	case result.IsLocalhost(c):
		return "localhost"
	}
	return "path"
}

// csvPair formats a size in bytes, of both ends if they differ; "default" instead of an empty cell, which a
// pivot table would drop.
func csvPair(p measure.Pair) string {
	one := func(n int64) string {
		if n == 0 {
			return "default"
		}
		return strconv.FormatInt(n, 10)
	}
	if p.Send == p.Recv {
		return one(p.Send)
	}
	return one(p.Send) + "/" + one(p.Recv)
}

// forward returns the direction of a cell: "forward" from the end that the document names first, or
// "reverse".
func forward(d *measure.Document, c *measure.Cell) string {
	at := func(name string) int {
		return slices.IndexFunc(d.EndPoints, func(e measure.EndPoint) bool { return e.Name == name })
	}
	if from, to := at(c.From), at(c.To); from > to && to >= 0 {
		return "reverse"
	}
	return "forward"
}

// cell prints the figure of a cell, over all runs that count.
func (t *csvTable) cell(c *measure.Cell) {
	f, name := c.Goodput, "goodput_bps"
	if result.Asks(c) {
		f, name = c.Transactions, "requests_per_s"
	}
	t.begin("cell", -1, 0, 0)
	t.row[t.index["at_s"]], t.row[t.index["length_s"]] = "", ""
	if f != nil { // nil if it failed
		t.set(name, f.Value)
	}
	if f != nil && !result.Asks(c) {
		t.set("goodput_low_bps", f.Low)
		t.set("goodput_high_bps", f.High)
	}
	if c.Retransmits != nil {
		t.set("retransmits_segments", float64(*c.Retransmits))
	}
	t.end()
}

// begin begins a row of a scope; number is that of the stream or core, -1 for none.
func (t *csvTable) begin(scope string, number int, at, span int64) {
	t.row = append(append(t.row[:0], t.head...), make([]string, len(t.index)-len(t.head))...)
	t.row[t.index["scope"]] = scope
	if number >= 0 {
		t.row[t.index["number"]] = strconv.Itoa(number)
	}
	t.set("at_s", float64(at)/result.Second)
	t.set("length_s", float64(span)/result.Second)
}

// set fills a cell; NaN and infinities stay empty.
func (t *csvTable) set(name string, v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		t.row[t.index[name]] = strconv.FormatFloat(v, 'f', -1, 64)
	}
}

func (t *csvTable) end() {
	t.out.WriteString(strings.Join(t.row, ",")) // an error stays in the writer
	t.out.WriteString("\r\n")
}

// flow prints each second of an end: the flow with its host, then its streams.
func (t *csvTable) flow(e *measure.Evidence) {
	rtt := map[float64]float64{}
	for _, p := range result.RTTOf(e) {
		rtt[p.X] = p.Y
	}
	asked := slices.ContainsFunc(e.Bins, func(b measure.StreamBin) bool { return b.Requests > 0 })
	for i := range e.Bins {
		b := &e.Bins[i]
		t.begin("flow", -1, b.At, b.Span)
		t.rate(b.Bytes, b.Span)
		if resent, known := result.ResentIn(e, i).Float(); known && e.Sends {
			t.set("retransmits_segments", resent)
		}
		if v, ok := rtt[result.Middle(b.At, b.Span)]; ok {
			t.set("rtt_ns", v)
		}
		if asked && b.Span > 0 { // a second without an answer is a stall, not a gap
			t.set("requests_per_s", float64(b.Requests)*result.Second/float64(b.Span))
		}
		t.datagrams(b.Datagrams)
		t.host(hostAt(e, i))
		t.end()
		t.streams(e, i)
	}
}

func (t *csvTable) rate(bytes, span int64) {
	if span > 0 {
		t.set("goodput_bps", float64(bytes)*8*result.Second/float64(span))
	}
}

// streams prints one second of each stream of an end.
func (t *csvTable) streams(e *measure.Evidence, n int) {
	b := &e.Bins[n]
	for s := range max(len(b.Streams), len(b.TCP)) {
		t.begin("stream", s, b.At, b.Span)
		if s < len(b.Streams) {
			t.rate(b.Streams[s], b.Span)
		}
		if s < len(b.TCP) {
			now := &b.TCP[s]
			kernel(t, "rtt_ns", now.RTT)
			kernel(t, "rtt_variation_ns", now.RTTVar)
			kernel(t, "cwnd_segments", now.Cwnd)
			kernel(t, "mss_bytes", now.SendMSS)
			if resent, known := e.SecondDelta(n, s, measure.Retransmits).Float(); known && e.Sends {
				t.set("retransmits_segments", resent)
			}
		}
		t.end()
	}
}

func kernel[N uint32 | int64](t *csvTable, name string, v *N) {
	if v != nil {
		t.set(name, float64(*v))
	}
}

func (t *csvTable) datagrams(d *measure.Datagrams) {
	if d == nil {
		return
	}
	t.set("datagrams", float64(d.Packets))
	t.set("datagrams_lost", float64(d.Lost))
	t.set("datagrams_reordered", float64(d.Reordered))
	if d.JitterNs != nil {
		t.set("jitter_ns", float64(*d.JitterNs))
	}
}

// hostAt returns the host's counters for the second of a bin, whose index may differ by one; nil if they were
// not read.
func hostAt(e *measure.Evidence, n int) *measure.HostSpan {
	b := &e.Bins[n]
	for i := max(0, n-1); i < min(len(e.PerSec), n+2); i++ {
		if h := &e.PerSec[i]; max(h.At, b.At)-min(h.At, b.At) < b.Span/2 {
			return h
		}
	}
	return nil
}

func (t *csvTable) host(h *measure.HostSpan) {
	if mean, most, ok := result.MachineBusy(h); ok {
		t.set("cpu_busy_pct", mean)
		t.set("busiest_core_pct", most)
		for _, c := range h.CPUs {
			if c.Busy() == most {
				t.set("busiest_core", float64(c.Core))
				break
			}
		}
	}
	if h != nil && h.Memory != nil {
		t.set("memory_used_bytes", float64(h.Memory.Total-h.Memory.Available))
	}
	if h != nil && h.NIC != nil {
		t.set("rx_packets", float64(h.NIC.RxPackets))
		t.set("tx_packets", float64(h.NIC.TxPackets))
		t.set("rx_dropped", float64(h.NIC.RxDropped))
		t.set("tx_dropped", float64(h.NIC.TxDropped))
	}
}

// cores prints the load of each core of an end's host.
func (t *csvTable) cores(e *measure.Evidence) {
	for i := range e.PerSec {
		h := &e.PerSec[i]
		for _, c := range h.CPUs {
			t.begin("core", c.Core, h.At, h.Span)
			t.set("cpu_busy_pct", c.Busy())
			t.set("cpu_user_pct", c.User)
			t.set("cpu_system_pct", c.System)
			t.set("cpu_irq_pct", c.IRQ)
			t.set("cpu_softirq_pct", c.SoftIRQ)
			t.set("cpu_steal_pct", c.Steal)
			t.end()
		}
	}
}

// transfer prints each second of the runs of a transfer, of all clients together.
func (t *csvTable) transfer(x *measure.Transfer) {
	if x == nil {
		return
	}
	from, to := x.Ends()
	for i := range x.Runs {
		r := &x.Runs[i]
		t.head = []string{"", "", doc.CSV(from), doc.CSV(to), "", doc.CSV(x.Protocol), doc.CSV(x.Direction), "", "", "", "", strconv.Itoa(i), "", strconv.FormatBool(r.Error != nil), "", ""}
		for s, bps := range r.Seconds {
			t.begin("transfer", -1, int64(s)*int64(time.Second), int64(time.Second))
			t.set("goodput_bps", bps)
			t.name("layer", r.Layer)
			t.end()
		}
	}
}

// disk prints each number of workers that each pattern was tried with.
func (t *csvTable) disk(d *measure.DiskTest) {
	t.head = []string{"", "", "", "", "", "", "disk", "", "", "", "", "0", "", strconv.FormatBool(d.Error != nil), "", doc.CSV(d.Where)}
	for _, r := range slices.Concat(d.Runs, d.Memory) {
		for i, s := range r.Tried {
			t.begin("disk", i, 0, 0)
			t.row[t.index["at_s"]] = "" // its start was not recorded
			t.row[t.index["length_s"]] = ""
			t.name("access", r.Pattern)
			t.name("target", cmp.Or(r.Target, d.Path))
			t.set("block_bytes", float64(r.BlockBytes))
			t.set("workers", float64(s.Workers))
			t.set("bytes_per_s", s.Bytes)
			if r.BlockBytes > 0 {
				t.set("accesses_per_s", s.Bytes/float64(r.BlockBytes))
			}
			t.end()
		}
	}
}

// name fills a cell with foreign text.
func (t *csvTable) name(column, text string) { t.row[t.index[column]] = doc.CSV(text) }
