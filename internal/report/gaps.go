package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// gap is a reason and the facts that could not be had because of it.
type gap struct {
	Why   string
	Facts []string
	Like  int // reasons for the same that begin alike, and are left out
}

// isLike tells whether a reason for a fact says what this one says of another place.
func (g gap) isLike(fact, why string) bool {
	head := why[:min(alike, len(why))]
	return len(why) > alike && strings.HasPrefix(g.Why, head) && len(g.Facts) == 1 && g.Facts[0] == fact
}

// gaps groups by reason what was not checked of the measurement.
func gaps(d *measure.Document) []gap {
	var out []gap
	add := func(missing []measure.NotChecked) {
		for _, m := range missing {
			if isWarned(d, m) {
				continue
			}
			out = addGap(out, inWords(clean(m.Fact)), reasonText(m.Why))
		}
	}
	add(d.Missing)
	add(unwatched(d))
	for i := range d.Groups {
		add(d.Groups[i].Missing)
	}
	for i := range d.Cells {
		if d.Cells[i].Beside || isExperiment(&d.Cells[i]) {
			continue
		}
		add(d.Cells[i].Missing)
		for _, e := range evidences(&d.Cells[i]) {
			add(e.Missing)
		}
		if r := shownRun(&d.Cells[i]); r != nil {
			for _, f := range r.Flows {
				add(f.Missing)
			}
		}
		if f := capturedFlow(&d.Cells[i]); f != nil {
			for _, c := range f.Captures[:min(len(f.Captures), maxCaptured)] {
				add(c.Missing)
			}
			if f.Crossing != nil {
				add(f.Crossing.Missing)
			}
		}
	}
	return out
}

// isWarned tells of a hypervisor that did not answer: a warning says why, and what to do.
func isWarned(d *measure.Document, m measure.NotChecked) bool {
	what, source, found := strings.Cut(m.Fact, ", of ")
	return found && slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.HasPrefix(w, source+" does not tell "+what+": "+m.Why) })
}

// inWords is what people call the figure of a JSON key; other keys stay as they are.
func inWords(key string) string {
	words := map[string]string{
		"bdp_bytes": "BDP", "ceiling": "ceiling", "cpu_of_each_end": "CPU of each end apart", "goodput_bps": "goodput",
		"host": "counters of the host", "interface.driver": "driver counters of the interface", "jain_fairness": "fairness",
		"mean_packet_bytes": "mean packet", "receiver_cpu": "CPU of the receiver", "receiver_memory": "memory of the receiver",
		"reconciled": "both ends beside each other", "required_window_bytes": "required window", "retransmits_segments": "retransmits",
		"rfc6349.buffer_delay_pct": "buffer delay", "rfc6349.tcp_efficiency_pct": "TCP efficiency", "rfc6349.transfer_time_ratio": "time ratio",
		"steady_state": "steady state", "streams.mss": "segment size", "streams.tcp.bytes_sent": "bytes sent again",
		"rtt_idle_ns": "RTT idle", "rtt_loaded_ns": "RTT loaded", "sender_cpu": "CPU of the sender", "sender_memory": "memory of the sender",
		"streams.blocked_ns": "time blocked in socket calls", "streams.tcp": "TCP_INFO",
		"transactions_per_s": "requests a second", "datagrams": "figures of the datagrams", "datagrams.sent_packets": "datagrams sent",
		"latency_under_load": "latency under load", "loss_places": "where datagrams were lost", "latency.histogram": "distribution of the latency", "verified": "comparison of the data",
		"search.capacity_bps": "capacity", "streams.datagrams": "counts of the datagrams", "host.qdisc": "counters of the queue (qdisc)",
		"sender_cpu.pct_per_gbps": "CPU per Gb/s of the sender", "receiver_cpu.pct_per_gbps": "CPU per Gb/s of the receiver",
		"end_points.facts": "facts of the host there", "bins": "its seconds", "io": "its data path", "route": "its route", "worker": "CPU time of the program there", "total_bytes": "its bytes with the ramp",
		"host_idle_baseline": "the host when idle", "streams.window": "its socket buffers", "streams.tcp.rtt_ns": "round trips of the sender there", "streams.datagrams.lost": "losses of the omitted time apart", "worker.resident_bytes": "memory of the program there",
		"aggregate_bps": "what all carried together", "hosts.cpu": "CPU of the hosts",
		"transfer.runs.there_cpu": "CPU of the server", "transfer.runs.there_cpu.worker_cores_used": "CPU of the server's program", "transfer.runs.there_sockets": "TCP of the server",
		"transfer.runs.seconds_bps": "the single seconds", "transfer.published": "published figures",
		"left_capture":                "which capture is nearer to the sender",
		"bytes_read":                  "what the program there has read",
		"streams.datagrams.reordered": "datagrams out of order", "streams.datagrams.duplicates": "duplicates", "streams.datagrams.socket_drops": "drops at its socket",
		"sender_cpu.idle_baseline": "the sender when idle", "receiver_cpu.idle_baseline": "the receiver when idle",
	}
	if w, ok := words[key]; ok {
		return w
	}
	if counter, ok := strings.CutPrefix(key, "transfer.runs.there_host."); ok {
		return "of the server's host: " + counter
	}
	return factWords(key)
}

// factGaps groups by reason what was not checked of the hosts. There is much
// of it, and little that a result depends on, so text only counts it.
func factGaps(d *measure.Document) []gap {
	var out []gap
	for _, p := range d.EndPoints {
		if p.Facts == nil {
			continue
		}
		for _, m := range p.Facts.NotChecked {
			out = addGap(out, factWords(clean(m.Fact)), reasonText(m.Why))
		}
	}
	return out
}

// alike is how much of two reasons for the same fact makes them one: those of
// many pairs differ in the names of their hosts alone.
const alike = 40

// sameWords tells of two reasons that name the same in another order, as those of
// the two directions between two hosts do.
func sameWords(a, b string) bool {
	words := func(s string) []string {
		return slices.Sorted(strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(" ;,", r) }))
	}
	return len(a) == len(b) && slices.Equal(words(a), words(b))
}

func addGap(gaps []gap, fact, why string) []gap {
	i := slices.IndexFunc(gaps, func(g gap) bool { return g.Why == why || slices.Contains(g.Facts, fact) && sameWords(g.Why, why) })
	if same := slices.IndexFunc(gaps, func(g gap) bool { return g.isLike(fact, why) }); i < 0 && same >= 0 {
		gaps[same].Like++
		return gaps
	}
	switch {
	case i < 0 && len(gaps) == maxLines:
		return gaps
	case i < 0:
		return append(gaps, gap{Why: why, Facts: []string{fact}})
	case len(gaps[i].Facts) < maxLines && !slices.Contains(gaps[i].Facts, fact):
		gaps[i].Facts = append(gaps[i].Facts, fact)
	}
	return gaps
}

// text is a gap in a few words: "a, b, c and 2 more (why)".
func (g gap) text(most int) string {
	facts := strings.Join(g.Facts[:min(most, len(g.Facts))], ", ")
	if n := len(g.Facts) - most; n > 0 {
		facts += fmt.Sprintf(" and %d more", n)
	}
	if g.Why == "" {
		return facts
	}
	if g.Like > 0 {
		return facts + " (" + g.Why + "; and " + strconv.Itoa(g.Like) + " more like it)"
	}
	return facts + " (" + g.Why + ")"
}

// warnings lists each warning once, with the cells it belongs to.
func warnings(d *measure.Document) []string {
	out := append(cleanAll(d.Warnings), groupWarnings(d)...)
	if isFleet(d) {
		return append(out, pairWarnings(d)...)
	}
	var found []cellWarning
	main := 0
	for i := range d.Cells {
		c := &d.Cells[i]
		if isExperiment(c) {
			continue // what is odd about it was asked for
		}
		isMain := !c.Beside && !isGauge(d, c)
		if isMain {
			main++
		}
		for _, w := range c.Warnings {
			if ofFile(c) && strings.HasPrefix(w, "single run") {
				continue // what is in a file is one run
			}
			if d.Command == "ladder" && strings.Contains(w, "cut the window") && isCut(c) {
				continue // the ladder's note says it once for all cells
			}
			x := newCellWarning(clean(w))
			at := slices.IndexFunc(found, func(f cellWarning) bool { return f.isLike(x) })
			if at < 0 {
				found, at = append(found, x), len(found)
			}
			found[at].join(x, cellLabel(d, c), isMain)
		}
	}
	for i, f := range found {
		if i == maxLines {
			break
		}
		label := whose(f.cells, main)
		if !f.main {
			label = f.cells[0] + ": "
		}
		out = append(out, label+f.text())
	}
	return out
}

// groupWarnings are those of what ran at once, each once.
func groupWarnings(d *measure.Document) []string {
	var found []cellWarning
	for i := range d.Groups {
		g := &d.Groups[i]
		for _, w := range g.Warnings {
			x := newCellWarning(clean(w))
			at := slices.IndexFunc(found, func(f cellWarning) bool { return f.isLike(x) })
			if at < 0 {
				found, at = append(found, x), len(found)
			}
			found[at].join(x, setName(conditions(g.Axes), g.Label), true)
		}
	}
	var out []string
	for i, f := range found {
		if i == maxLines {
			break
		}
		switch {
		case len(d.Groups) == 1 || len(f.cells) == len(d.Groups):
			out = append(out, f.text())
		case len(f.cells) == 1 && f.cells[0] != "":
			out = append(out, f.cells[0]+": "+f.text())
		default:
			out = append(out, fmt.Sprintf("%d of %d settings: %s", len(f.cells), len(d.Groups), f.text()))
		}
	}
	return out
}

// cellWarning is what cells were warned of in the same words, but for the first
// number.
type cellWarning struct {
	before, after string
	low, high     string // least and greatest of that number; empty: there is none
	cells         []string
	main          bool // a main cell is among them
}

func newCellWarning(text string) cellWarning {
	at := strings.IndexAny(text, "0123456789")
	if at < 0 {
		return cellWarning{before: text}
	}
	rest := strings.TrimLeft(text[at:], "0123456789.")
	number := strings.TrimRight(text[at:len(text)-len(rest)], ".")
	return cellWarning{before: text[:at], after: text[at+len(number):], low: number, high: number}
}

func (w *cellWarning) isLike(x cellWarning) bool {
	return w.before == x.before && w.after == x.after && (w.low == "") == (x.low == "")
}

// join adds a cell. Numbers that cannot be compared stay as the first had them.
func (w *cellWarning) join(x cellWarning, cell string, isMain bool) {
	n, err1 := strconv.ParseFloat(x.low, 64)
	low, err2 := strconv.ParseFloat(w.low, 64)
	high, err3 := strconv.ParseFloat(w.high, 64)
	if err1 == nil && err2 == nil && err3 == nil {
		if n < low {
			w.low = x.low
		}
		if n > high {
			w.high = x.high
		}
	}
	if w.cells = append(w.cells, cell); isMain {
		w.main = true
	}
}

func (w *cellWarning) text() string {
	if w.low == w.high {
		return w.before + w.low + w.after
	}
	return w.before + w.low + "-" + w.high + w.after
}

// whose names the cells that a line is about: nothing where it is as many as
// there are main ones, for then it is about the whole.
func whose(cells []string, main int) string {
	switch {
	case len(cells) >= main:
		return ""
	case len(cells) == 1:
		return cells[0] + ": "
	default:
		return fmt.Sprintf("%d of %d cells: ", len(cells), main)
	}
}

// cellLabel tells a cell from its neighbours in few words.
func cellLabel(d *measure.Document, c *measure.Cell) string {
	switch {
	case d.Command == "ladder" && c.Label != "" || isGauge(d, c):
		return clean(c.Label)
	case d.Command == "ladder":
		return unit.Plural(c.Streams, "stream") + ", " + windowName(c.Window) + " window"
	case c.Beside:
		return pathName(c) + ", " + unit.Plural(c.Streams, "stream")
	default:
		return pathName(c)
	}
}
