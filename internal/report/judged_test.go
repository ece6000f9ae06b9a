package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"thru/internal/doc/markdown"
	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/report/fleet"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// found returns a certain finding of a cause.
func found(cause, summary string, commands ...string) measure.Finding {
	f := measure.Finding{Cause: cause, Confidence: measure.Certain, Summary: summary, Where: measure.Where{Place: measure.AtSender, EndPoint: "a"},
		Evidence: []measure.Proof{{Counter: "overlimits of " + cause, Value: 172952, Unit: "packets"}}}
	if len(commands) > 0 {
		f.Fix = &measure.Fix{EndPoint: "a", Advice: "look at it", Commands: commands}
	}
	return f
}

// linesOf returns the lines of a row of the summary.
func linesOf(v page, name string) string {
	var all []string
	for _, r := range v.First.Rows {
		for _, i := range r.Items {
			if r.Name == name {
				all = append(all, strings.Join(append([]string{i.Text}, i.Commands...), "\n"))
			}
		}
	}
	return strings.Join(all, "\n")
}

// TestJudged: what limits a plan or ladder is reported for the flow that its verdict judges, with the
// evidence, on one time axis, and never for another flow.
func TestJudged(t *testing.T) {
	each := func(d *measure.Document, find func(*measure.Cell) []measure.Finding) *measure.Document {
		for i := range d.Cells {
			d.Cells[i].Findings = find(&d.Cells[i])
			if len(d.Cells[i].Runs) > 0 {
				d.Cells[i].Runs = verdictTest().Cells[0].Runs
			}
		}
		return d
	}
	byRung := func(c *measure.Cell) []measure.Finding {
		return []measure.Finding{found("of-"+strings.ReplaceAll(c.Rung, " ", "-"), "held on "+c.Rung, "show "+strings.ReplaceAll(c.Rung, " ", "-"))}
	}
	passed := each(rungsTest(), byRung)
	passed.Ladder.Rungs[2].Verdict.Pass = true
	passed.Verdict = passed.Ladder.Rungs[3].Verdict
	mesh := each(meshTest(), func(c *measure.Cell) []measure.Finding {
		return []measure.Finding{found("of-"+c.From+"-"+c.To, "held from "+c.From+" to "+c.To, "show "+c.From)}
	})
	mesh.Targets, mesh.Verdict, mesh.Findings = nil, nil, nil
	slowest := &mesh.Cells[0]
	for i := range mesh.Cells {
		if c := &mesh.Cells[i]; c.Group == slowest.Group && c.Goodput != nil && c.Goodput.Value < slowest.Goodput.Value {
			slowest = c
		}
	}
	failed := each(meshTest(), func(c *measure.Cell) []measure.Finding {
		return []measure.Finding{found("of-"+c.From+"-"+c.To, "held from "+c.From+" to "+c.To, "show "+c.From)}
	})
	last := failed.Cells[5]
	failed.Findings = nil
	failed.Targets = []measure.Target{{What: "goodput of each pair", Group: last.Group, Wanted: 95, Unit: "pct", Reason: last.From + " -> " + last.To + ": 50%", From: last.From, To: last.To}}
	plain := each(ladderTest(), func(c *measure.Cell) []measure.Finding {
		return []measure.Finding{found(fmt.Sprintf("of-%d", c.Streams), fmt.Sprintf("held with %s", unit.Plural(c.Streams, "stream")))}
	})
	for _, tt := range []struct {
		name, limit, do, cause string
		d                      *measure.Document
	}{
		{"the rung that fails", "held on LAN", "show LAN", "of-LAN", each(rungsTest(), byRung)},
		{"the highest rung", "held on interconnect", "show interconnect", "of-interconnect", passed},
		{"the slowest pair", "held from " + slowest.From + " to " + slowest.To, "show " + slowest.From, "of-" + slowest.From + "-" + slowest.To, mesh},
		{"the target that is not met", "held from " + last.From + " to " + last.To, "show " + last.From, "of-" + last.From + "-" + last.To, failed},
		{"the best of a ladder", "held with 4 streams", "", "of-4", plain},
	} {
		v := newPage(tt.d)
		limit, do, page := linesOf(v, "Limited by"), linesOf(v, "To do"), pageOf(t, tt.d)
		if !strings.Contains(limit, tt.limit) || strings.Count(limit, "held ") != 1 {
			t.Errorf("%s: limited by %q", tt.name, limit)
		}
		if !strings.Contains(do, tt.do) {
			t.Errorf("%s: to do %q", tt.name, do)
		}
		for _, want := range []string{"What limits it, ", "<h3>" + tt.cause, "172\u202f952", "over time, ", "CPU use of each core"} {
			if !strings.Contains(page, want) && !strings.Contains(page, strings.ReplaceAll(want, "\u202f", "\u00a0")) {
				t.Errorf("%s: the page has no %q", tt.name, want)
			}
		}
	}
	if c, name := fleet.Judged(verdictTest()); c != nil || name != "" {
		t.Errorf("a test of two hosts is about %q", name)
	}
}

// warn adds a warning with a code.
func warn(c *measure.Cell, w measure.Warning) {
	c.Coded, c.Warnings = append(c.Coded, w), append(c.Warnings, w.String())
}

// TestDoubts: an acceptance has its doubts next to it, and a pass with more than the link can carry is
// explained.
func TestDoubts(t *testing.T) {
	single, over, steady := verdictTest(), verdictTest(), verdictTest()
	single.Cells[0].Warnings = []string{"of no matter"}
	warn(&single.Cells[0], measure.Warning{Code: measure.SingleRun, Text: "single run", Means: "how far runs differ is not known"})
	warn(&single.Cells[0], measure.Warning{Code: measure.NotStable, Text: "not stable", Means: "its halves differ by 30.6%"})
	warn(&single.Cells[0], measure.Warning{Code: measure.BusyHost, Text: "local: 100% busy without the test", Means: "CPU figures are not of the test alone"})
	over.Cells[0].Warnings, over.Verdict.Share = nil, 106.09
	steady.Cells[0].Warnings = nil
	for _, tt := range []struct {
		name string
		d    *measure.Document
		want []string
		do   string
	}{
		{"single", single, []string{"single run", "not stable", "100% busy"}, "--repeat 5"},
		{"over", over, []string{"more than the link can carry"}, "nothing"},
		{"steady", steady, nil, "nothing"},
	} {
		v := newPage(tt.d)
		said := strings.Join(v.First.Accepted.But, "\n")
		for _, w := range tt.want {
			if !strings.Contains(said, w) {
				t.Errorf("%s: no %q in %q", tt.name, w, said)
			}
		}
		if len(v.First.Accepted.But) != len(tt.want) || !strings.Contains(linesOf(v, "To do"), tt.do) {
			t.Errorf("%s: %q, to do %q", tt.name, said, linesOf(v, "To do"))
		}
		if page := pageOf(t, tt.d); strings.Contains(page, "Caution") != (tt.want != nil) {
			t.Errorf("%s: the page does not say so", tt.name)
		}
	}
}

// TestCheckWarns: the summary of a passing host with warnings names what to do first.
func TestCheckWarns(t *testing.T) {
	warn := func(at string) measure.Gate {
		return measure.Gate{ID: "cpu-load", EndPoint: at, Status: measure.GateWarn, Fact: "100% of the CPUs are busy", Why: "w", Advice: "measure when it is idle"}
	}
	d := &measure.Document{Command: "check", Gates: []measure.Gate{warn("local"), warn("peer"), {ID: "sack", Status: measure.GatePass, Fact: "on", Why: "w"}}}
	v := newPage(d)
	do := linesOf(v, "To do")
	if v.First.Accepted.Word != "fit" || !strings.Contains(do, "Recommended:") || strings.Count(do, "measure when it is idle") != 1 || !strings.Contains(do, "local, peer") {
		t.Errorf("%s: %q", v.First.Accepted.Word, do)
	}
	d.Gates = d.Gates[2:]
	if do := linesOf(newPage(d), "To do"); do != "nothing: the result meets its target" {
		t.Errorf("nothing warns: %q", do)
	}
}

// TestAdvised: for a full link the report begins with the statement that nothing has to be changed.
func TestAdvised(t *testing.T) {
	d := advisedTest()
	d.Tuning.Advice = append(d.Tuning.Advice, measure.Proposal{Title: "`tc -s qdisc show dev va` tells its rate"})
	if do := linesOf(newPage(d), "To do"); strings.Contains(do, "try `tc") {
		t.Errorf("to do %q", do)
	}
	for i := range d.Cells {
		d.Cells[i].Findings = []measure.Finding{{Cause: result.CauseLinkRate, Confidence: measure.Certain, Healthy: true, Summary: "the link is full"}}
	}
	v := newPage(d)
	if do := linesOf(v, "To do"); !strings.HasPrefix(do, "no change is needed") || !strings.Contains(v.Answer, "the link is full; ") {
		t.Errorf("%q, to do %q", v.Answer, do)
	}
}

// TestOffloads: offloads that are off come first, and nothing is cut.
func TestOffloads(t *testing.T) {
	all := map[string]bool{"tcp-segmentation-offload": false}
	for i := range 60 {
		all[fmt.Sprintf("a-feature-of-a-driver-%d", i)] = i%2 == 0
	}
	f := linuxFacts("a", 2)
	f.Interfaces = []measure.Interface{{Name: "eth0", Offloads: all}}
	for _, r := range facts.Interfaces(&measure.Document{EndPoints: []measure.EndPoint{{Name: "a", Facts: f}}})[0].Rows {
		if r.Name != "offloads" {
			continue
		}
		if !strings.HasPrefix(r.Value, "off: ") || strings.Contains(r.Value, "...") || !strings.Contains(r.Value, "tcp-segmentation-offload; on: ") {
			t.Errorf("offloads %q", r.Value)
		}
	}
}

// TestDrawn: with several runs the page names the run that the charts show.
func TestDrawn(t *testing.T) {
	d := verdictTest()
	c := &d.Cells[0]
	c.Runs = slices.Repeat(c.Runs[:1], 3)
	for i, bps := range []float64{1, 956e6, 2e9} {
		c.Runs[i].Goodput = new(bps)
	}
	c.Goodput.Value = 956e6
	if page := pageOf(t, d); !strings.Contains(page, "the chart shows run\u00a02 of\u00a03") && !strings.Contains(page, "the chart shows run 2 of 3") {
		t.Error("the page does not say which run is drawn")
	}
	c.Runs = c.Runs[:1]
	if page := pageOf(t, d); strings.Contains(page, "the chart shows") {
		t.Error("there is but one run")
	}
}

// TestNarrow: each cell of a table that becomes a card on a phone has its label, and on paper the passing
// gates are one line.
func TestNarrow(t *testing.T) {
	for name, d := range map[string]*measure.Document{"rungs": rungsTest(), "mesh": meshTest(), "tuned": tunedTest(), "check": checked()} {
		page := pageOf(t, d)
		for _, table := range regexp.MustCompile(`(?s)<table class="[a-z ]*cards">.*?</table>`).FindAllString(page, -1) {
			for _, cell := range regexp.MustCompile(`<td[^>]*>`).FindAllString(table, -1) {
				if !strings.Contains(cell, "data-of=") {
					t.Errorf("%s: %s in a card", name, cell)
				}
			}
		}
		if n := len(newPage(d).Gates.Passed()); n > 0 && !strings.Contains(page, fmt.Sprintf(`<details class="brief-print"><summary>%d passed<span class="paper">: `, n)) {
			t.Errorf("%s: %d gates that pass are no line", name, n)
		}
	}
}

// TestStalledRequests: a second without an answer is 0 in the samples, not empty.
func TestStalledRequests(t *testing.T) {
	d := rrTest()
	sender, _ := result.ShownFlow(&d.Cells[0])
	sender.Bins[1].Requests = 0
	var out bytes.Buffer
	if err := CSV(&out, d); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(r []string, name string) string { return r[slices.Index(rows[0], name)] }
	zero := 0
	for _, r := range rows[1:] {
		if at(r, "scope") == "flow" && at(r, "end") == "sender" && at(r, "requests_per_s") == "0" {
			zero++
		}
	}
	if zero != 1 {
		t.Errorf("%d seconds without an answer, want 1", zero)
	}
}

// TestManyGates: a page with the gates of a thousand hosts stays under 1 MB, and counts what it omits.
func TestManyGates(t *testing.T) {
	d := verdictTest()
	for i := range 20_000 {
		d.Gates = append(d.Gates, measure.Gate{ID: fmt.Sprintf("gate-%d", i/2), EndPoint: fmt.Sprintf("host%d", i/25), Status: []string{measure.GatePass, measure.GateWarn}[i%2], Fact: strings.Repeat("fact ", 20), Why: strings.Repeat("why ", 20)})
	}
	page := pageOf(t, d)
	if len(page) > 1<<20 || !strings.Contains(page, "10000 passed") || !strings.Contains(page, "and 9600 more, see the JSON document") {
		t.Errorf("%d bytes, or it does not say what it leaves out", len(page))
	}
}

// TestMarkdownFence: nothing in a command looks like the signature of the file, and the sections have the
// order of the page.
func TestMarkdownFence(t *testing.T) {
	d := rungsTest()
	d.Arguments = append(d.Arguments, "--label", "x=<!-- thru-signature ")
	if s := markdown.Escape("www.evil.example and a@evil.example and http://evil.example"); strings.Contains(s, "www.e") || strings.Contains(s, "@e") || strings.Contains(s, "://") {
		t.Errorf("%q becomes a link", s)
	}
	var out bytes.Buffer
	if err := Markdown(&out, d, MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "<!--") || strings.Index(s, "## What each layer costs") > strings.Index(s, "## localhost") {
		t.Error("a command can look like a signature, or the sections are in another order than on the page")
	}
}
