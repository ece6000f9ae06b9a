package report

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/measure"
)

func junitOf(t *testing.T, d *measure.Document) (x junitSuites) {
	t.Helper()
	var b bytes.Buffer
	if err := JUnit(&b, d); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(b.Bytes(), &x); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return x
}

// TestJUnit: cases that pass, fail, are inconclusive, and are not checked.
func TestJUnit(t *testing.T) {
	verdict := func(v *measure.Verdict) *measure.Document {
		d := smallDocument("test")
		d.Verdict = v
		return d
	}
	broken := smallDocument("test")
	broken.Error = &measure.Error{Message: "the peer is gone\x07 <now>", Hint: "look there", ExitCode: fault.Failed}
	broken.Cells[0].Error = broken.Error
	gated := smallDocument("check")
	gated.Gates = []measure.Gate{{ID: "mtu-path", From: "a", To: "b", Status: measure.GateFail, Fact: "1400 bytes", Fix: []string{"ip link set"}},
		{ID: "clock", EndPoint: "a", Status: measure.GateNotChecked, Fact: "no root"}, {ID: "rings", EndPoint: "a", Status: measure.GateWarn, Fact: "small"}}
	fleet := smallDocument("run")
	fleet.Targets = []measure.Target{{What: "aggregate", Wanted: 9e9, Got: new(8e9), Unit: "bps"}, {What: "loss", Wanted: 1, Got: new(0.5), Unit: "pct", AtMost: true, Pass: true}}
	open := smallDocument("run")
	open.Targets, open.Verdict = fleet.Targets, &measure.Verdict{Inconclusive: true, Reason: "1 of 2 targets is not met: aggregate; a was busy"}
	for name, c := range map[string]struct {
		d                                *measure.Document
		tests, failures, errors, skipped int
		says                             string // of what did not pass
	}{
		"nothing to hold it against": {smallDocument("test"), 2, 0, 0, 0, ""},
		"passes":                     {verdict(&measure.Verdict{Pass: true, Reason: "96%"}), 3, 0, 0, 0, ""},
		"fails":                      {verdict(&measure.Verdict{Reason: "41% of 10 Gb/s"}), 3, 1, 0, 0, "41% of 10 Gb/s"},
		"inconclusive":               {verdict(&measure.Verdict{Inconclusive: true, Reason: "the host is busy", Do: "end it"}), 3, 0, 1, 0, "inconclusive: the host is busy"},
		"broken off":                 {broken, 2, 0, 2, 0, "the peer is gone"},
		"gates":                      {gated, 5, 1, 0, 1, "1400 bytes"},
		"targets":                    {fleet, 4, 1, 0, 0, "8.00 Gb/s"},
		"targets that are open":      {open, 5, 0, 2, 0, "8.00 Gb/s"},
	} {
		x := junitOf(t, c.d)
		if x.Tests != c.tests || x.Failures != c.failures || x.Errors != c.errors || x.Skipped != c.skipped {
			t.Errorf("%s: %d tests, %d failures, %d errors, %d skipped", name, x.Tests, x.Failures, x.Errors, x.Skipped)
		}
		said, cases := "", 0
		for _, s := range x.Suites {
			cases += len(s.Cases)
			for _, k := range s.Cases {
				if k.Name == "" || !strings.HasPrefix(k.Class, "thru.") || k.Seconds == "" {
					t.Errorf("%s: %+v", name, k)
				}
				for _, n := range []*junitNo{k.Failure, k.Error} {
					if n != nil {
						said += n.Message + "\n"
					}
				}
			}
		}
		if cases != x.Tests || !strings.Contains(said, c.says) || c.says == "" && said != "" {
			t.Errorf("%s: %d cases, output %q", name, cases, said)
		}
	}
}

// TestJUnitOfAll: every kind of document gives well-formed XML with consistent counts.
func TestJUnitOfAll(t *testing.T) {
	for name, d := range goldenDocuments() {
		x := junitOf(t, d)
		tests := 0
		for _, s := range x.Suites {
			tests += s.Tests
		}
		if tests == 0 || tests != x.Tests {
			t.Errorf("%s: %d tests, its suites have %d", name, x.Tests, tests)
		}
	}
}

// TestSummaryOfAll: a summary for a ticket is short, complete, and begins with the answer.
func TestSummaryOfAll(t *testing.T) {
	who := &Signature{Host: "h", Key: "k", Verify: "thru report --verify x"}
	for name, d := range goldenDocuments() {
		var short, long bytes.Buffer
		if err := Markdown(&short, d, MarkdownOptions{Signed: who, Summary: true}); err != nil {
			t.Fatal(err)
		}
		if err := Markdown(&long, d, MarkdownOptions{Signed: who}); err != nil {
			t.Fatal(err)
		}
		text := short.String()
		if n := strings.Count(text, "\n"); n >= summaryLines { // the signature is one more line
			t.Errorf("%s: %d lines\n%s", name, n, text)
		}
		if strings.Count(text, "```")%2 != 0 || !strings.HasPrefix(text, "# ") || !strings.Contains(text, "Signed by h") {
			t.Errorf("%s:\n%s", name, text)
		}
		if first, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(long.String(), first+"\n") {
			t.Errorf("%s begins with %q", name, first)
		}
	}
}
