package watch

import (
	"slices"
	"time"

	"thru/internal/plan"
	"thru/internal/plan/planfile"
	"thru/internal/unit"
	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// OfPlan returns what a plan asks of a watch, and how its samples are judged. Each pair that the plan measures in any of its steps is watched. The
// zone is that of hours and midnights.
func OfPlan(p plan.Plan, w planfile.Watch, zone *time.Location) (schedule.Wish, judge.Config) {
	labels := map[string]map[string]string{}
	for _, e := range p.EndPoints {
		labels[e.Name] = e.Labels
	}
	segments := func(x record.Pair) []string {
		crossed := unit.Filtered(w.Segments, func(s planfile.Segment) bool { return s.Crossed(labels[x.From], labels[x.To]) })
		return unit.Mapped(crossed, func(s planfile.Segment) string { return s.Name })
	}
	wish := schedule.Wish{
		ProbeEvery: w.Probes, TCPPerDay: w.TCP, TCPTime: w.Time + ramp, BudgetBytes: w.Budget,
		Hours: unit.Mapped(w.Hours, func(h planfile.DayHours) schedule.Hours { return utc(h, zone) }),
	}
	for _, step := range p.Steps {
		for _, s := range step.Specs {
			x := record.Pair{From: s.From, To: s.To}
			if slices.ContainsFunc(wish.Paths, func(p schedule.Path) bool { return p.Pair == x }) {
				continue
			}
			uses := append(slices.Compact([]string{x.From, x.To}), segments(x)...)
			wish.Paths = append(wish.Paths, schedule.Path{Pair: x, RateBps: p.Link.RateBps, Uses: uses})
		}
	}
	return wish, judge.Config{
		Location: zone, Segments: segments, Windows: w.Maintenance,
		Goals: func(x record.Pair) []record.Goal {
			return unit.Mapped(w.Objectives, func(g record.Goal) record.Goal { g.Pair = x; return g })
		},
	}
}

// ramp is the time before the measured time of a TCP turn.
const ramp = time.Second

// utc returns a part of the local day in UTC, by the zone's offset today.
func utc(h planfile.DayHours, zone *time.Location) schedule.Hours {
	_, offset := time.Now().In(zone).Zone()
	turn := func(d time.Duration) time.Duration {
		return (d - time.Duration(offset)*time.Second + 48*time.Hour) % (24 * time.Hour)
	}
	return schedule.Hours{From: turn(h.From), To: turn(h.To)}
}

// paced returns the time between two turns of each layer, which the judge takes for silence when it has passed.
func paced(tasks []schedule.Task, probes time.Duration) map[record.Layer]time.Duration {
	every := map[record.Layer]time.Duration{}
	if probes > 0 {
		every[record.Probe] = time.Minute
	}
	for _, t := range tasks {
		between := 24 * time.Hour / time.Duration(t.PerDay)
		if len(t.Hours) > 0 {
			between = 24 * time.Hour // a night without turns is no silence
		}
		every[t.Layer] = max(every[t.Layer], between)
	}
	return every
}
