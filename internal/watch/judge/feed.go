package judge

import (
	"math"

	"thru/internal/watch/record"
)

// weigh counts the values of a turn, for the day and for objectives. A turn belongs to the day of the cursor.
func (j *Judge) weigh(p *pair, s record.Sample, at int64) {
	p.Day.Turns++
	if sent := s.Values[record.Sent]; sent > 0 {
		p.Day.SentPackets += int64(sent)
		p.Day.LostPackets += int64(math.Round(sent * s.Values[record.LossRatio]))
	}
	for _, m := range []record.Metric{record.Goodput, record.Capacity, record.RTTMedian, record.RTT99, record.LossRatio} {
		if v, ok := s.Values[m]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			p.Day.Add(m, v)
		}
	}
	for _, g := range p.Goals {
		if kept, known := g.keeps(s); known {
			g.turn(kept, at)
			j.feedGoal(p, g, kept, at)
		}
	}
}

// feedOutage counts a turn of the layer that leads for the outage of a pair.
func (j *Judge) feedOutage(p *pair, fell, maintained bool, at int64) {
	q := p.known(record.KindOutage, "")
	switch {
	case p.Outage != nil && !maintained:
		q = p.problem(record.KindOutage, "", "")
		if q.bad(at, 1) {
			q.Worth, q.Since = true, p.Outage.Begin.UnixNano()
		}
		q.Outage = new(*p.Outage)
	case q == nil || p.Outage != nil || fell: // a short outage is no calm
	default:
		q.good(at)
	}
}

// feedGoal counts a turn for an objective. It is worth an alarm if its error budget is used, or will be soon.
func (j *Judge) feedGoal(p *pair, g *goal, kept bool, at int64) {
	q := p.known(record.KindObjective, g.Objective)
	if kept && q == nil {
		return
	}
	q = p.problem(record.KindObjective, g.Metric.Layer(), g.Objective)
	found, needed := g.budget(p.Pair), confirm
	q.Objective, q.Spent = &found, found.UsedPct >= 100 && found.BurnRate >= 1
	if kept {
		q.good(at)
		return
	}
	if q.Spent && len(g.Past) > 0 { // in the first day a few turns are no budget
		needed = 1
	}
	if q.bad(at, needed) {
		q.come(at)
	}
	q.Worth = q.Active && (q.Flapping || found.UsedPct >= 100 || found.BurnRate >= burning)
}
