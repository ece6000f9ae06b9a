package watch

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"thru/internal/plan/planfile"
	"thru/internal/unit"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// Changes returns what one plan of a watch has, and another has not, each in a few words. The first of two is the plan before.
func Changes(before, now []schedule.Path, was, is planfile.Watch) (all []string) {
	one := func(what, old, new string) {
		if old != new {
			all = append(all, what+" "+new+", was "+old)
		}
	}
	less := func(sign, what string, these, those []string) {
		known := map[string]bool{}
		for _, name := range those {
			known[name] = true
		}
		for _, name := range unit.Unique(these) {
			if !known[name] {
				all = append(all, sign+what+" "+name)
			}
		}
	}
	many := func(what string, old, new []string) {
		less("- ", what, old, new)
		less("+ ", what, new, old)
	}
	many("path", unit.Mapped(before, path), unit.Mapped(now, path))
	one("probes", every(was.Probes), every(is.Probes))
	one("TCP tests", perDay(was.TCP), perDay(is.TCP))
	one("time", unit.Duration(int64(was.Time)), unit.Duration(int64(is.Time)))
	one("budget", budget(was.Budget), budget(is.Budget))
	one("load", load(was.Load), load(is.Load))
	many("hours", unit.Mapped(was.Hours, hours), unit.Mapped(is.Hours, hours))
	many("objective", unit.Mapped(was.Objectives, objective), unit.Mapped(is.Objectives, objective))
	many("maintenance", unit.Mapped(was.Maintenance, maintenance), unit.Mapped(is.Maintenance, maintenance))
	many("alarms to", unit.Mapped(was.Alarms, sink), unit.Mapped(is.Alarms, sink))
	return all
}

// path returns a pair with its rate and the segments that it crosses.
func path(p schedule.Path) string {
	text := pair(p.Pair)
	if p.RateBps > 0 {
		text += " at " + unit.Rate(float64(p.RateBps))
	}
	if over := unit.Filtered(p.Uses, func(name string) bool { return name != p.From && name != p.To }); len(over) > 0 {
		text += " over " + strings.Join(over, ", ")
	}
	return text
}

func every(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return "each " + unit.Duration(int64(d))
}

func perDay(n int) string {
	if n == planfile.Auto {
		return "as the budget allows"
	}
	return strconv.Itoa(n) + " a day"
}

func budget(bytes int64) string {
	if bytes == 0 {
		return "0.1% of the link"
	}
	return unit.Size(bytes) + " a day"
}

func load(share float64) string {
	if share == 0 {
		return "none"
	}
	return unit.Percent(100 * share)
}

func hours(h planfile.DayHours) string {
	at := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60) }
	return at(h.From) + "-" + at(h.To)
}

func objective(g record.Goal) string { return g.Objective }

func maintenance(w record.MaintenanceWindow) string {
	text := w.Begin.Format(dated) + " to " + w.End.Format(dated)
	if w.EveryDays > 0 {
		text += ", every " + unit.Plural(w.EveryDays, "day")
	}
	if on := append(append([]string{}, w.Hosts...), w.Segments...); len(on) > 0 {
		text += " on " + strings.Join(on, ", ")
	}
	return text
}

func sink(s planfile.Sink) string {
	return s.Kind + " " + s.To + strings.Join(s.Args, " ")
}
