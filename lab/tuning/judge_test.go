package tuning

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// goal is the share of the healthy rate that a tuning must reach.
const goal = 0.95

// Head is the first line of the table of results.
func Head() string {
	return fmt.Sprintf("%-58s %9s %9s %9s %9s %6s %5s  %s", "case", "healthy", "found", "reached", "confirmed", "share", "time", "kept")
}

// Lines returns the rows of an outcome, one for each direction, with rates in Mb/s.
func (o Outcome) Lines() []string {
	found, reached := milestone(o.Document, 0), milestone(o.Document, -1)
	kept, _ := o.kept()
	var all []string
	for _, direction := range slices.Sorted(maps.Keys(o.Healthy)) {
		name := o.Name
		if len(o.Healthy) > 1 {
			name += " " + direction
		}
		all = append(all, fmt.Sprintf("%-58s %9.1f %9.1f %9.1f %9.1f %5.1f%% %4.0fs  %s", name, o.Healthy[direction]/1e6, found[direction]/1e6,
			reached[direction]/1e6, o.Confirmed[direction]/1e6, 100*reached[direction]/o.Healthy[direction], o.Elapsed.Seconds(), strings.Join(kept, " ")))
	}
	return all
}

// strays are changes that are in force although they were not kept: by what a rollback found to revert, and,
// where nothing was kept, by the settings.
func (o Outcome) strays() []string {
	kept, _ := o.kept()
	var all []string
	for _, c := range o.Stood {
		if !slices.Contains(kept, c) {
			all = append(all, c+" stands, and was not kept")
		}
	}
	if !slices.ContainsFunc(kept, func(c string) bool { return strings.Contains(c, "@") }) { // an option of the test changes no host
		for _, line := range o.Stayed {
			all = append(all, "nothing was kept, and yet: "+line)
		}
	}
	return all
}

// Wrong returns all that is not as required; empty: all is right.
func (o Outcome) Wrong() []string {
	var all []string
	if o.Exit != 0 || o.Document.Error != nil {
		all = append(all, "thru tune: "+wrong(o.Document, o.Exit))
	}
	kept, _ := o.kept()
	for _, k := range kept {
		if strings.Contains(k, "@") && !o.may(k) {
			all = append(all, "kept "+k+", which mends nothing here")
		}
	}
	all = append(all, o.strays()...)
	reached := milestone(o.Document, -1)
	for direction, healthy := range o.Healthy {
		if reached[direction] < goal*healthy {
			all = append(all, fmt.Sprintf("%s reached %.1f of %.1f Mb/s", direction, reached[direction]/1e6, healthy/1e6))
		}
		if o.Confirmed[direction] < goal*healthy {
			all = append(all, fmt.Sprintf("%s: thru test finds %.1f of %.1f Mb/s", direction, o.Confirmed[direction]/1e6, healthy/1e6))
		}
	}
	for _, line := range o.Left {
		all = append(all, "not rolled back: "+line)
	}
	slices.Sort(all)
	return all
}
