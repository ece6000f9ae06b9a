package report

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/fleet"
	"thru/internal/report/ladder"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// gaps groups by reason what was not checked of the measurement.
func gaps(d *measure.Document) (out []doc.Gap) {
	for _, m := range missing(d) {
		out = doc.AddGap(out, inWords(doc.Clean(m.Fact)), doc.Reason(m.Why))
	}
	return out
}

// fileGaps words in few words why facts of capture files were not checked.
func fileGaps(d *measure.Document) (out []doc.Gap) {
	unseen := false
	for _, m := range missing(d) {
		switch {
		case m.Code == measure.NotInCapture:
			unseen = true
		case m.Fact == "ceiling":
			out = doc.AddGap(out, "ceiling", "set the link rate with --link-rate")
		case m.Fact == "rfc6349.transfer_time_ratio", m.Fact == "steady_state": // the ceiling, and a warning, contain them
		default:
			out = doc.AddGap(out, inWords(doc.Clean(m.Fact)), doc.Reason(m.Why))
		}
	}
	if unseen {
		out = append(out, doc.Gap{Why: "not visible in packets", Facts: []string{"CPU and memory of both ends", "bytes that the programs read"}})
	}
	return out
}

// missing lists what was not checked of the measurement.
func missing(d *measure.Document) []measure.NotChecked {
	out := slices.Concat(d.Missing, unwatched(d))
	for i := range d.Groups {
		out = append(out, d.Groups[i].Missing...)
	}
	for i := range d.Cells {
		if c := &d.Cells[i]; !c.Baseline && !result.IsExperiment(c) {
			out = append(out, missingOf(c)...)
		}
	}
	// A warning explains why a hypervisor did not answer, and what to do.
	return slices.DeleteFunc(out, measure.NotChecked.IsAskedOf)
}

// missingOf lists what was not checked of a cell.
func missingOf(c *measure.Cell) []measure.NotChecked {
	out := slices.Clone(c.Missing)
	for _, e := range result.Evidences(c) {
		out = append(out, e.Missing...)
	}
	if r := result.ShownRun(c); r != nil {
		for _, f := range r.Flows {
			out = append(out, f.Missing...)
		}
	}
	if f := result.CapturedFlow(c); f != nil {
		for _, x := range f.Captures[:min(len(f.Captures), result.MaxCaptured)] {
			out = append(out, x.Missing...)
		}
		if f.Crossing != nil {
			out = append(out, f.Crossing.Missing...)
		}
	}
	return out
}

// inWords returns the common name of a JSON key's figure; other keys stay as they are.
func inWords(key string) string {
	if w, ok := figureWords()[key]; ok {
		return w
	}
	if counter, ok := strings.CutPrefix(key, "transfer.runs.there_host."); ok {
		return "server host: " + counter
	}
	return factWords().Words(key)
}

// factWords returns the rows of all facts.
var factWords = unit.Once(measure.NewVocabulary)

// figureWords maps keys of figures to their common names.
var figureWords = unit.Once(func() map[string]string {
	return map[string]string{
		"bdp_bytes": "BDP", "ceiling": "ceiling", "cpu_of_each_end": "CPU of each end", "goodput_bps": "goodput",
		"host": "counters of the host", "interface.driver": "driver counters of the interface", "jain_fairness": "fairness",
		"mean_packet_bytes": "mean packet", "receiver_cpu": "CPU of the receiver", "receiver_memory": "memory of the receiver",
		"reconciled": "comparison of both ends", "required_window_bytes": "required window", "retransmits_segments": "retransmits",
		"rfc6349.buffer_delay_pct": "buffer delay", "rfc6349.tcp_efficiency_pct": "TCP efficiency", "rfc6349.transfer_time_ratio": "time ratio",
		"steady_state": "steady state", "streams.mss": "segment size", "streams.tcp.bytes_sent": "retransmitted bytes",
		"rtt_idle_ns": "RTT idle", "rtt_loaded_ns": "RTT loaded", "sender_cpu": "CPU of the sender", "sender_memory": "memory of the sender",
		"streams.blocked_ns": "time blocked in socket calls", "streams.tcp": "TCP_INFO",
		"transactions_per_s": "requests a second", "datagrams": "datagram figures", "datagrams.sent_packets": "datagrams sent",
		"latency_under_load": "latency under load", "loss_places": "location of the loss", "latency.histogram": "latency distribution", "verified": "comparison of the data",
		"search.capacity_bps": "capacity", "streams.datagrams": "datagram counts", "host.qdisc": "counters of the queue (qdisc)",
		"sender_cpu.pct_per_gbps": "CPU per Gb/s of the sender", "receiver_cpu.pct_per_gbps": "CPU per Gb/s of the receiver",
		"end_points.facts": "facts of the remote host", "bins": "figures of each second", "io": "data path", "route": "route", "worker": "CPU time of the remote program", "total_bytes": "bytes including the ramp",
		"host_idle_baseline": "idle load of the host", "streams.window": "socket buffers", "streams.tcp.rtt_ns": "RTT at the remote sender", "streams.datagrams.lost": "losses during the omitted time", "worker.resident_bytes": "memory of the remote program",
		"aggregate_bps": "total rate of all flows", "hosts.cpu": "CPU of the hosts",
		"transfer.runs.there_cpu": "CPU of the server", "transfer.runs.there_cpu.worker_cores_used": "CPU of the server's program", "transfer.runs.there_sockets": "TCP of the server",
		"transfer.runs.seconds_bps": "rate of each second", "transfer.published": "published figures",
		"left_capture":                "order of the captures",
		"bytes_read":                  "bytes that the remote program read",
		"streams.datagrams.reordered": "datagrams out of order", "streams.datagrams.duplicates": "duplicates", "streams.datagrams.socket_drops": "drops at the socket",
		"sender_cpu.idle_baseline": "idle load of the sender", "receiver_cpu.idle_baseline": "idle load of the receiver",
	}
})

// factGaps groups by reason what was not checked of the hosts. There are many such facts, and results depend
// on few of them, so text only counts them.
func factGaps(d *measure.Document) []doc.Gap {
	var out []doc.Gap
	v := factWords()
	for _, p := range d.EndPoints {
		if p.Facts == nil {
			continue
		}
		for _, m := range p.Facts.NotChecked {
			out = doc.AddGap(out, v.Words(doc.Clean(m.Fact)), doc.Reason(m.Why))
		}
	}
	return out
}

// warnings lists each warning once, with the cells it belongs to.
func warnings(d *measure.Document) []string {
	return warningsBut(d, func(string) bool { return false })
}

// warningsBut returns all warnings except those with some codes.
func warningsBut(d *measure.Document, left func(code string) bool) []string {
	out := append(doc.CleanAll(d.Warnings), groupWarnings(d)...)
	return append(out, cellLines(d, func(c *measure.Cell) (lines []string) {
		for _, w := range c.Warnings {
			switch code := c.CodeOf(w); {
			case left(code):
			case code == measure.SingleRun && result.OfFile(c): // a file has only one run
			case code == measure.WindowCut && ladder.IsCut(c) && ladder.Has(d, c): // the ladder's note has it once
			default:
				lines = append(lines, doc.Clean(w))
			}
		}
		return lines
	})...)
}

// cellLines returns lines about cells, each once, with the cells it belongs to.
func cellLines(d *measure.Document, of func(*measure.Cell) []string) []string {
	var all result.SharedTexts
	main := 0
	for i := range d.Cells {
		c := &d.Cells[i]
		baseline := c.Baseline || result.IsGauge(d, c)
		if result.IsExperiment(c) || baseline && fleet.Is(d) {
			continue // its anomalies were asked for, or do not matter among many cells
		}
		mark := ""
		if baseline {
			mark = cellLabel(d, c)
		} else {
			main++
		}
		for _, w := range of(c) {
			all.Of(mark, w, cellLabel(d, c), c.From, c.To)
		}
	}
	return warningLines(all.Joined(), main)
}

// warningLines returns a line for each warning of main cells.
func warningLines(said []*result.SharedText, main int) (out []string) {
	for i, w := range said {
		label := cellNames(w.Pairs, main)
		switch sides := w.Sides(); {
		case i == result.MaxLines:
			return append(out, fmt.Sprintf("and %d more, see the JSON document", len(said)-i))
		case w.Mark == "" && sides != "":
			out = append(out, sides)
			continue
		case w.Mark != "" && slices.ContainsFunc(said, func(x *result.SharedText) bool { return x.Mark == "" && x.Text() == w.Text() }):
			continue // the main cells have it
		case w.Mark != "":
			label = w.Mark + ": "
		}
		out = append(out, label+w.Text())
	}
	return out
}

// groupWarnings returns the warnings of groups, each once.
func groupWarnings(d *measure.Document) []string {
	var all result.SharedTexts
	for i := range d.Groups {
		for _, w := range d.Groups[i].Warnings {
			all.Of("", doc.Clean(w), result.SetName(result.Conditions(d.Groups[i].Axes), d.Groups[i].Label), "", "")
		}
	}
	var out []string
	for i, x := range all.Joined() {
		if i == result.MaxLines {
			break
		}
		switch {
		case len(x.Pairs) == len(d.Groups):
			out = append(out, x.Text())
		case len(x.Pairs) == 1 && x.Pairs[0] != "":
			out = append(out, x.Pairs[0]+": "+x.Text())
		default:
			out = append(out, fmt.Sprintf("%d of %d settings: %s", len(x.Pairs), len(d.Groups), x.Text()))
		}
	}
	return out
}

// cellNames names the cells of a line; "" if it is about all main cells.
func cellNames(cells []string, main int) string {
	switch {
	case len(cells) >= main:
		return ""
	case len(cells) == 1:
		return cells[0] + ": "
	default:
		return fmt.Sprintf("%d of %d cells: ", len(cells), main)
	}
}

// cellLabel distinguishes a cell from the others in few words.
func cellLabel(d *measure.Document, c *measure.Cell) string {
	switch {
	case d.Command == "ladder" && c.Label != "" || result.IsGauge(d, c):
		return doc.Clean(c.Label)
	case d.Command == "ladder":
		return unit.Plural(c.Streams, "stream") + ", " + result.WindowName(c.Window) + " window"
	case c.Baseline:
		return result.PathName(c) + ", " + unit.Plural(c.Streams, "stream")
	default:
		return result.PathName(c)
	}
}
