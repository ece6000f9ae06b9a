package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"thru/internal/measure"
)

// hedged is a flow whose limiting finding has the given confidence.
func hedged(confidence string, bps float64, link int64) *measure.Document {
	return oneWay(bps, link, measure.Finding{Cause: "receiver-cpu", Confidence: confidence, Summary: "the receiver's CPU 3 is full."})
}

// directions is a test of both directions, each with its finding.
func directions(there, back measure.Finding) *measure.Document {
	d := oneWay(9.41e9, 0, there)
	c := newCellFor("b", "local", 4, 2.1e9)
	c.Group = 1
	d.Cells = append(d.Cells, *told(&c, back))
	return d
}

func TestAnswersOfFindings(t *testing.T) {
	cpu := measure.Finding{Cause: "receiver-cpu", Confidence: measure.Certain, Summary: "the receiver's CPU 3 is full"}
	loss := measure.Finding{Cause: "loss", Confidence: measure.Likely, Summary: "1 of 900 segments is lost"}
	unmeasured := blackHoleTest()
	unmeasured.Verdict, unmeasured.Cells[0].Goodput, unmeasured.Cells[0].Runs = nil, nil, nil
	unknown := oneWay(1, 0, measure.Finding{Cause: measure.CauseNone, Confidence: measure.Possible, Summary: "why nothing was measured cannot be told from the evidence"})
	unknown.Cells[0].Goodput = nil
	met := directions(fullLink(), loss)
	met.Verdict = &measure.Verdict{Pass: true, Share: 96.1}
	for i, bps := range []float64{9.41e9, 9.2e9} {
		met.Cells[i].Goodput.Value = bps
		linked(&met.Cells[i], bps, 10e9)
	}
	other := hedged(measure.Certain, 1e9, 0)
	other.Cells[0].Experiment = "streams-1"
	asked := rrTest()
	asked.Cells[0].Findings = []measure.Finding{cpu}
	tests := []struct {
		name string
		d    *measure.Document
		want string
	}{
		{"certain", hedged(measure.Certain, 4.1e9, 0), "4.10 Gb/s local -> b, TCP, 4 streams: the receiver's CPU 3 is full"},
		{"likely", hedged(measure.Likely, 4.1e9, 0), "4.10 Gb/s local -> b, TCP, 4 streams: probably the receiver's CPU 3 is full"},
		{"possible", hedged(measure.Possible, 4.1e9, 0), "4.10 Gb/s local -> b, TCP, 4 streams: possibly the receiver's CPU 3 is full"},
		{"below the link", receiverCPUTest(), "4.10 of 10 Gb/s local -> b (42.9% of what MTU 1500 allows): fail, all interrupts of eth0 at b go to CPU 3, which is full of softirq work (98%)"},
		{"the same both ways", receiveWindowTest(), "25.3 Mb/s local -> b, 25.4 Mb/s back, TCP, 4 streams: the window that b advertises is full: 64 KiB in 20.6 ms"},
		{"full", healthyTest(), "956 of 1000 Mb/s local -> peer, 951 back (99.4% of what MTU 1500 allows): pass, the link is full"},
		{"met, and not full both ways", met, "9.41 of 10 Gb/s local -> b, 9.20 back (96.1% of what MTU 1500 allows): pass"},
		{"none", noneTest(), "41.3 Gb/s local -> b, TCP, 4 streams"},
		{"apart", directions(cpu, loss), "2.10 Gb/s b -> local, TCP, 4 streams: probably 1 of 900 segments is lost; 9.41 Gb/s local -> b: the receiver's CPU 3 is full"},
		{"one way only", directions(nothingFound(), loss), "2.10 Gb/s b -> local, TCP, 4 streams: probably 1 of 900 segments is lost; 9.41 Gb/s local -> b: no limit found"},
		{"healthy both", directions(nothingFound(), nothingFound()), "9.41 Gb/s local -> b, 2.10 Gb/s back, TCP, 4 streams"},
		{"nothing arrives", blackHoleTest(), "0 of 1 Gb/s local -> b (0% of what MTU 1500 allows): fail, segments of 1500 bytes are dropped silently: the handshake passes, no data does"},
		{"no figure", unmeasured, "no result local -> b, TCP, 4 streams: segments of 1500 bytes are dropped silently: the handshake passes, no data does"},
		{"explained", explainTest(), "4.10 of 10 Gb/s local -> b (42.9% of what MTU 1500 allows): fail, all interrupts of eth0 at b go to CPU 3, which is full of softirq work (98%); 9.41 of 10 Gb/s b -> local: the link is full"},
		{"no figure and no cause", unknown, ""},
		{"an experiment is no result", other, ""},
		{"requests", asked, "204 000 requests/s localhost, p50 4.82 µs, p99 6.47 µs"},
	}
	for _, tt := range tests {
		if got := Answer(tt.d); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestFarBelowTheLink: a rate far below the link's unit keeps its own unit.
func TestFarBelowTheLink(t *testing.T) {
	d := hedged(measure.Certain, 12.1e6, 10e9)
	d.Verdict = &measure.Verdict{Share: 0.13}
	if got, want := Answer(d), "12.1 Mb/s of 10 Gb/s local -> b (0.13% of what MTU 1500 allows): fail, the receiver's CPU 3 is full"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestStepLine(t *testing.T) {
	s := measure.Step{Title: "8 streams", From: "local", To: "b", Bps: new(4.12e9), BaseBps: new(4.1e9), RuledOut: []string{"token-bucket"}, Raised: []string{"irq-one-cpu", "receiver-cpu"}, ElapsedNs: 4e9}
	for width, want := range map[int]string{
		0:   "8 streams, local -> b: 4.12 Gb/s, against 4.10 Gb/s (+0.5%), 4 s; points to irq-one-cpu, receiver-cpu; rules out token-bucket",
		100: "8 streams, local -> b: 4.12 Gb/s, against 4.10 Gb/s (+0.5%), 4 s; points to irq-one-cpu, receiver...",
		70:  "8 streams, local -> b: 4.12 Gb/s, against 4.10 Gb/s (+0.5%), 4 s",
		40:  "8 streams, local -> b: 4.12 Gb/s, 4 s",
		20:  "8 streams, local ...",
	} {
		if got := StepLine(s, width); got != want {
			t.Errorf("at %d columns: %q, want %q", width, got, want)
		}
	}
	s = measure.Step{Experiment: "other-cpu", BaseBps: new(4.1e9), Error: "one CPU\nonly", ElapsedNs: 2e7}
	if got, want := StepLine(s, 0), "other-cpu: failed: one CPU only, 20.0 ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestExperimentsAreNoFigures: experiments are in the steps, and not among the figures.
func TestExperimentsAreNoFigures(t *testing.T) {
	d := explainTest()
	printed := textFace(t, d, TextOptions{})
	if strings.Contains(printed, "a short run") || strings.Count(printed, "  goodput  ") != 2 || strings.Contains(printed, "and 3 more flows") {
		t.Errorf("an experiment is a figure:\n%s", printed)
	}
	if html := pageOf(t, d); !strings.Contains(html, "(experiment streams-8)") || strings.Contains(html, "a short run") {
		t.Error("the page does not mark an experiment")
	}
}

// TestFindingsFitNarrowTerminals: commands stay whole, so that they can be copied; everything else fits.
func TestFindingsFitNarrowTerminals(t *testing.T) {
	for _, d := range []*measure.Document{explainTest(), receiveWindowTest(), apartTest()} {
		commands := map[string]bool{}
		for _, c := range d.Cells {
			for _, f := range c.Findings {
				if f.Fix != nil {
					for _, s := range f.Fix.Commands {
						commands[s] = true
					}
				}
			}
		}
		found := 0
		for line := range strings.SplitSeq(textFace(t, d, TextOptions{Width: 40}), "\n") {
			if commands[strings.TrimSpace(line)] {
				found++
			} else if utf8.RuneCountInString(line) > 40 {
				t.Errorf("%q", line)
			}
		}
		if found < len(commands) {
			t.Errorf("%d of %d commands are whole", found, len(commands))
		}
	}
}

// TestSameBothDirections: a direction with the same cause at the same place is not explained twice.
func TestSameBothDirections(t *testing.T) {
	for name, tt := range map[string]struct {
		d    *measure.Document
		want int
	}{
		"healthy": {healthyTest(), 1}, "another host": {receiveWindowTest(), 2}, "another cause": {apartTest(), 2},
		"one way": {receiverCPUTest(), 1}, "old document": {verdictTest(), 0}, "of the whole only": {&measure.Document{Findings: receiverCPU()}, 1},
	} {
		if got := len(newDiagnoses(tt.d)); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestHeldLadder: a ladder shows what limits the best and the worst rung.
func TestHeldLadder(t *testing.T) {
	d := heldLadder()
	const most = "highest (4 streams, default window): sender-cpu (likely): the sender's CPU 1 is full (98%)"
	const least = "lowest (1 stream, 800 KiB window): single-flow (possible): one stream uses one CPU"
	printed := textFace(t, d, TextOptions{Width: 200})
	if !strings.Contains(printed, "  - "+most+"\n  - "+least+"\n") {
		t.Errorf("not explained:\n%s", printed)
	}
	d.Cells = d.Cells[:1]
	if printed = textFace(t, d, TextOptions{Width: 200}); strings.Count(printed, "single-flow") != 1 || strings.Contains(printed, "the least") {
		t.Errorf("one rung is listed twice:\n%s", printed)
	}
}
