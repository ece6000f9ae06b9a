package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"thru/internal/store"
)

// writeEntries prints results as a table: id, when in this place's time, command,
// verdict, and what it found, cut to the width where there is one.
func writeEntries(w io.Writer, entries []store.Entry, width int, colour bool, now time.Time) {
	longest := len("id")
	for _, x := range entries {
		longest = max(longest, len(x.ID))
	}
	fmt.Fprintf(w, "%-*s  %-7s  %-7s  %-4s  %s\n", longest, "id", "when", "command", "", "result")
	for _, x := range entries {
		line := fmt.Sprintf("%-*s  %-7s  %-7s  ", longest, x.ID, whenText(x.StartedAt, now), cut(printable(x.Command), 7))
		verdict := fmt.Sprintf("%-4s", verdictText(x.Verdict))
		said := titleText(x)
		if width > 0 {
			said = cut(said, max(width-len(line)-len(verdict)-2, 12))
		}
		fmt.Fprintf(w, "%s%s  %s\n", line, coloured(verdict, x.Verdict, colour), said)
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

// titleText is what was found, between whom where the title does not say it, and
// by which labels it is called.
func titleText(x store.Entry) string {
	said := []string{}
	if len(x.Pairs) > 0 && !strings.Contains(x.Title, "->") {
		said = append(said, pairsText(x.Pairs))
	}
	if x.Title != "" {
		said = append(said, x.Title)
	}
	if x.Error != "" {
		said = append(said, "error: "+x.Error)
	}
	for _, k := range slices.Sorted(maps.Keys(x.Labels)) {
		said = append(said, k+"="+x.Labels[k])
	}
	return printable(strings.Join(said, "  "))
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
	case verdict == store.Pass:
		return "\x1b[32m" + text + "\x1b[0m"
	}
	return "\x1b[31m" + text + "\x1b[0m"
}
