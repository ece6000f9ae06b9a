// Package result words the flows of a result for all parts of a report: the name of a flow, its figures as
// rows, what limits it, what its ends measured in each second, and texts about many flows at once.
package result

import (
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// EndName returns the role of an end: "sender" or "receiver".
func EndName(e *measure.Evidence) string {
	if e.Sends {
		return "sender"
	}
	return "receiver"
}

// PairName returns "a -> b", or "a to itself".
func PairName(from, to string) string {
	if from == to {
		return doc.Clean(from) + " to itself"
	}
	return doc.Clean(from) + " -> " + doc.Clean(to)
}

// OtherAxes returns the axes that a plan varied, except those that What contains.
func OtherAxes(c *measure.Cell) string {
	var words []string
	for _, a := range Conditions(c.Axes) {
		if a.Name != "streams" && a.Name != "window" {
			words = append(words, AxisWords(a))
		}
	}
	return strings.Join(words, ", ")
}

// Asks reports whether a cell's traffic is requests and responses.
func Asks(c *measure.Cell) bool { return c.Spec.Traffic != measure.Bulk }

// IsUDP reports whether a cell is bulk data in datagrams.
func IsUDP(c *measure.Cell) bool { return c.Protocol == measure.UDP && !Asks(c) }

// IsGauge reports whether a cell's requests measured the latency of bulk data (--latency), and are no result
// of their own.
func IsGauge(d *measure.Document, c *measure.Cell) bool {
	return c.Spec.LatencyProbe &&
		slices.ContainsFunc(d.Cells, func(x measure.Cell) bool { return !Asks(&x) })
}

// PathName returns the name of a cell's direction: "local -> peer".
func PathName(c *measure.Cell) string {
	others := c.AtOnce - 1
	if c.UnderLoad != nil {
		others-- // latency probes are no other direction
	}
	if c.From == c.To && others > 0 && c.Label != "" && !Asks(c) {
		return "localhost " + doc.Clean(c.Label)
	}
	if c.From == c.To {
		return "localhost"
	}
	return doc.Clean(c.From + " -> " + c.To)
}

// What returns the traffic of a cell: "TCP, 4 streams, 800 KiB window".
func What(c *measure.Cell) string {
	label, rate, window := "", "", ""
	if c.Spec.LatencyProbe {
		label = doc.Clean(c.Label)
	}
	if c.Spec.Rate > 0 {
		rate = unit.Rate(float64(c.Spec.Rate)) + " requested"
		if c.Streams > 1 { // -b is the rate of each stream
			rate += " in total"
		}
	}
	if c.Window != (measure.Pair{}) {
		window = WindowName(c.Window) + " window"
	}
	class := ""
	if c.Spec.DSCP > 0 {
		class = ClassName(c.Spec.DSCP)
	}
	return doc.Join(label, protocolName(c)+trafficName(c), unit.Plural(c.Streams, "stream"), rate, window, class)
}

func trafficName(c *measure.Cell) string {
	switch {
	case c.Spec.Traffic == measure.RR:
		return " request and response"
	case c.Spec.Traffic == measure.CRR:
		return " connect, request, response"
	case Asks(c):
		return " " + doc.Clean(c.Spec.Traffic)
	case c.Spec.Search:
		return " search"
	}
	return ""
}

func protocolName(c *measure.Cell) string { return strings.ToUpper(doc.Clean(c.Protocol)) }

// WindowName returns the window asked for: "default", "800 KiB", or "1 MiB/4 MiB" for sender and receiver.
func WindowName(w measure.Pair) string {
	one := func(bytes int64) string {
		if bytes == 0 {
			return "default"
		}
		return unit.Size(bytes)
	}
	if w.Send == w.Recv {
		return one(w.Send)
	}
	return one(w.Send) + "/" + one(w.Recv)
}
