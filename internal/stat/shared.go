package stat

import (
	"fmt"

	"thru/internal/measure"
	"thru/internal/unit"
)

// LinkShare is how full the fullest link is that a flow takes, in percent of
// its ceiling, by all the flows of its group that take it too: that of its
// sender's host or of its receiver's, where their speed is the ceiling's or it
// was stated, and the stated one for all flows together. A share above the
// ceiling is of several links and says nothing, other than the flow's own.
// known is false where the rate of its link is not.
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

// speedAt is the speed of the interface by which a host reaches the other end
// of a flow, in bit/s; 0 where it is not known.
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

// groupShare is the least that a flow's links are filled in a group: 95 percent
// say that each of its flows takes a link that is full. Without a known link
// rate of each of them, or with a flow that was not to fill it, it is not known.
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

// planVerdict judges the steps of a plan by the ceilings of their links. Of
// steps that differ only in what the plan varies the best one counts: a path
// that 8 streams fill is full. Of different flows the worst decides. It is nil
// where no step could be judged, or a cell failed.
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
		key := g.Rung + "\n" + fmt.Sprint(unique(mapped(cells, pairName)))
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

// groupVerdict judges one step; nil where the rates of its links are not known.
func groupVerdict(d *measure.Document, g *measure.Group, cells []*measure.Cell) *measure.Verdict {
	pct, least := groupShare(d, cells)
	if least == nil {
		return nil
	}
	for _, c := range bulkOf(cells) { // what one flow alone shows to be wrong
		if one := verdictOf(*c); AboveCeiling(c) || c.Goodput == nil || c.Datagrams != nil && c.Datagrams.LossPct > MostLostPct || len(cells) == 1 {
			return &one
		}
	}
	v := settle(measure.Verdict{
		Pass: pct >= PassPct, Required: PassPct, Share: pct,
		Reason: fmt.Sprintf("%s: the links that %s takes are filled to %.2f%% of the ceiling of %s, %s is required",
			g.Label, pairName(least), pct, unit.Rate(least.Ceiling.Bps), unit.Percent(PassPct)),
	}, cells...)
	return &v
}
