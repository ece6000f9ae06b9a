package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/plan/planfile"
	"thru/internal/unit"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// Changes returns what the first plan of a watch has, and the second has not, and the reverse, each in a few words: "- probes each 1 s".
func Changes(before, now []schedule.Path, was, is planfile.Watch) (all []string) {
	first, second := described(before, was), described(now, is)
	less := func(sign string, these, those []string) {
		for _, line := range unit.Unique(these) {
			if !slices.Contains(those, line) {
				all = append(all, sign+line)
			}
		}
	}
	less("- ", first, second)
	less("+ ", second, first)
	return all
}

// described returns what a plan has, in a few words each.
func described(paths []schedule.Path, w planfile.Watch) []string {
	or := func(none bool, instead, text string) string { return map[bool]string{true: instead, false: text}[none] }
	all := append(unit.Mapped(paths, path),
		"probes "+or(w.Probes == 0, "none", "each "+unit.Duration(int64(w.Probes))), "TCP tests "+or(w.TCP == planfile.Auto, "as the budget allows", fmt.Sprint(w.TCP, " a day")),
		"time "+unit.Duration(int64(w.Time)), "budget "+or(w.Budget == 0, "0.1% of the link", unit.Size(w.Budget)+" a day"), "load "+or(w.Load == 0, "none", unit.Percent(100*w.Load)))
	for _, h := range w.Hours {
		at := func(d time.Duration) string { return time.Time{}.Add(d).Format("15:04") }
		all = append(all, "hours "+at(h.From)+"-"+at(h.To))
	}
	for _, g := range w.Objectives {
		all = append(all, "objective "+g.Objective)
	}
	all = append(all, unit.Mapped(w.Maintenance, maintenance)...)
	for _, s := range w.Alarms {
		all = append(all, "alarms to "+s.Kind+" "+s.To+strings.Join(s.Args, " "))
	}
	return all
}

// path returns a pair with its rate and the segments that it crosses.
func path(p schedule.Path) string {
	text := "path " + pair(p.Pair)
	if p.RateBps > 0 {
		text += " at " + unit.Rate(float64(p.RateBps))
	}
	if over := unit.Filtered(p.Uses, func(name string) bool { return name != p.From && name != p.To }); len(over) > 0 {
		text += " over " + strings.Join(over, ", ")
	}
	return text
}

func maintenance(w record.MaintenanceWindow) string {
	text := "maintenance " + w.Begin.Format(dated) + " to " + w.End.Format(dated)
	if w.EveryDays > 0 {
		text += ", every " + unit.Plural(w.EveryDays, "day")
	}
	if on := slices.Concat(w.Hosts, w.Segments); len(on) > 0 {
		text += " on " + strings.Join(on, ", ")
	}
	return text
}
