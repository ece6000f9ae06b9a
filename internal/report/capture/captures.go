// Package capture words what captured packets show of a flow: its connections, their handshakes and time
// lines, packets lost between two captures, and the outcome of connections without data.
package capture

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// Packets holds the findings of the captures of one flow, ready to print.
type Packets struct {
	Direction string    // "local -> b"; "" if no other flow was captured
	Captures  []doc.Row // each with its place, size and cost
	Opening   []doc.Row // SYN and SYN-ACK with their options
	Conns     connTable
	Crossing  []doc.Row // what left one capture point and arrived at the other
	Traced    []traced
}

// New returns the Packets of each captured flow.
func New(d *measure.Document) (all []Packets) {
	var flows []*measure.Flow
	for i := range d.Cells {
		if f := result.CapturedFlow(&d.Cells[i]); f != nil && len(flows) < result.MaxCaptured {
			flows = append(flows, f)
		}
	}
	for i, f := range flows {
		p := Packets{Captures: captureRows(f)}
		if len(flows) > 1 {
			p.Direction = doc.Clean(f.From + " -> " + f.To)
		}
		near, far := PlacesOf(f)
		pairs := pairsOf(f, near, far)
		p.Opening, p.Conns, p.Crossing = openingRows(near), newConnTable(near, pairs), crossingRows(f)
		p.Traced = newTraced(pairs[:min(len(pairs), maxConns/len(flows))], near, far, fmt.Sprint("trace", i))
		all = append(all, p)
	}
	return all
}

// captureRows returns a row for each capture of a flow: its place, its amount, what it lacks, and its cost.
func captureRows(f *measure.Flow) (rows []doc.Row) {
	for i := range f.Captures[:min(len(f.Captures), result.MaxCaptured)] {
		c := &f.Captures[i]
		rows = append(rows, doc.Row{Name: captureName(c), Value: standText(c) + ": " + doc.Join(amountText(c), lackText(c), oddText(c), routersText(c))})
	}
	return rows
}

func standText(c *measure.Capture) string {
	words := map[string]string{measure.AtSender: "at the sender", measure.AtReceiver: "at the receiver", measure.AtPath: "between the ends", "": "capture point not known"}
	place, ok := words[c.Place]
	if !ok {
		place = doc.Clean(c.Place)
	}
	if c.EndPoint != "" && c.Interface != "" {
		place += ", " + doc.CleanUpTo(c.Interface, result.LongestPlace)
	}
	if c.PlacedBy != "" {
		place += " (" + doc.Clean(c.PlacedBy) + ")"
	}
	return place
}

// amountText returns "214 031 packets in 10 s, 2 of 12 connections".
func amountText(c *measure.Capture) string {
	size := unit.Count(c.Packets) + " packets"
	if c.Packets == 1 {
		size = "1 packet"
	}
	if c.SpanNs > 0 {
		size += " in " + unit.Duration(c.SpanNs)
	}
	if c.TCP != c.Packets && len(c.Others) == 0 { // else the other counts contain it
		size += ", " + unit.Count(c.TCP) + " of TCP"
	}
	switch {
	case len(c.Conns) == 0:
		return size + ", without a connection of this flow"
	case c.Known > len(c.Conns):
		return size + fmt.Sprintf(", %d of %s connections", len(c.Conns), unit.Count(int64(c.Known)))
	}
	return size
}

// lackText words what a capture is missing, and what capturing cost.
func lackText(c *measure.Capture) string {
	var parts []string
	if c.Snap > 0 && c.Snap < wholePackets {
		parts = append(parts, unit.Size(int64(c.Snap))+" of each packet kept")
	}
	switch {
	case c.Dropped != nil && *c.Dropped == 0:
		parts = append(parts, "none dropped")
	case c.Dropped != nil:
		parts = append(parts, unit.Count(*c.Dropped)+" dropped (buffer full)")
	}
	if c.Full {
		parts = append(parts, "the capture ended at its size limit: later packets are missing")
	}
	if c.CPUNs != nil {
		cost := "the capture took " + unit.Duration(*c.CPUNs) + " of CPU"
		if share := 100 * float64(*c.CPUNs) / float64(c.SpanNs); c.SpanNs > 0 && share >= 0 && share < 1e4 {
			cost += " (" + unit.Percent(share) + " of a core)"
		}
		parts = append(parts, cost)
	}
	if c.Damage != "" {
		parts = append(parts, "not fully read: "+doc.Clean(c.Damage))
	}
	return doc.Join(parts...)
}

// oddText words anomalies of a capture.
func oddText(c *measure.Capture) string {
	var parts []string
	if c.Twice.N > 0 {
		parts = append(parts, unit.Count(c.Twice.N)+" captured twice and counted once")
	}
	if c.BackTime.N > 0 {
		parts = append(parts, "the clock went back "+result.TimesText(c.BackTime.N)+result.NumbersText(c.BackTime.Packets, ""))
	}
	if c.Stepped.N > 0 {
		parts = append(parts, "the clock was set ahead "+result.TimesText(c.Stepped.N)+result.NumbersText(c.Stepped.Packets, "")+", the steps are excluded from all times")
	}
	for i, t := range c.Others {
		if i == maxKinds {
			parts = append(parts, "other kinds")
			break
		}
		parts = append(parts, unit.Count(t.Packets)+" "+doc.Clean(t.What)+" ignored")
	}
	return doc.Join(parts...)
}

// routersText words routers' ICMP messages about packets that were too large.
func routersText(c *measure.Capture) string {
	var parts []string
	for _, t := range c.TooBig[:min(len(c.TooBig), maxKinds)] {
		mtu := "without an MTU"
		if t.MTU > 0 {
			mtu = fmt.Sprintf("MTU %d", t.MTU)
		}
		parts = append(parts, fmt.Sprintf("ICMP too big from router %s, %s, %s (packet %s)", doc.Clean(t.From), mtu, result.TimesText(t.Count), unit.Count(t.Packet)))
	}
	return doc.Join(parts...)
}

// openingRows returns SYN and SYN-ACK of the main connection, and how many connections have the same options.
func openingRows(c *measure.Capture) (rows []doc.Row) {
	if len(c.Conns) == 0 {
		return nil
	}
	first := &c.Conns[0]
	if both := openingText(first.SYN); both != "" && both == openingText(first.SYNACK) {
		return []doc.Row{{Name: "handshake", Value: by(first, true) + "same in both directions: " + both + sameIn(c.Conns, both, func(c *measure.Connection) *measure.Opening { return c.SYN })}}
	}
	for _, x := range []struct {
		name string
		of   func(*measure.Connection) *measure.Opening
	}{{"SYN", func(c *measure.Connection) *measure.Opening { return c.SYN }}, {"SYN-ACK", func(c *measure.Connection) *measure.Opening { return c.SYNACK }}} {
		text := openingText(x.of(first))
		if text == "" {
			continue
		}
		rows = append(rows, doc.Row{Name: x.name, Value: by(first, x.name == "SYN") + text + sameIn(c.Conns, text, x.of)})
	}
	if len(rows) == 0 {
		return []doc.Row{{Name: "handshake", Value: "not in the capture"}}
	}
	return rows
}

// sameIn words for how many connections a text holds; "" if for all.
func sameIn(conns []measure.Connection, text string, of func(*measure.Connection) *measure.Opening) string {
	same := 0
	for i := range conns {
		if openingText(of(&conns[i])) == text {
			same++
		}
	}
	if same == len(conns) {
		return ""
	}
	return fmt.Sprintf("; the same in %d of %d connections", same, len(conns))
}

// by returns the end that sent a segment of the handshake; "" if unknown.
func by(c *measure.Connection, syn bool) string {
	switch {
	case c.FromOpened == nil:
		return "" // which end opened it is not known
	case *c.FromOpened == syn:
		return doc.CleanUpTo(c.From, result.LongestPlace) + ": "
	}
	return doc.CleanUpTo(c.To, result.LongestPlace) + ": "
}

func openingText(o *measure.Opening) string {
	if o == nil {
		return ""
	}
	s := cmp.Or(SynText(&o.SYN), "no options")
	for _, x := range []struct {
		on   bool
		name string
	}{{o.ECN != nil && !*o.ECN, "no ECN"}, {o.FastTFO, "fast open"}, {o.MPTCP, "MPTCP"}} {
		if x.on {
			s += ", " + x.name
		}
	}
	if o.Again.N > 0 {
		s += ", sent " + result.TimesText(1+min(o.Again.N, math.MaxInt64-1))
	}
	return s
}

// SynText returns the options of a SYN: "MSS 1460, window scale 7, SACK, timestamps".
func SynText(s *measure.SYN) string {
	if s == nil {
		return ""
	}
	var all []string
	if s.MSS != nil {
		all = append(all, fmt.Sprintf("MSS %d", *s.MSS))
	}
	switch {
	case s.HasScale != nil && !*s.HasScale:
		all = append(all, "no window scale")
	case s.WindowScale != nil:
		all = append(all, fmt.Sprintf("window scale %d", *s.WindowScale))
	case s.HasScale != nil:
		all = append(all, "window scale") // the value is not known here
	}
	for _, o := range []struct {
		on   *bool
		name string
	}{{s.SACK, "SACK"}, {s.Timestamps, "timestamps"}} {
		if o.on != nil && *o.on {
			all = append(all, o.name)
		} else if o.on != nil {
			all = append(all, "no "+o.name)
		}
	}
	if s.ECN != nil && *s.ECN {
		all = append(all, "ECN")
	}
	return strings.Join(all, ", ")
}
