package capture

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// pair is a connection at the capture point nearer to the sender, and at the other one; nil if not captured
// there.
type pair struct{ near, far *measure.Connection }

// pairsOf matches the main connections of two captures. It omits connections with less than 1% of the first
// one's data, such as control connections.
func pairsOf(f *measure.Flow, near, far *measure.Capture) (all []pair) {
	for i := range near.Conns[:min(len(near.Conns), maxConns)] {
		c := &near.Conns[i]
		if c.Data.New < near.Conns[0].Data.New/100 {
			break
		}
		all = append(all, pair{c, sameConn(f.Crossing, c, far)})
	}
	return all
}

// sameConn finds a connection in the other capture: by the crossing, else by its addresses.
func sameConn(x *measure.Crossing, c *measure.Connection, far *measure.Capture) *measure.Connection {
	if far == nil {
		return nil
	}
	same := func(o measure.Connection) bool { return o.From == c.From && o.To == c.To }
	if x != nil {
		for _, k := range x.Conns {
			if k.LeftIndex == c.Index {
				same = func(o measure.Connection) bool { return o.Index == k.RightIndex }
			}
		}
	}
	if i := slices.IndexFunc(far.Conns, same); i >= 0 {
		return &far.Conns[i]
	}
	return nil
}

// connTable holds the main connections side by side.
type connTable struct {
	Names []string // "192.0.2.1:40112 -> 192.0.2.2:5202"
	Short []string // ":40112", if only the port differs
	Rows  []connRow
	More  int // connections that are not shown
}

// connRow is one figure of each connection, "" if there is none. Rows of one group have one subject.
type connRow struct {
	Group, Name string // Name is "" in the first row of a group
	Values      []string
}

// Label returns the row's name in a table.
func (r connRow) Label() string {
	if r.Name == "" {
		return r.Group
	}
	return r.Group + " " + r.Name
}

func newConnTable(near *measure.Capture, pairs []pair) connTable {
	t := connTable{More: len(near.Conns) - len(pairs)}
	for _, p := range pairs {
		t.Names = append(t.Names, connName(p.near))
		t.Short = append(t.Short, shortConn(p.near))
	}
	for _, k := range connFigures() {
		r := connRow{Group: k.group, Name: k.name}
		said := false
		for _, p := range pairs {
			v := k.of(p)
			said = said || v != "" && v != noValue
			r.Values = append(r.Values, v)
		}
		if said {
			t.Rows = append(t.Rows, r)
		}
	}
	return t
}

// lines returns the figures of a single connection, one line for each group.
func (t connTable) lines() (rows []doc.Row) {
	for _, r := range t.Rows {
		value := r.Values[0]
		if r.Name != "" {
			value = r.Name + " " + value
		}
		if n := len(rows) - 1; n >= 0 && rows[n].Name == r.Group {
			rows[n].Value += ", " + value
			continue
		}
		rows = append(rows, doc.Row{Name: r.Group, Value: value})
	}
	return rows
}

func connName(c *measure.Connection) string {
	return doc.CleanUpTo(c.From, result.LongestPlace) + " -> " + doc.CleanUpTo(c.To, result.LongestPlace)
}

// shortConn names a connection by its number and the port of the end that differs between connections.
func shortConn(c *measure.Connection) string {
	end := c.From
	if c.FromOpened != nil && !*c.FromOpened {
		end = c.To
	}
	_, port, ok := strings.Cut(end[max(0, strings.LastIndexByte(end, ':')):], ":")
	if !ok || len(port) > 5 {
		return fmt.Sprintf("#%d", c.Index)
	}
	return ":" + doc.Clean(port)
}

// connFigure is a figure of a connection. The effects of the network show best at the receiver.
type connFigure struct {
	group, name string
	arrives     bool // take it from the capture nearer to the receiver
	value       func(*measure.Connection) string
}

// of returns the figure of a connection that may have been captured at two places.
func (k connFigure) of(p pair) string {
	if k.arrives && p.far != nil {
		return k.value(p.far)
	}
	return k.value(p.near)
}

// connFigures returns the figures of a connection in reading order.
func connFigures() []connFigure {
	counted := func(of func(*measure.Connection) measure.Count) func(*measure.Connection) string {
		return func(c *measure.Connection) string { return countedText(of(c)) }
	}
	return []connFigure{
		{"goodput", "", true, goodputText},
		{"goodput", "payload", true, func(c *measure.Connection) string { return unit.Size(c.Data.New) }},
		{"RTT", "handshake", false, func(c *measure.Connection) string { return delayText(c.OpenNs) }},
		{"RTT", "median", false, func(c *measure.Connection) string {
			return rttPart(c.RTT, func(d *measure.Delay) int64 { return d.P50 })
		}},
		{"RTT", "max", false, func(c *measure.Connection) string {
			return rttPart(c.RTT, func(d *measure.Delay) int64 { return d.Max })
		}},
		{"retransmitted", "", false, againText},
		{"retransmitted", "fast", false, counted(func(c *measure.Connection) measure.Count { return c.Data.Fast })},
		{"retransmitted", "at timeouts", false, counted(func(c *measure.Connection) measure.Count { return c.Data.Timeout })},
		{"retransmitted", "after timeouts", false, counted(func(c *measure.Connection) measure.Count { return c.Data.Wake })},
		{"retransmitted", "as probes", false, counted(func(c *measure.Connection) measure.Count { return c.Data.Tail })},
		{"retransmitted", "spuriously", false, counted(func(c *measure.Connection) measure.Count { return c.Data.Spurious })},
		{"out of order", "", true, counted(func(c *measure.Connection) measure.Count { return c.Data.Late })},
		{"out of order", "by up to", true, lateText},
		{"sequence gaps", "", true, func(c *measure.Connection) string { return timesOrNone(c.Data.Gaps) }},
		{"window", "mean", false, windowMean},
		{"window", "full for", false, fullText},
		{"in flight", "mean", false, func(c *measure.Connection) string {
			return spreadPart(c.Flight, func(s *measure.Spread) float64 { return s.Mean })
		}},
		{"in flight", "max", false, func(c *measure.Connection) string {
			return spreadPart(c.Flight, func(s *measure.Spread) float64 { return s.Max })
		}},
		{"zero window", "", false, func(c *measure.Connection) string { return timesOrNone(c.Acks.Zero) }},
		{"zero window", "for", false, closedFor},
		{"zero window", "probes", false, counted(func(c *measure.Connection) measure.Count { return c.Data.Probes })},
		{"super-packets", "", false, counted(func(c *measure.Connection) measure.Count { return c.Data.Super })},
		{"super-packets", "largest", false, superSize},
		{"largest packet", "", false, func(c *measure.Connection) string { return sizeOrNone(c.MaxPacket) }},
		{"CE marks", "", true, counted(func(c *measure.Connection) measure.Count { return c.Data.CE })},
		{"not captured", "", false, counted(func(c *measure.Connection) measure.Count { return c.Data.Unseen })},
		{"ended by", "", false, resetText},
	}
}

// noValue fills a cell without a value.
const noValue = "-"

func goodputText(c *measure.Connection) string {
	if c.GoodputBps == nil {
		return noValue
	}
	return unit.Rate(*c.GoodputBps)
}

func delayText(ns *int64) string { return doc.Known("%s", ns, doc.ShortTime) }

func rttPart(d *measure.Delay, part func(*measure.Delay) int64) string {
	if d == nil || d.Samples <= 0 {
		return ""
	}
	return doc.ShortTime(part(d))
}

// againText returns "312 of 84 032" segments; also for none, which is a result.
func againText(c *measure.Connection) string {
	return unit.Count(c.Data.Again.Segments()) + " of " + unit.Count(c.Data.Segments)
}

func countedText(c measure.Count) string {
	if c.N <= 0 {
		return ""
	}
	return unit.Count(c.Segments())
}

func lateText(c *measure.Connection) string {
	if c.Data.Late.N <= 0 || c.Data.LateMost <= 0 {
		return ""
	}
	return unit.Plural(c.Data.LateMost, "packet")
}

func windowMean(c *measure.Connection) string {
	s := spreadPart(c.Window, func(s *measure.Spread) float64 { return s.Mean })
	if s != "" && c.Unscaled {
		s += " (scale not known)"
	}
	return s
}

func spreadPart(s *measure.Spread, part func(*measure.Spread) float64) string {
	if s == nil {
		return ""
	}
	return result.ValueText(part(s), "bytes")
}

func fullText(c *measure.Connection) string {
	if c.WindowFull == nil {
		return ""
	}
	return result.ValueText(*c.WindowFull, "pct") + " of time"
}

func timesOrNone(c measure.Count) string {
	if c.N <= 0 {
		return ""
	}
	return result.TimesText(c.N)
}

func closedFor(c *measure.Connection) string {
	if c.Acks.ZeroNs <= 0 {
		return ""
	}
	return unit.Duration(c.Acks.ZeroNs)
}

func superSize(c *measure.Connection) string {
	if c.Data.Super.N <= 0 {
		return ""
	}
	return sizeOrNone(c.Data.MaxPacket)
}

func sizeOrNone(bytes int) string {
	if bytes <= 0 {
		return ""
	}
	return unit.Size(int64(bytes))
}

// resetText words the end of a connection by a reset.
func resetText(c *measure.Connection) string {
	if !strings.HasPrefix(c.EndedBy, "rst") {
		return ""
	}
	return doc.Clean(c.EndedBy)
}
