package judge

import (
	"time"

	"thru/internal/watch/record"
)

// budgetDays is the length of the window of an error budget.
const budgetDays = 30

// goal counts how an objective of a pair is kept.
type goal struct {
	record.Goal
	Hour  int64   `json:"hour"`  // of the turns below, since 1970
	Turns count   `json:"turns"` // of the hour or day under way
	Day   count   `json:"today"` // finished turns, hours, days or nanoseconds
	Past  []count `json:"past"`  // earlier days of the window, oldest first
}

// count is how many of some kept an objective.
type count struct {
	Kept int64 `json:"kept"`
	Of   int64 `json:"of"`
}

func (c *count) add(kept bool, n int64) {
	c.Of += n
	if kept {
		c.Kept += n
	}
}

// keeps reports whether a turn keeps the objective; known is false if it does not measure it, as no turn measures an availability. Nothing
// keeps an objective while it is down.
func (g *goal) keeps(s record.Sample) (kept, known bool) {
	if s.State == record.Down {
		return false, g.Metric != record.Availability && g.Metric.Layer() == s.Layer
	}
	v, known := s.Values[g.Metric]
	return v == g.Limit || v > g.Limit == g.AtLeast, known
}

// turn counts a turn.
func (g *goal) turn(kept bool, at int64) {
	switch g.Per {
	case record.PerTurn:
		g.Day.add(kept, 1)
		return
	case record.PerHour:
		if hour := at / int64(time.Hour); hour != g.Hour {
			g.endUnit()
			g.Hour = hour
		}
	}
	g.Turns.add(kept, 1)
}

// endUnit ends an hour or a day. It kept the objective if most of its turns did, so if their median did.
func (g *goal) endUnit() {
	g.Day, g.Turns = g.today(), count{}
}

// endDay ends a day.
func (g *goal) endDay() {
	g.endUnit()
	g.Past = append(g.Past, g.Day)
	g.Past = g.Past[max(0, len(g.Past)-(budgetDays-1)):]
	g.Day = count{}
}

// today returns the count of the day, with the unit under way as it stands.
func (g *goal) today() count {
	c := g.Day
	if g.Turns.Of > 0 {
		c.add(2*g.Turns.Kept >= g.Turns.Of, 1)
	}
	return c
}

// budget returns the objective over its window of 30 days, and how fast the budget is used now.
func (g *goal) budget(p record.Pair) record.Goal {
	all, recent := g.today(), g.today()
	days := 1
	for i, c := range g.Past {
		all.Kept, all.Of = all.Kept+c.Kept, all.Of+c.Of
		if c.Of > 0 {
			days++
		}
		if i == len(g.Past)-1 {
			recent.Kept, recent.Of = recent.Kept+c.Kept, recent.Of+c.Of
		}
	}
	found := g.report(p, all, float64(budgetDays)/float64(min(days, budgetDays)))
	if may := (1 - g.SharePct/100) * float64(recent.Of); may > 0 {
		found.BurnRate = float64(recent.Of-recent.Kept) / may
	}
	return found
}

// report returns the objective with a count.
func (g *goal) report(p record.Pair, c count, whole float64) record.Goal {
	found := g.Goal
	found.Pair = p
	if g.Metric == record.Availability {
		c = count{c.Kept / int64(time.Millisecond), c.Of / int64(time.Millisecond)}
	}
	found.Kept, found.Of = int(c.Kept), int(c.Of)
	found.UsedPct = found.Used(whole)
	return found
}
