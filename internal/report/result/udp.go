package result

import (
	"fmt"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// datagramRows adds the figures that only UDP has.
func datagramRows(c *measure.Cell, out *doc.Rows) {
	d := c.Datagrams
	if d == nil {
		return
	}
	out.AddBrief("loss", lossText(d))
	placeRows(c.LossPlaces[:min(len(c.LossPlaces), maxPlaces)], out)
	out.AddBrief("datagrams", sizeText(d))
	out.Add("jitter", jitterText(d))
	out.Add("order", orderText(d))
}

// maxPlaces limits the places that are printed: the kernel has no more.
const maxPlaces = 10

// lossPct formats the loss; it is 0.00% only if nothing was lost.
func lossPct(d *measure.DatagramFigures) string {
	if d.Lost == 0 && d.LossPct == 0 {
		return "0.00%"
	}
	return unit.Percent(d.LossPct)
}

func lossText(d *measure.DatagramFigures) string {
	return fmt.Sprintf("%s: %s of %s datagrams, over the life of the streams", lossPct(d), unit.Count(d.Lost), unit.Count(d.Sent))
}

// worthPct is the share of the loss from which a place's fix is printed.
const worthPct = 5

// placeRows adds where datagrams were lost, and the fix for the worst place.
func placeRows(places []measure.LossPlace, out *doc.Rows) {
	all := 0.0
	for _, p := range places {
		all += float64(p.Packets)
	}
	name := "lost"
	for _, p := range places {
		out.Add(name, placeText(p))
		name = "and"
	}
	name = "fix"
	for _, p := range places {
		if 100*float64(p.Packets) >= worthPct*all && p.Fix != "" {
			out.Add(name, doc.Clean(p.Fix))
			name = "and"
		}
	}
}

// placeText returns "6 900 at the receiver's socket buffer of peer: COUNTER".
func placeText(p measure.LossPlace) string {
	s := unit.Count(p.Packets) + " " + doc.Clean(stat.PlaceText(p.Place))
	if p.EndPoint != "" {
		s += " of " + doc.Clean(p.EndPoint)
	}
	if p.Place == measure.LossPath {
		return s + ": not in any counter of the hosts"
	}
	return s + ": " + doc.Clean(p.Counter)
}

func sizeText(d *measure.DatagramFigures) string {
	size, fragments := "", ""
	if d.Bytes > 0 {
		size = unit.Size(d.Bytes) + " each"
	}
	if d.Fragments > 1 {
		fragments = fmt.Sprintf("in %d fragments", d.Fragments)
	}
	return doc.Join(size, fragments, doc.Known("%s/s sent", d.SentPps, stat.ThreeDigits), stat.ThreeDigits(d.ReceivedPps)+"/s received")
}

func jitterText(d *measure.DatagramFigures) string {
	return doc.Join(doc.Known("%s", d.JitterNs, doc.ShortTime), doc.Known("PDV mean %s", d.DelayMeanNs, doc.ShortTime),
		doc.Known("p99 %s", d.DelayP99Ns, doc.ShortTime), doc.Known("max %s", d.DelayMaxNs, doc.ShortTime))
}

// orderText is not empty if datagrams were reordered or duplicated.
func orderText(d *measure.DatagramFigures) string {
	late, twice := "", ""
	if d.Reordered > 0 {
		late = fmt.Sprintf("%s reordered, by up to %s positions", unit.Count(d.Reordered), unit.Count(d.ReorderMost))
	}
	if d.Duplicates > 0 {
		twice = unit.Count(d.Duplicates) + " duplicated"
	}
	return doc.Join(late, twice)
}

func verifiedText(v *measure.Checked) string {
	switch {
	case v == nil:
		return ""
	case v.WrongBytes == 0:
		return unit.Size(v.Bytes) + " compared, all intact"
	}
	return fmt.Sprintf("%s of %s bytes differ from what was sent", unit.Count(v.WrongBytes), unit.Count(v.Bytes))
}

// searchRows adds the outcome of a search for the capacity.
func searchRows(c *measure.Cell, out *doc.Rows) {
	s := c.Search
	if s == nil {
		return
	}
	out.Add("capacity", doc.Join(doc.Known("%s of payload in the best second (RFC 9097)", s.CapacityBps, unit.Rate),
		doc.Known("%s with IP headers", s.IPCapacityBps, unit.Rate), doc.Known("%s loss in it", s.LossPct, unit.Percent)))
	why := doc.Clean(s.Why)
	switch {
	case s.LosslessBps != nil:
		out.Add("without loss", doc.Join(unit.Rate(*s.LosslessBps)+" (RFC 2544)", why))
	case len(s.Trials) > 0:
		out.Add("without loss", doc.Join("not found", why))
	case s.CapacityBps == nil:
		out.Add("capacity", doc.Join("not found", why))
	}
	out.Add("trials", trialsText(s.Trials))
}

// trialsText returns "956 Mb/s lost 812; 119 Mb/s clean; ...".
func trialsText(trials []measure.Trial) string {
	var words []string
	for _, t := range trials[:min(len(trials), stat.MaxTrials)] {
		s := unit.Rate(t.AskedBps)
		switch {
		case t.Pass:
			s += " clean"
		case t.Lost > 0:
			s += " lost " + unit.Count(t.Lost)
		default:
			s += " not reached by the sender"
		}
		words = append(words, s)
	}
	return strings.Join(words, "; ")
}
