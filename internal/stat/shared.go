package stat

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// LinkShare returns how full the fullest link of a flow is, in percent of its ceiling, by all the flows of its
// group that use it: the link of its sender's or its receiver's host, if their speed is the ceiling's or was
// stated, and the stated link for all flows together. A share of several flows above the ceiling means several
// links and does not count. known is false if the rate of its link is not known.
func LinkShare(d *measure.Document, c *measure.Cell) (pct float64, known bool) {
	if c.Ceiling == nil || !(c.Ceiling.Bps > 0) {
		return 0, false
	}
	pct = c.Ceiling.SharePct
	add := func(bps *float64) {
		if bps == nil {
			return
		}
		if all := 100 * *bps / c.Ceiling.Bps; all <= AboveCeilingPct {
			pct = max(pct, all)
		}
	}
	g := groupOf(d, c.Group)
	if g == nil || g.Cells < 2 {
		return pct, true
	}
	isStated := c.Ceiling.LinkFrom == stated
	if isStated && g.Aggregate != nil {
		add(&g.Aggregate.Value)
	}
	for i := range g.Hosts {
		h := &g.Hosts[i]
		if h.Name != c.From && h.Name != c.To || !isStated && speedAt(d, c, h.Name) != c.Ceiling.LinkBps {
			continue
		}
		if h.Name == c.From {
			add(h.SentBps)
		}
		if h.Name == c.To {
			add(h.ReceivedBps)
		}
	}
	return pct, true
}

// speedAt returns the speed of the interface by which a host reaches the other end of a flow, in bit/s; 0 if it is
// not known.
func speedAt(d *measure.Document, c *measure.Cell, host string) int64 {
	for i := range d.EndPoints {
		if d.EndPoints[i].Name != host {
			continue
		}
		for k := range c.Runs {
			p := pairOf(c, &c.Runs[k])
			for _, e := range p.ends() {
				if e.EndPoint != host || e.Route == nil {
					continue
				}
				if face := d.EndPoints[i].Facts.Interface(e.Route.Interface); face != nil && face.SpeedBps != nil {
					return *face.SpeedBps
				}
			}
		}
	}
	return 0
}

// groupShare returns the lowest utilisation of the flows' fullest links in a group: 95 percent mean that each of
// its flows uses a full link. It is not known if one of the link rates is not known, or a flow was not meant to
// fill its link.
func groupShare(d *measure.Document, cells []*measure.Cell) (pct float64, least *measure.Cell) {
	for _, c := range bulkOf(cells) {
		share, known := LinkShare(d, c)
		if !known || !judgeable(*c) || bounded(*c) {
			return 0, nil
		}
		if least == nil || share < pct {
			pct, least = share, c
		}
	}
	return pct, least
}

// planVerdict judges the steps of a plan by the ceilings of their links. Of steps that differ only in what the
// plan varies the best one counts: a path that 8 streams fill is full. Of different flows the worst decides. It is
// nil if no step could be judged, or a cell failed.
func planVerdict(d *measure.Document) *measure.Verdict {
	var keys []string
	best, all := map[string]*measure.Verdict{}, byGroup(d)
	for i := range d.Groups {
		g := &d.Groups[i]
		cells := all[g.Group]
		for _, c := range cells {
			if c.Error != nil {
				return nil
			}
		}
		v := groupVerdict(d, g, cells)
		if v == nil {
			continue
		}
		key := g.Rung + "\n" + fmt.Sprint(unit.Unique(unit.Mapped(cells, pairName)))
		if best[key] == nil {
			keys = append(keys, key)
		}
		if best[key] == nil || worse(*best[key], *v) {
			best[key] = v
		}
	}
	var verdict *measure.Verdict
	for _, k := range keys {
		if verdict == nil || worse(*best[k], *verdict) {
			verdict = best[k]
		}
	}
	return verdict
}

// groupVerdict judges one step; nil if the rates of its links are not known.
func groupVerdict(d *measure.Document, g *measure.Group, cells []*measure.Cell) *measure.Verdict {
	pct, least := groupShare(d, cells)
	if least == nil {
		return nil
	}
	for _, c := range bulkOf(cells) { // errors that a single flow shows
		if one := verdictOf(*c); AboveCeiling(c) || c.Goodput == nil || c.Datagrams != nil && c.Datagrams.LossPct > MostLostPct || len(cells) == 1 {
			return &one
		}
	}
	v := settle(measure.Verdict{
		Pass: pct >= PassPct, Required: PassPct, Share: pct,
		Reason: fmt.Sprintf("%s: the links of %s carry %.2f%% of the ceiling of %s; %s is required",
			g.Label, pairName(least), pct, unit.Rate(least.Ceiling.Bps), unit.Percent(PassPct)),
	}, cells...)
	return &v
}
