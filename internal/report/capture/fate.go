package capture

import (
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// Answer words the outcome of connections without any figure; "" without a capture file.
func Answer(d *measure.Document) string {
	for i := range d.Cells {
		if c := &d.Cells[i]; result.OfFile(c) {
			near, _ := PlacesOf(result.CapturedFlow(c))
			return fateOf(near)
		}
	}
	return ""
}

// fateOf returns "no data passed 10.0.0.1 -> 10.0.0.2: SYN sent 6 times, never answered".
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
		said = "no rate measurable "
	}
	said += doc.CleanUpTo(hostOf(first.From), result.LongestPlace) + " -> " + doc.CleanUpTo(hostOf(first.To), result.LongestPlace) + ": "
	if len(c.Conns) == 1 {
		return said + fates[0] + untilItsEnd(c, first)
	}
	for i, s := range fates {
		fates[i] = fmt.Sprintf("%s: %s", unit.Plural(times[s], "connection"), s)
	}
	return said + strings.Join(fates[:min(len(fates), maxKinds)], "; ")
}

// patience is how long after the last packet an answer may still arrive.
const patience = 1e9 // ns

// untilItsEnd words that a capture ends before an answer could have arrived.
func untilItsEnd(c *measure.Capture, k *measure.Connection) string {
	if isUnanswered(k) && c.SpanNs-k.StartNs-k.SpanNs < patience {
		return " before the capture ends"
	}
	return ""
}

// isUnanswered reports whether only the SYN of a connection is there.
func isUnanswered(c *measure.Connection) bool {
	return c.SYN != nil && c.SYNACK == nil && c.Data.New <= 0 && resetText(c) == "" && !hasPassed(c)
}

// hasPassed reports whether payload of a connection was acknowledged, or came from its other end.
func hasPassed(c *measure.Connection) bool {
	if c.Acks.New > 0 {
		return true
	}
	acked := c.Timeline == nil // without a time line assume that it was acknowledged
	if c.Timeline != nil {
		acked = mostOf(c.Timeline.Acked) > max(0, mostOf(c.Timeline.Sent)-float64(c.Data.New)) // the rest may be from before the capture
	}
	return c.Data.New > 0 && c.Acks.Packets > 0 && (c.RTT != nil || acked)
}

// fate words the outcome of one connection; figures adds its figures.
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
		return "too little data" + with(": %s in %s", unit.Size(max(0, c.Data.New)), unit.Duration(max(0, c.SpanNs))) + reset
	case c.Data.New > 0 && c.Acks.Packets == 0:
		return "data was sent" + with(", %s%s", unit.Size(c.Data.New), againWords(c)) + ", without any reply"
	case c.Data.New > 0:
		return "data was sent" + with(", %s%s", unit.Size(c.Data.New), againWords(c)) + ", never acknowledged" + reset
	case c.SYN != nil && c.SYNACK == nil && reset != "":
		return "SYN sent" + with(" %s", sentTimes(c.SYN)) + ", refused" + with(" by RST%s", strings.TrimPrefix(resetText(c), "rst"))
	case isUnanswered(c):
		return "SYN sent" + with(" %s", sentTimes(c.SYN)) + ", never answered"
	case c.SYNACK != nil:
		return "opened, without data" + reset
	}
	return "the captured packets have no payload" + reset
}

func sentTimes(o *measure.Opening) string { return result.TimesText(1 + max(0, min(o.Again.N, 1<<40))) }

func againWords(c *measure.Connection) string {
	if c.Data.Again.N <= 0 {
		return ""
	}
	return " and " + result.TimesText(c.Data.Again.N) + " again"
}

// hostOf returns HOST:PORT without the port.
func hostOf(end string) string {
	if i := strings.LastIndexByte(end, ':'); i > 0 {
		return strings.Trim(end[:i], "[]")
	}
	return end
}
