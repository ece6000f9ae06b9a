package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// What is special about results of captured files: no test was made, so what
// belongs to tests is left out, and what packets never tell is said once.

// ofFile tells whether a cell is known by files of packets only.
func ofFile(c *measure.Cell) bool {
	f := capturedFlow(c)
	return f != nil && f.Captures[0].File != "" && f.Captures[0].EndPoint == ""
}

// ofFiles tells whether a document was made of captured files.
func ofFiles(d *measure.Document) bool {
	return slices.ContainsFunc(d.Cells, func(c measure.Cell) bool { return ofFile(&c) })
}

// fileRows are the figures of a cell that what the packets show does not have.
func fileRows(c *measure.Cell, all []doc.Row) (out []doc.Row) {
	if stat.MainFigure(c) == nil {
		return nil
	}
	for _, r := range all {
		switch r.Name {
		case "goodput":
			out = append(out, doc.Row{Name: "by seconds", Value: r.Value})
		case "share", "streams", "BDP":
			out = append(out, r)
		case "steady":
			if !strings.HasPrefix(r.Value, "not checked") {
				out = append(out, r)
			}
		}
	}
	return out
}

// sideName is how a capture is called where it has been named before: by its
// side, where two files were made at both ends.
func sideName(f *measure.Flow, c *measure.Capture) string {
	near, far := placesOf(f)
	if c.EndPoint == "" && far != nil && near.Place == measure.AtSender && far.Place == measure.AtReceiver {
		if c == near {
			return "the sender's"
		}
		return "the receiver's"
	}
	return captureName(c)
}

// worded is a proof from files as people read it who see the files named and how
// long they are. Flow is nil where none was captured.
func worded(p measure.Proof, f *measure.Flow) measure.Proof {
	if f == nil || f.Captures[0].File == "" {
		return p
	}
	p.SpanNs, p.Counter = 0, cmp.Or(counterWords()[p.Counter], p.Counter)
	if strings.HasSuffix(p.Counter, ":") {
		p.Unit = yesOrNo
	}
	near, far := placesOf(f)
	for _, c := range []*measure.Capture{near, far} {
		if c == nil || p.Capture == "" || baseName(p.Capture) != baseName(c.File) {
			continue
		}
		if p.Capture = sideName(f, c); far == nil {
			p.Capture = ""
		}
		break
	}
	return p
}

// yesOrNo is the unit of a Proof that tells whether an option is on.
const yesOrNo = "yes or no"

// counterWords names for people what a counter of the kernel is called, where
// it stands for what was counted in packets. A colon ends what is on or off.
func counterWords() map[string]string {
	return map[string]string{
		"tcp_info.total_retrans of data_segs_out": "segments sent again, of all",
		"tcp_info.rtt_ns under load, mean":        "round trip under load, mean",
		"tcp_info.opt_sack":                       "SACK at both ends:",
		"tcp_info.opt_timestamps":                 "time stamps at both ends:",
		"tcp_info.opt_window_scaling":             "window scaling at both ends:",
		"the option in the handshake":             "it is in the handshake:",
	}
}

// fileGaps are the reasons in few words why something of files was not checked.
func fileGaps(all []doc.Gap) (out []doc.Gap) {
	unseen := false
	for _, g := range all {
		switch {
		case g.Why == measure.NotInCapture, g.Why == measure.ReadNotInCapture:
			unseen = true
		case slices.Contains(g.Facts, "ceiling"):
			out = append(out, doc.Gap{Why: "--link-rate names the link's", Facts: []string{"ceiling"}})
		case slices.Contains(g.Facts, "time ratio"), slices.Contains(g.Facts, "steady state"): // the ceiling, and a warning, tell of them
		default:
			out = append(out, g)
		}
	}
	if unseen {
		out = append(out, doc.Gap{Why: "packets do not show it", Facts: []string{"CPU and memory of both ends", "what the programs read"}})
	}
	return out
}

// tellable are the causes that another capture would tell, by what it would
// have to be, and how many others packets leave open.
func (d diagnosis) tellable() (all []doc.Gap, others int) {
	for _, u := range d.Open {
		if why := captureText(u.Capture); why != "" {
			all = doc.AddGap(all, u.Cause, why)
		} else {
			others++
		}
	}
	return all, others
}

// captureText says which capture would tell; "" where none would.
func captureText(capture string) string {
	switch capture {
	case measure.AtSender, measure.AtReceiver:
		return "a capture at the " + capture + " would tell"
	case measure.CaptureAtOtherEnd:
		return "a second capture at the other end would tell"
	case measure.CaptureHandshake:
		return "the handshake is not in the capture"
	}
	return ""
}

// fileAnswer says what became of connections without any figure; "" where no file
// was captured.
func fileAnswer(d *measure.Document) string {
	for i := range d.Cells {
		if c := &d.Cells[i]; ofFile(c) {
			near, _ := placesOf(capturedFlow(c))
			return fateOf(near)
		}
	}
	return ""
}

// fateOf says "no data passed 10.0.0.1 -> 10.0.0.2: SYN sent 6 times, never answered".
func fateOf(c *measure.Capture) string {
	if len(c.Conns) == 0 {
		return "no connection of this flow is in the capture"
	}
	first := &c.Conns[0]
	var fates []string
	times := map[string]int{}
	passed := false
	for i := range c.Conns {
		k := &c.Conns[i]
		passed = passed || hasPassed(k)
		s := fate(k, len(c.Conns) == 1)
		if times[s]++; times[s] == 1 {
			fates = append(fates, s)
		}
	}
	said := "no data passed "
	if passed {
		said = "no rate to be told "
	}
	said += doc.CleanUpTo(hostOf(first.From), longestPlace) + " -> " + doc.CleanUpTo(hostOf(first.To), longestPlace) + ": "
	if len(c.Conns) == 1 {
		return said + fates[0] + untilItsEnd(c, first)
	}
	for i, s := range fates {
		fates[i] = fmt.Sprintf("%s: %s", unit.Plural(times[s], "connection"), s)
	}
	return said + strings.Join(fates[:min(len(fates), maxKinds)], "; ")
}

// patience is how long after the last packet an answer may still come.
const patience = 1e9 // ns

// untilItsEnd tells that a capture ends before an answer could have come.
func untilItsEnd(c *measure.Capture, k *measure.Connection) string {
	if strings.HasSuffix(fate(k, true), "never answered") && c.SpanNs-k.StartNs-k.SpanNs < patience {
		return " before the capture ends"
	}
	return ""
}

// hasPassed tells whether payload of a connection was acknowledged, or came from its other end.
func hasPassed(c *measure.Connection) bool {
	if c.Acks.New > 0 {
		return true
	}
	acked := c.Course == nil // where there is no course, nothing speaks against it
	if c.Course != nil {
		acked = mostOf(c.Course.Acked) > max(0, mostOf(c.Course.Sent)-float64(c.Data.New)) // the rest may be of before the capture
	}
	return c.Data.New > 0 && c.Acks.Packets > 0 && (c.RTT != nil || acked)
}

// fate is what became of one connection; with its figures, where it is the only one.
func fate(c *measure.Connection, figures bool) string {
	with := func(format string, args ...any) string {
		if !figures {
			return ""
		}
		return fmt.Sprintf(format, args...)
	}
	reset := ""
	if s := resetText(c); s != "" {
		reset = ", ended by " + with("%s", s)
		if !figures {
			reset = ", ended by RST"
		}
	}
	switch {
	case hasPassed(c):
		return "too little passed" + with(": %s in %s", unit.Size(max(0, c.Data.New)), unit.Duration(max(0, c.SpanNs))) + reset
	case c.Data.New > 0 && c.Acks.Packets == 0:
		return "data was sent" + with(", %s%s", unit.Size(c.Data.New), againWords(c)) + ", and nothing came back"
	case c.Data.New > 0:
		return "data was sent" + with(", %s%s", unit.Size(c.Data.New), againWords(c)) + ", and never acknowledged" + reset
	case c.SYN != nil && c.SYNACK == nil && reset != "":
		return "SYN sent" + with(" %s", sentTimes(c.SYN)) + ", refused" + with(" by RST%s", strings.TrimPrefix(resetText(c), "rst"))
	case c.SYN != nil && c.SYNACK == nil:
		return "SYN sent" + with(" %s", sentTimes(c.SYN)) + ", never answered"
	case c.SYNACK != nil:
		return "it was opened and carried nothing" + reset
	}
	return "the packets that were captured have no payload" + reset
}

func sentTimes(o *measure.Opening) string { return timesText(1 + max(0, min(o.Again.N, 1<<40))) }

func againWords(c *measure.Connection) string {
	if c.Data.Again.N <= 0 {
		return ""
	}
	return " and " + timesText(c.Data.Again.N) + " again"
}

// hostOf is HOST:PORT without the port.
func hostOf(end string) string {
	if i := strings.LastIndexByte(end, ':'); i > 0 {
		return strings.Trim(end[:i], "[]")
	}
	return end
}

// filed prints a result of files: the finding and the handshake come first, the
// causes that were ruled out last.
func (p *printer) filed(v *view) {
	doc.Print(p, whyBlocks(v.Why, true))
	var figures []doc.Row // of a single direction: they go on with those of its connection
	if len(v.Cells) == 1 {
		figures = v.Cells[0].Rows
	}
	doc.Print(p, capturedBlocks(v.Packets, figures...))
	if len(v.Cells) > 1 {
		p.cells(v)
	}
	for i := range v.Why {
		var before *diagnosis
		if i > 0 {
			before = &v.Why[i-1]
		}
		doc.Print(p, []doc.Block{doc.Pairs{Name: v.Why[i].Way, Rows: v.Why[i].others(before, true)}})
	}
	left := *v
	if left.Missing = fileGaps(v.Missing); v.Silent {
		left.Missing = nil // of a connection that carried nothing there are no figures to miss
	}
	p.lists(&left)
}

// isSilent tells of a document of files without any figure.
func isSilent(d *measure.Document) bool {
	return ofFiles(d) && !slices.ContainsFunc(d.Cells, func(c measure.Cell) bool { return stat.Measured(&c) || isHeld(&c) })
}

// silentDiagnoses are those of connections without any figure, where there is a
// cause to name: that nothing was measured the answer has said.
func silentDiagnoses(d *measure.Document) (all []diagnosis) {
	for i := range d.Cells {
		c := &d.Cells[i]
		if slices.ContainsFunc(c.Findings, func(f measure.Finding) bool { return f.Cause != "none" }) {
			all = append(all, newDiagnosis(c.Diagnosis, capturedFlow(c)))
		}
	}
	return all[:min(len(all), 2)]
}
