package judge

import (
	"math"
	"slices"

	"thru/internal/watch/record"
)

// problem is one thing that is, or was, wrong with a pair: an outage, a change of a metric, an objective. It begins after it is confirmed
// and ends after the level is back, so a value near a limit does not come and go.
type problem struct {
	Kind      record.Kind    `json:"kind"`
	Layer     record.Layer   `json:"layer,omitempty"` // that shows it; empty for an outage
	Key       string         `json:"key,omitempty"`   // a metric or an objective
	Active    bool           `json:"active"`
	Worth     bool           `json:"worth"` // an alarm
	Since     int64          `json:"since_ns"`
	Ended     int64          `json:"ended_ns"`
	Bad       int            `json:"bad"` // turns in a row
	Good      int            `json:"good"`
	Spent     bool           `json:"spent"` // the error budget, and more is used: the problem stays until that has ended
	LastBad   int64          `json:"last_bad_ns"`
	Comes     []int64        `json:"comes_ns,omitempty"` // the last begins
	Flapping  bool           `json:"flapping"`
	Waits     int64          `json:"waits_ns"` // for an alarm, since then
	Alarm     string         `json:"alarm,omitempty"`
	Change    *record.Change `json:"change,omitempty"`
	Outage    *record.Outage `json:"outage,omitempty"`
	Objective *record.Goal   `json:"objective,omitempty"`
}

// bad counts a turn that shows the problem. It reports whether the problem begins.
func (q *problem) bad(at int64, confirm int) bool {
	q.Good, q.LastBad = 0, at
	if q.Bad++; q.Bad == 1 && !q.Active {
		q.Since = at
	}
	if q.Active || q.Bad < confirm {
		return false
	}
	q.Active = true
	return true
}

// good counts a turn that shows the level of before.
func (q *problem) good(at int64) {
	q.Bad = 0
	q.Good++
	over := q.back() && !q.Spent
	if q.Flapping {
		over = at-q.LastBad >= int64(flapTime)
	}
	if q.Active && over {
		q.end(at)
	}
}

// back reports whether enough turns in a row show the level of before.
func (q *problem) back() bool { return q.Good >= clearAfter }

// end ends the problem.
func (q *problem) end(at int64) {
	q.Active, q.Flapping, q.Bad, q.Ended, q.Waits = false, false, 0, at, 0
}

// come notes that the problem began. One that comes too often is flapping, and stays until it is calm.
func (q *problem) come(at int64) {
	q.Comes = slices.DeleteFunc(q.Comes, func(t int64) bool { return t <= at-int64(flapTime) })
	q.Comes = append(q.Comes, at)
	q.Good, q.LastBad = 0, at
	if len(q.Comes) < flapCount {
		return
	}
	if !q.Active {
		q.Active, q.Worth, q.Since = true, true, q.Comes[0]
	}
	q.Flapping = true
	q.Comes = q.Comes[len(q.Comes)-flapCount:]
}

// spent reports whether nothing of the problem matters any more.
func (q *problem) spent(now int64) bool {
	recent := len(q.Comes) > 0 && q.Comes[len(q.Comes)-1] > now-int64(flapTime)
	return !q.Active && q.Alarm == "" && q.Bad == 0 && !recent
}

// Changed takes a change point that was found. One for the worse makes the pair degraded until another says that the level is back: what was
// found in the means of an hour does not show in single turns.
func (j *Judge) Changed(c record.Change) []record.Event {
	p := j.pairs[c.Pair]
	if p == nil {
		return nil
	}
	q := p.known(record.KindChange, string(c.Metric))
	active, at := q != nil && q.Active, c.Found.UnixNano()
	switch {
	case q != nil && !c.Found.After(q.Change.Found): // it is known
	case !c.Over.IsZero():
		if active && !c.Over.After(q.Change.Latest) {
			q.end(at)
		}
	case c.Direction == record.Worse && active: // it became worse still
		q.Change = joined(*q.Change, c)
		j.news(q.Alarm)
	case c.Direction == record.Worse:
		q = p.problem(record.KindChange, c.Metric.Layer(), string(c.Metric))
		q.Change, q.Worth = &c, true
		q.bad(at, 1)
		q.Since = c.Since.UnixNano()
	case c.Direction == record.Better && active && math.Abs(c.After-q.Change.Before) < math.Abs(c.After-q.Change.After):
		q.end(at)
	}
	return j.flush()
}

// joined returns two changes that followed each other as one.
func joined(first, c record.Change) *record.Change {
	percent := func(of float64) float64 {
		if of == 0 || first.Before == 0 {
			return 0
		}
		return 100 * (c.Before*(1+of/100)/first.Before - 1)
	}
	c.EffectPct, c.LowPct, c.HighPct = percent(c.EffectPct), percent(c.LowPct), percent(c.HighPct)
	c.Before, c.Since, c.Earliest, c.Latest = first.Before, first.Since, first.Earliest, first.Latest
	return &c
}
