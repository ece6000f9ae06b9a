package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/store"
)

// narrow is the width below which an entry takes two lines.
const narrow = 120

// commandColumn has room for each command: inventory is the longest.
const commandColumn = 9

// writeEntries prints results as a table: id, when in this place's time, command,
// verdict, and what it found. On a narrow terminal that has a line of its own.
func writeEntries(w io.Writer, entries []store.Entry, width int, colour bool, now time.Time) {
	longest := len("id")
	for _, x := range entries {
		longest = max(longest, len(fault.Printable(x.ID)))
	}
	head := "result"
	if width > 0 && width < narrow {
		head = "labels"
	}
	fmt.Fprintf(w, "%-*s  %-7s  %-*s  %-4s  %s\n", longest, "id", "when", commandColumn, "command", "", head)
	for _, x := range entries {
		line := fmt.Sprintf("%-*s  %-7s  %-*s  ", longest, fault.Printable(x.ID), whenText(x.StartedAt, now), commandColumn, console.Cut(fault.Printable(x.Command), commandColumn))
		verdict := fmt.Sprintf("%-4s", fault.Printable(verdictText(x.Verdict)))
		room := width - len(line) - len(verdict) - 2
		said, below := titleText(x)+labelsText(x, "  "), ""
		if width > 0 && width < narrow {
			said, below = labelsText(x, ""), "  "+console.Cut(titleText(x), width-2)+"\n"
		}
		if width > 0 {
			said = console.Cut(said, room)
		}
		fmt.Fprintf(w, "%s\n%s", strings.TrimRight(line+coloured(verdict, x.Verdict, colour)+"  "+said, " "), below)
	}
}

// whenText is short: the time of today, the day of this year, else the month.
func whenText(t, now time.Time) string {
	t = t.In(now.Location())
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("Jan _2")
	}
	return t.Format("2006-01")
}

func verdictText(v string) string {
	if v == store.NoVerdict {
		return ""
	}
	return v
}

// titleText is what was found, and between whom or where, if the title does not say it.
func titleText(x store.Entry) string {
	said := []string{}
	if len(x.Pairs) > 0 && !slices.ContainsFunc(x.Pairs, func(pair string) bool { return strings.Contains(x.Title, pair) }) {
		said = append(said, pairsText(x.Pairs))
	}
	if len(x.Pairs) == 0 {
		said = append(said, strings.Join(x.Hosts[:min(len(x.Hosts), 3)], ", "))
	}
	if x.Title != "" {
		said = append(said, x.Title)
	}
	if x.Error != "" {
		said = append(said, "error: "+x.Error)
	}
	return fault.Printable(strings.Join(said, "  "))
}

// labelsText is by which labels it is called, after a gap.
func labelsText(x store.Entry, gap string) string {
	said := ""
	for _, k := range slices.Sorted(maps.Keys(x.Labels)) {
		said += gap + k + "=" + x.Labels[k]
		gap = "  "
	}
	return fault.Printable(said)
}

// pairsText is "a <-> b" where both directions were measured, and counts what is more.
func pairsText(pairs []string) string {
	a, b, _ := strings.Cut(pairs[0], " -> ")
	text, rest := pairs[0], len(pairs)-1
	if a == b {
		text = a
	}
	if len(pairs) > 1 && pairs[1] == b+" -> "+a {
		text, rest = a+" <-> "+b, rest-1
	}
	if rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// coloured gives a verdict the colour that report's texts give it.
func coloured(text, verdict string, colour bool) string {
	switch {
	case !colour || verdict == store.NoVerdict:
		return text
	case verdict == store.Inconclusive:
		return "\x1b[33m" + text + "\x1b[0m"
	case verdict == store.Pass:
		return "\x1b[32m" + text + "\x1b[0m"
	}
	return "\x1b[31m" + text + "\x1b[0m"
}
