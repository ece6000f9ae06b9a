package short

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"thru/internal/doc/text"
	"thru/internal/measure"
	"thru/internal/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// load reads a document of package report's golden files.
func load(t *testing.T, name string) *measure.Document {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", name+".json.golden"))
	if err != nil {
		t.Fatal(err)
	}
	d := new(measure.Document)
	if err := json.Unmarshal(b, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAnswers: the answer of each kind of result is short, and fits a terminal.
func TestAnswers(t *testing.T) {
	open := load(t, "verdict")
	open.Verdict.Pass, open.Verdict.Inconclusive = false, true
	open.Verdict.Reason, open.Verdict.Do = "peer was busy without the test: it could not have shown the rate", "end the other work at peer, and measure again"
	for i := range open.Cells { // the answer has the share
		if c := &open.Cells[i]; c.From == "peer" {
			open.Verdict.Share, open.Verdict.Undecided = c.Ceiling.SharePct, open.Verdict.Reason
			open.Verdict.Reason = "peer to local carries some of the ceiling; " + open.Verdict.Reason
		}
	}
	single := load(t, "verdict")
	for i := range single.Cells {
		w := measure.Warning{Code: measure.SingleRun, Text: "single run", Means: "how far runs differ is not known"}
		single.Cells[i].Coded, single.Cells[i].Warnings = []measure.Warning{w}, []string{w.String()}
	}
	long := load(t, "bidir")
	for i := range long.Cells {
		c := &long.Cells[i]
		c.From, c.To = strings.Replace(c.From, "peer", "esx-host-01.frankfurt.example.com", 1), strings.Replace(c.To, "peer", "esx-host-01.frankfurt.example.com", 1)
	}
	latency, loaded := load(t, "verdict"), load(t, "under-load")
	for i := range latency.Cells {
		latency.Cells[i].UnderLoad = loaded.Cells[1].UnderLoad
	}
	unlimited := load(t, "many-to-one")
	unlimited.Findings = nil
	for i := range unlimited.Cells {
		unlimited.Cells[i].Findings = []measure.Finding{{Cause: measure.CauseNone}}
	}
	failing := load(t, "ladder")
	failing.Verdict = &measure.Verdict{Required: 95, Share: 20, Reason: "localhost carries 20% of the ceiling"}
	for _, tt := range []struct {
		name string
		most int // lines, without the line about where it is stored
		d    *measure.Document
		want []string // of the first line
	}{
		{"healthy", 11, single, []string{"951 Mb/s, 99.4% of the 956 Mb/s that MTU 1500 allows on 1 Gb/s (L2): pass"}},
		{"link-rate", 11, nil, []string{"951 Mb/s, 99.4% of the", "pass"}},
		{"none", 11, nil, []string{"Gb/s"}},
		{"localhost", 16, nil, []string{"48.9 Gb/s localhost"}},
		{"bidir", 16, nil, []string{"9.41 Gb/s local -> peer, 8.87 Gb/s back at the same time"}},
		{"latency", 13, latency, []string{": pass; latency 201 µs idle, 4.12 ms under load (+3.92 ms, grade A+)"}},
		{"long-names", 19, long, nil},
		{"ladder-fails", 19, failing, []string{"localhost: fail, 95% is required"}},
		{"inconclusive", 14, open, []string{": inconclusive"}},
		{"explain", 22, nil, []string{"4.10 Gb/s local -> b, 42.9% of the 9.56 Gb/s", "fail, 95% is required"}},
		{"two-findings", 24, twoFindings(t), nil},
		{"gate-of-finding", 34, gateOfFinding(t), nil},
		{"both-hosts", 22, equalHosts(t), nil},
		{"receiver-cpu", 22, nil, nil},
		{"apart", 20, nil, nil},
		{"mtu-black-hole", 20, nil, nil},
		{"udp-loss", 20, nil, []string{"2.14% lost"}},
		{"rr", 12, nil, []string{"204 000 requests/s"}},
		{"under-load", 14, nil, []string{"grade A+"}},
		{"partial", 14, nil, []string{"ended early"}},
		{"gated", 22, nil, []string{"pass"}},
		{"check", 24, nil, []string{"not fit to be measured: 1 gate fails"}},
		{"ladder", 18, nil, []string{"52.1 Gb/s with 4 streams"}},
		{"rungs", 22, nil, []string{"the interconnect carries 9.41 of 10 Gb/s"}},
		{"captured", 12, nil, []string{"934 Mb/s"}},
		{"broken-tso", 19, nil, nil},
		{"tuned", 18, nil, []string{"2 of 4 changes kept", "the target of 150 Mb/s is met"}},
		{"restored", 11, nil, []string{"2 of 3 settings are restored"}},
		{"same", 6, nil, []string{"60 comparisons"}},
		{"unhelped", 5, nil, []string{"was undone"}},
		{"advised", 14, nil, []string{"3 changes to try"}},
		{"disk", 12, nil, []string{"reads 3.22 GB/s"}},
		{"transfer", 19, nil, []string{"1.02 Gb/s by sftp"}},
		{"inventory", 18, nil, []string{"2 hosts, 5 VMs", "12 anomalies"}},
		{"inventory-vm", 14, nil, []string{"1 of 5 VMs"}},
		{"inventory-none", 2, nil, []string{"no virtual machine"}},
		{"mesh", 14, nil, []string{"12 pairs at once"}},
		{"many-to-one", 23, nil, []string{"2 of 3 targets are not met"}},
		{"in-turn", 15, nil, []string{"the slowest n12 -> n13"}},
		{"variants", 16, nil, []string{"improved"}},
		{"vcpus", 9, nil, []string{"the highest rate of 4 settings"}},
		{"unlimited", 25, unlimited, nil},
		{"search", 12, nil, []string{"capacity 956 of 1000 Mb/s"}},
		{"placed", 10, nil, []string{"7.20 Gb/s local -> peer"}},
	} {
		if tt.d == nil {
			tt.d = load(t, tt.name)
		}
		for _, whole := range []bool{false, true} { // on a terminal, and for a program
			var b bytes.Buffer
			o := text.Options{Width: 80}
			if whole {
				o.Width = 0
			}
			if err := Text(&b, tt.d, o, "thru report last --all"); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			for _, w := range tt.want {
				if whole && !strings.Contains(lines[0], w) {
					t.Errorf("%s: no %q in %q", tt.name, w, lines[0])
				}
			}
			if whole {
				continue
			}
			if len(lines) > tt.most {
				t.Errorf("%s: %d lines, at most %d", tt.name, len(lines), tt.most)
			}
			for _, l := range lines {
				if strings.Contains(l, "single run: ") {
					t.Errorf("%s: %q is shown with the figure", tt.name, l)
				}
				if utf8.RuneCountInString(l) > o.Width && !strings.HasPrefix(l, "          ") { // except commands, which are copied
					t.Errorf("%s: %q is wider than %d columns", tt.name, l, o.Width)
				}
			}
			golden(t, tt.name, b.String())
		}
	}
}

// TestNothingLost: the last line counts what is omitted, and names the command that shows it.
func TestNothingLost(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, load(t, "explain"), text.Options{Width: 80}, "thru report 4711 --all"); err != nil {
		t.Fatal(err)
	}
	if want := "fix has risks; 8 causes ruled out; 10 facts not checked (thru report 4711 --all)\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("no %q at the end of\n%s", want, b.String())
	}
	b.Reset()
	if err := Text(&b, load(t, "explain"), text.Options{Width: 79}, "thru report 4711 --all"); err != nil || !strings.HasSuffix(b.String(), "not checked\n(thru report 4711 --all)\n") {
		t.Errorf("the command is not in a line of its own: %v\n%s", err, b.String())
	}
	b.Reset()
	if err := Text(&b, load(t, "failed"), text.Options{Width: 80}, "--all"); err != nil || b.Len() > 0 {
		t.Errorf("nothing was measured, and it prints: %v\n%s", err, b.String())
	}
}

// TestFailedFlow: a plan of two hosts names a flow that failed before it had a figure.
func TestFailedFlow(t *testing.T) {
	d := load(t, "none")
	d.Groups = []measure.Group{{Failed: []measure.Failure{{From: "b", To: "local", Error: "b refused the port"}}}}
	var b bytes.Buffer
	if err := Text(&b, d, text.Options{Width: 80}, "--all"); err != nil || !strings.Contains(b.String(), "failed: b -> local: b refused the port") {
		t.Errorf("the failure is not named: %v\n%s", err, b.String())
	}
}

// TestRisks: the short form leaves the risk of a command to --all, and says so.
func TestRisks(t *testing.T) {
	d := load(t, "check")
	d.Gates[0].Risk = "it may do this and that"
	var b bytes.Buffer
	if err := Text(&b, d, text.Options{Width: 80}, "--all"); err != nil || strings.Contains(b.String(), "this and that") || !strings.Contains(b.String(), "\nfix has risks; ") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := report.Text(&b, d, text.Options{Width: 80}); err != nil || !strings.Contains(b.String(), "this and that") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// twoFindings is a pair of hosts that misses its rate in both directions, for different reasons.
func twoFindings(t *testing.T) *measure.Document {
	d, back := load(t, "explain"), load(t, "apart")
	for i := range d.Cells {
		c := &d.Cells[i]
		if len(c.Findings) == 0 || c.Findings[0].Cause != "link-rate" {
			continue
		}
		for _, x := range back.Cells {
			if x.From == c.From {
				*c = x
			}
		}
	}
	d.Command, d.Cells[0].Warnings = "test", []string{"the window was cut", "the sender counted more"}
	return d
}

// gateOfFinding is a failed gate with the same fix as the finding, and one with the same advice for the other end.
func gateOfFinding(t *testing.T) *measure.Document {
	d := load(t, "receiver-cpu")
	fix := d.Cells[0].Findings[0].Fix
	for _, at := range []string{fix.EndPoint, "local"} {
		d.Gates = append(d.Gates, measure.Gate{ID: "irq", EndPoint: at, Status: measure.GateFail, Fact: "all interrupts go to one CPU", Advice: fix.Advice, Fix: fix.Commands, FixAt: at, Why: "at " + at})
	}
	return d
}

// equalHosts is a check of two hosts that have the same warning.
func equalHosts(t *testing.T) *measure.Document {
	d := load(t, "check")
	for _, g := range slices.Clone(d.Gates) {
		if g.EndPoint == "bee" {
			g.EndPoint = "local"
			d.Gates = append(d.Gates, g)
		}
	}
	return d
}

// golden compares output with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s -want +got (accept with -update):\n%s", file, diff)
	}
}
