package capture

import (
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// crossingRows returns what two captures show together: how much of the data that left one capture point
// arrived at the other, by size, and which fields were rewritten in between.
func crossingRows(f *measure.Flow) []doc.Row {
	x := f.Crossing
	if x == nil || len(x.Conns) == 0 {
		return nil
	}
	near, far := PlacesOf(f)
	if far == nil {
		return nil
	}
	var rows doc.Rows
	add := rows.Add
	nearName, farName := SideName(f, near), SideName(f, far)
	data, acks := summed(x, func(c *measure.CrossedConn) *measure.Crossed { return &c.Data }), summed(x, func(c *measure.CrossedConn) *measure.Crossed { return &c.Acks })
	add("crossed", fmt.Sprintf("%s left %s, %s reached %s", unit.Size(data.Sent), nearName, unit.Size(data.Arrived), farName))
	add("lost", lostText(&data, nearName))
	if n := ignored(far); n > 0 {
		add("ignored", unit.Size(n)+" reached "+farName+" repeatedly without an acknowledgement: dropped there after the capture point")
	}
	add("largest", largestText(&data))
	add("order", arrivalText(&data))
	if acks.Lost.N > 0 {
		add("lost, reverse", countedPackets(acks.Lost, farName))
	}
	add("one-way delay", onewayText(data.Delay, acks.Delay, x.BoundNs))
	add("clocks", offsetText(x, nearName, farName))
	for i, c := range changes(x) {
		name := "rewritten"
		if i > 0 {
			name = ""
		}
		rows = append(rows, doc.Row{Name: name, Value: c})
	}
	return rows
}

// ignored returns the bytes that arrived at a capture at the receiver and were dropped after it.
func ignored(c *measure.Capture) (bytes int64) {
	if c.Place != measure.AtReceiver {
		return 0
	}
	for i := range c.Conns {
		bytes += c.Conns[i].Ignored()
	}
	return bytes
}

// onewayText returns "there median 10.1 ms (10 ms to 14.1 ms), back median 24 ms (...), ±21 µs".
func onewayText(there, back *measure.Delay, bound int64) string {
	var parts []string
	for _, k := range []struct {
		name string
		d    *measure.Delay
	}{{"forward", there}, {"reverse", back}} {
		if k.d != nil && k.d.Samples > 0 {
			parts = append(parts, fmt.Sprintf("%s median %s (%s to %s)", k.name, doc.ShortTime(k.d.P50), doc.ShortTime(k.d.Min), doc.ShortTime(k.d.Max)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + ", ±" + doc.ShortTime(bound)
}

// summed adds up one direction of all connections. The delay is that of the first connection.
func summed(x *measure.Crossing, direction func(*measure.CrossedConn) *measure.Crossed) (sum measure.Crossed) {
	for i := range x.Conns {
		c := direction(&x.Conns[i])
		sum.Sent += c.Sent
		sum.Arrived += c.Arrived
		sum.MaxArrived = max(sum.MaxArrived, c.MaxArrived)
		for _, k := range []struct {
			to   *measure.Count
			from measure.Count
		}{{&sum.Lost, c.Lost}, {&sum.SuperSent, c.SuperSent}, {&sum.SuperLost, c.SuperLost}, {&sum.SingleSent, c.SingleSent}, {&sum.SingleLost, c.SingleLost},
			{&sum.FullSent, c.FullSent}, {&sum.FullLost, c.FullLost}, {&sum.SmallSent, c.SmallSent}, {&sum.SmallLost, c.SmallLost}, {&sum.Late, c.Late}, {&sum.Doubled, c.Doubled}} {
			k.to.N += k.from.N
			if len(k.to.Packets) == 0 {
				k.to.Packets = k.from.Packets
			}
		}
		if sum.Delay == nil {
			sum.Delay = c.Delay
		}
	}
	return sum
}

// lostText returns "312 packets, packets 45, 99 of a.pcapng: super-packets 1 024 of 1 024, single segments 3
// of 9 014".
func lostText(c *measure.Crossed, capture string) string {
	if c.Lost.N <= 0 {
		return "nothing"
	}
	classes := ""
	for _, k := range []struct {
		name       string
		lost, sent int64
		ofSingle   bool // a size of single segments
	}{{"super-packets", c.SuperLost.N, c.SuperSent.N, false}, {"single segments", c.SingleLost.N, c.SingleSent.N, false},
		{"full ones", c.FullLost.N, c.FullSent.N, true}, {"small ones", c.SmallLost.N, c.SmallSent.N, true}} {
		if k.sent > 0 && (c.SingleLost.N > 0 || !k.ofSingle) { // sizes matter only if single segments were lost
			classes = doc.Join(classes, fmt.Sprintf("%s %s of %s", k.name, unit.Count(k.lost), unit.Count(k.sent)))
		}
	}
	if part := c.Lost.N - c.SuperLost.N - c.SingleLost.N; part > 0 && c.SuperSent.N+c.SingleSent.N > 0 {
		classes = doc.Join(classes, unit.Count(part)+" partly")
	}
	if classes != "" {
		classes = ": " + classes
	}
	return countedPackets(c.Lost, capture) + classes
}

// countedPackets returns "2 packets (45, 99 of a.pcapng)".
func countedPackets(c measure.Count, capture string) string {
	s := unit.Count(c.N) + " packets"
	if c.N == 1 {
		s = "1 packet"
	}
	if len(c.Packets) > 0 {
		s += " (" + result.NumberList(c.Packets, result.MaxNumbers) + " of " + capture + ")"
	}
	return s
}

// largestText returns the largest size that arrived, if packets were lost.
func largestText(c *measure.Crossed) string {
	if c.MaxArrived <= 0 || c.Lost.N <= 0 {
		return ""
	}
	return "of the arrived segments, " + unit.Size(int64(c.MaxArrived))
}

func arrivalText(c *measure.Crossed) string {
	late, doubled := "", ""
	if c.Late.N > 0 {
		late = unit.Count(c.Late.N) + " out of order"
	}
	if c.Doubled.N > 0 {
		doubled = unit.Count(c.Doubled.N) + " arrived twice"
	}
	return doc.Join(late, doubled)
}

// offsetText returns "b is 3.4 ms behind a (±20 µs)".
func offsetText(x *measure.Crossing, near, far string) string {
	to := " (±" + doc.ShortTime(x.BoundNs) + ")"
	switch {
	case x.OffsetNs > 0:
		return far + " is " + doc.ShortTime(x.OffsetNs) + " ahead of " + near + to
	case x.OffsetNs < 0:
		return far + " is " + doc.ShortTime(-max(x.OffsetNs, -1<<62)) + " behind " + near + to
	}
	return "equal" + to
}

// changes returns the fields that a device rewrote, each once: "syn mss: 1460 -> 1400 (packets 1, 1), in 4
// connections".
func changes(x *measure.Crossing) (all []string) {
	var found []measure.Change
	times := map[int]int{}
	for i := range x.Conns {
		for _, c := range x.Conns[i].Changed {
			n := 0
			for n < len(found) && (found[n].What != c.What || found[n].Left != c.Left || found[n].Arrived != c.Arrived) {
				n++
			}
			if n == maxKinds {
				continue
			}
			if n == len(found) {
				found = append(found, c)
			}
			times[n]++
		}
	}
	for i, c := range found {
		s := doc.CleanUpTo(c.What, result.LongestPlace) + ": " + doc.CleanUpTo(c.Left, result.LongestPlace) + " -> " + doc.CleanUpTo(c.Arrived, result.LongestPlace)
		if len(c.Packets) == 2 {
			s += fmt.Sprintf(" (packets %d, %d)", c.Packets[0], c.Packets[1])
		}
		if times[i] > 1 {
			s += fmt.Sprintf(", in %d connections", times[i])
		}
		all = append(all, s)
	}
	return all
}
