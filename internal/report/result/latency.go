package result

import (
	"fmt"
	"math"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// addedText returns a difference with its sign: "+3.9 ms".
func addedText(ns int64) string {
	if ns < 0 {
		return doc.ShortTime(ns)
	}
	return "+" + doc.ShortTime(ns)
}

// requestRows adds the figures of requests and responses.
func requestRows(c *measure.Cell, out *doc.Rows) {
	if !Asks(c) {
		return
	}
	if n := c.Length; max(n.Send, n.Recv) > 1 {
		out.Add("messages", unit.Size(max(n.Send, 1))+" request, "+unit.Size(max(n.Recv, 1))+" response")
	}
	if c.Spec.PerSecond > 0 {
		out.Add("requested rate", stat.RequestRate(c.Spec.Traffic, c.Spec.PerSecond*float64(max(c.Streams, 1)))+"; latency counts from the moment at which each request was due")
	}
	l := c.Latency
	if l == nil {
		return
	}
	out.Add("latency", fmt.Sprintf("min %s, mean %s, max %s, of %s requests", doc.ShortTime(l.Min), doc.ShortTime(l.Mean), doc.ShortTime(l.Max), unit.Count(l.Count)))
	out.Add("percentiles", PercentilesText(l))
	if l.Errors > 0 {
		out.Add("no response", unit.Count(l.Errors))
	}
}

// PercentilesText returns "p50 4.8 µs, p90 5.2 µs, p99 6.1 µs, p99.9 12 µs, p99.99 48 µs".
func PercentilesText(l *measure.Latency) string {
	var words []string
	for _, p := range Percentiles(l) {
		words = append(words, "p"+strings.TrimSuffix(p.name, "%")+" "+doc.ShortTime(p.NS))
	}
	return strings.Join(words, ", ")
}

type percentile struct {
	name string
	NS   int64
}

// Percentiles returns the percentiles that the number of requests supports: 100 requests have no 99.99th
// percentile.
func Percentiles(l *measure.Latency) []percentile {
	all := []percentile{{"50%", l.P50}, {"90%", l.P90}, {"99%", l.P99}, {"99.9%", l.P999}, {"99.99%", l.P9999}}
	for i, least := range []int64{math.MinInt64, 10, 100, 1000, 10_000} {
		if l.Count < least {
			return all[:i]
		}
	}
	return all
}

// underLoadRows compares the latency under load with that of the idle path.
func underLoadRows(u *measure.UnderLoad, out *doc.Rows) {
	if u == nil {
		return
	}
	if u.Idle != nil {
		out.Add("latency, idle", PercentilesText(u.Idle))
	}
	if u.Loaded != nil {
		out.Add("under load", PercentilesText(u.Loaded))
	}
	added := ""
	if u.AddedNs != nil {
		added = doc.Join(addedText(*u.AddedNs)+" at the median", doc.Prefixed("grade ", u.Grade))
	}
	out.Add("queueing delay", doc.Join(added, doc.Known("%s round trips per minute under load", u.Responsiveness, stat.ThreeDigits)))
}
