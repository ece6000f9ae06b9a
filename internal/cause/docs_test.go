package cause

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/knob"
	"thru/internal/cause/transfer"
	"thru/internal/report/result"
)

// TestDocuments compares the pages of the catalogue with it: the text above the first generated section is written
// manually.
func TestDocuments(t *testing.T) {
	for file, generated := range map[string]string{"causes.md": causesPage(), "gates.md": gatesPage(), "knobs.md": knobsPage()} {
		file = "../../docs/" + file
		old, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		heading, _, _ := strings.Cut(generated, "\n")
		intro, _, ok := strings.Cut(string(old), "\n"+heading+"\n")
		if !ok {
			t.Fatalf("%s has no section %q", file, heading)
		}
		golden(t, file, intro+"\n"+generated)
	}
}

// entry writes one entry of a page, a line for each item; it omits empty ones, and sources that a reader cannot look up.
func entry(b *strings.Builder, id, title string, lines ...[2]string) {
	fmt.Fprintf(b, "\n### `%s`: %s\n\n", id, title)
	for _, line := range lines {
		if line[0] == "Source" {
			line[1] = result.SourceText(line[1])
		}
		if line[1] != "" {
			fmt.Fprintf(b, "- %s: %s\n", line[0], line[1])
		}
	}
}

// causesPage returns the text of docs/causes.md for each cause.
func causesPage() string {
	var b strings.Builder
	b.WriteString("## The causes\n")
	for _, r := range Causes() {
		causeEntry(&b, r, protocols(r))
	}
	b.WriteString("\n## The experiments\n\n")
	for _, x := range diagnose.Experiments() {
		fmt.Fprintf(&b, "- `%s`: %s (%s)\n", x.ID, x.Title, x.Time)
	}
	b.WriteString("\n## Causes of file transfers only\n\nA test moves data from memory to memory and has none of them; `thru transfer` has ([transfer.md](transfer.md)).\n")
	for _, r := range transfer.Causes() {
		causeEntry(&b, r, "")
	}
	return b.String()
}

func causeEntry(b *strings.Builder, r diagnose.Rule, judged string) {
	inside := ""
	if r.Unseen != "" { // why it is not certain if the host was not queried
		inside = "at most likely, unless the hypervisor shows whether its host " + r.Unseen
	}
	entry(b, r.Cause, r.Title, [][2]string{{"Seen by", r.Seen}, {"Distinguished by", r.Distinction}, {"Fix", r.Fix}, {"Effect", r.Effect}, {"Source", r.Source},
		{"Inside a guest", inside}, {"Judged for", judged}, {"Experiments", quoted(r.Tests)}, {"Root of", quoted(r.Brings)}}...)
}

// protocols returns those that a rule is judged for.
func protocols(r diagnose.Rule) string {
	switch {
	case r.TCP && r.UDP:
		return "TCP, UDP"
	case r.UDP:
		return "UDP"
	}
	return "TCP"
}

// quoted lists ids.
func quoted(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "`" + strings.Join(ids, "`, `") + "`"
}

// gatesPage returns the text of docs/gates.md for each gate.
func gatesPage() string {
	var b strings.Builder
	b.WriteString("## The gates\n")
	for _, r := range Gates() {
		entry(&b, r.ID, r.Title, [][2]string{{"Judged", r.About}, {"Fails", r.Fails}, {"Warns", r.Warns}, {"Why", r.Why}, {"Source", r.Source}, {"Fix", r.Fix},
			{"Cause", r.Cause}, {"Checklist", strings.Join(r.Checklist, ", ")}}...)
	}
	return b.String()
}

// knobsPage returns the text of docs/knobs.md for each knob.
func knobsPage() string {
	var b strings.Builder
	b.WriteString("## The knobs\n")
	for _, k := range knob.Table() {
		cuts := ""
		if k.Cuts {
			cuts = "yes"
		}
		entry(&b, k.ID, k.Title, [][2]string{{"About", k.About}, {"Of a", string(k.Scope)}, {"Acts on data of the", string(k.Role)}, {"On Linux", "`" + k.Linux + "`"},
			{"Needs", k.Needs}, {"Effect", k.Effect}, {"Source", k.Source}, {"Risk", k.Risk}, {"May cut the connection", cuts}, {"In force when", k.Verify},
			{"Commands for", strings.Join(k.Platforms(), ", ")}, {"Checklist", strings.Join(k.Checklist, ", ")}}...)
	}
	return b.String()
}
