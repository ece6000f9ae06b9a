package report

import (
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/report/tuning"
)

func TestTuningAnswer(t *testing.T) {
	changed := func(change func(d *measure.Document)) *measure.Document {
		d := tunedTest()
		change(d)
		return d
	}
	tests := []struct {
		name string
		d    *measure.Document
		want string
	}{
		{"kept", tunedTest(), "38.9 -> 181 Mb/s local -> b, 1.20 -> 186 Mb/s back: 2 of 4 changes kept; the target of 150 Mb/s is met"},
		{"a target that a busy host may miss", changed(func(d *measure.Document) {
			d.Tuning.TargetBps = 185e6
			for i := range d.Cells {
				for j := range d.Cells[i].Runs {
					for k := range d.Cells[i].Runs[j].Flows {
						x := d.Cells[i].Runs[j].Flows[k].Sender // may be shared between runs
						if x != nil {
							x.EndPoint, x.Base = "b", &measure.HostSpan{CPUs: []measure.CPU{{User: 99, Idle: 1}}}
						}
					}
				}
			}
		}), "38.9 -> 181 Mb/s local -> b, 1.20 -> 186 Mb/s back: 2 of 4 changes kept; inconclusive: the target of 185 Mb/s is not met, and other work kept b busy"},
		{"a target that one direction misses", changed(func(d *measure.Document) { d.Tuning.TargetBps = 185e6 }), "38.9 -> 181 Mb/s local -> b, 1.20 -> 186 Mb/s back: 2 of 4 changes kept; the target of 185 Mb/s is not met"},
		{"nothing to change", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{Journey: d.Tuning.Journey[:1]}
		}), "38.9 Mb/s local -> b, 1.20 Mb/s back: no change was found"},
		{"all declined", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{Journey: d.Tuning.Journey[:1], Attempts: d.Tuning.Attempts[4:5]}
		}), "38.9 Mb/s local -> b, 1.20 Mb/s back: no change was tried"},
		{"interrupted before anything was looked for", changed(func(d *measure.Document) {
			d.Tuning, d.Error = &measure.Tuning{}, &measure.Error{Message: "interrupted", ExitCode: 1}
			for i := range d.Cells {
				d.Cells[i].Experiment = ""
			}
			d.Cells = d.Cells[:2]
		}), "38.9 Mb/s local -> b, 1.20 Mb/s back: the tuning ended before it tried a change"},
		{"nothing among what may be changed", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{Journey: d.Tuning.Journey[:1], Only: []string{"mtu"}}
		}), "38.9 Mb/s local -> b, 1.20 Mb/s back: no change was found within --only"},
		{"advice on some knobs", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{DryRun: true, Journey: d.Tuning.Journey[:1], Only: []string{"mtu"}}
		}), "38.9 Mb/s local -> b, 1.20 Mb/s back: no change was found within --only"},
		{"the target was met before", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{TargetBps: 1e6, Journey: d.Tuning.Journey[:1], Advice: d.Tuning.Advice}
		}), "38.9 Mb/s local -> b, 1.20 Mb/s back: no change was needed; the target of 1.00 Mb/s is met"},
		{"the only one failed", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{Journey: d.Tuning.Journey[:1], Attempts: d.Tuning.Attempts[2:3]}
			d.Tuning.Attempts[0].Outcome = measure.Failed
		}), "38.9 Mb/s local -> b, 1.20 Mb/s back: the one change tried failed, and nothing was changed"},
		{"the only one was not in use", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{Journey: d.Tuning.Journey[:1], Attempts: d.Tuning.Attempts[3:4]}
		}), "38.9 Mb/s local -> b, 1.20 Mb/s back: the one change tried did not take effect, and was undone"},
		{"all kept", changed(func(d *measure.Document) {
			d.Tuning.TargetBps, d.Tuning.Attempts = 0, d.Tuning.Attempts[:2]
		}), "38.9 -> 181 Mb/s local -> b, 1.20 -> 186 Mb/s back: all 2 changes kept"},
		{"before any figure", changed(func(d *measure.Document) {
			d.Cells, d.Tuning, d.Error = nil, &measure.Tuning{}, &measure.Error{Message: "b cannot be reached"}
		}), ""},
		{"advice", advisedTest(), "25.3 Mb/s local -> b, 25.4 Mb/s back: 3 changes to try, first: receive windows of up to 25 MiB at b; 1 further check"},
		{"nothing helps", unhelpedTest(), "941 Mb/s local -> b, 938 Mb/s back: the one change tried did not help measurably, and was undone"},
		{"the same", sameTest(), "60 comparisons of two equal states: 56 equivalent, 3 undecided, 1 worse"},
		{"restored", restoredTest(), "2 of 3 settings are restored, 1 is not"},
		{"a damaged journal", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{Restored: append(restoredTest().Tuning.Restored[1:2:2], measure.Changed{Outcome: measure.Failed, Error: "damaged"})}
		}), "the setting is restored; 1 journal could not be read completely"},
		{"a damaged journal alone", changed(func(d *measure.Document) {
			d.Tuning = &measure.Tuning{Restored: []measure.Changed{{Outcome: measure.Failed, Error: "damaged"}}}
		}), "1 journal could not be read completely"},
		{"nothing to restore", &measure.Document{Command: "tune", Tuning: &measure.Tuning{}}, "nothing to undo: thru has changed nothing here"},
	}
	for _, tt := range tests {
		if got := Answer(tt.d); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAttemptLine(t *testing.T) {
	attempts := tunedTest().Tuning.Attempts
	tests := []struct {
		attempt int
		width   int
		want    string
	}{
		{0, 0, "kept       receive windows of up to 25 MiB at b: 38.9 -> 181 Mb/s, +365% (+340..+391%)"},
		{0, 60, "kept       receive windows of up to 25 MiB at b: 38.9 -> ..."},
		{1, 0, "kept       TSO off at b (eth0): 1.20 -> 186 Mb/s, x155 (x141..x162)"},
		{4, 0, "declined   MTU of 9000 at b (eth0): it may cut the connection, and --yes was not given"},
	}
	for _, tt := range tests {
		if got := tuning.AttemptLine(attempts[tt.attempt], tt.width); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestGainIsMeasuredAnew: the effect of a kept change is that of the runs after the decision.
func TestGainIsMeasuredAnew(t *testing.T) {
	a := tunedTest().Tuning.Attempts[0]
	anew := *a.Comparison
	anew.ChangePct, anew.LowPct, anew.HighPct = new(3.1), new(2.2), new(4.0)
	a.Gain = &anew
	if got := tuning.AttemptLine(a, 0); !strings.HasSuffix(got, ", +3.1% (+2.2..+4%)") && !strings.HasSuffix(got, ", +3.1% (+2.2..+4.0%)") {
		t.Error(got)
	}
	d := tunedTest()
	d.Tuning.Attempts[0] = a
	if figures := tuning.New(d).Attempts[0].Figures; !strings.Contains(figures, "+3.1%") {
		t.Error(figures)
	}
}

// TestAdviceCounts: commands that set nothing are no change.
func TestAdviceCounts(t *testing.T) {
	d := advisedTest()
	d.Tuning.Advice[3].Commands[0].Set = []string{"tc -s qdisc show dev eth0"}
	if got := Answer(d); !strings.HasSuffix(got, "25 MiB at b; 1 further check") || !strings.Contains(got, "3 changes to try") {
		t.Errorf("%q", got)
	}
}

// TestFoldUntried: changes for which the budget had no time are one line; one that it ended is not among
// them.
func TestFoldUntried(t *testing.T) {
	d := tunedTest()
	none := measure.Attempt{Proposal: mtuProposal(), Outcome: measure.NoTime, Reason: "it does not fit in the time budget"}
	begun := none
	begun.Comparison = against("local -> b", 1e6, 1e6, -1, 1, 3, measure.Undecided)
	d.Tuning.Attempts = []measure.Attempt{none, begun, none, none, none}
	got := tuning.New(d).Attempts
	if len(got) != 3 || got[0].Title != mtuProposal().Title || got[1].Figures == "" || !strings.HasPrefix(got[2].Title, "3 changes,") || got[2].Reason != none.Reason {
		t.Errorf("%+v", got)
	}
}

func TestSourceText(t *testing.T) {
	for source, want := range map[string]string{
		"RFC 6349, 3.3.1; checklist S-09; Linux ip-sysctl.rst":        "RFC 6349, 3.3.1; Linux ip-sysctl.rst",
		"measured (reference, lab); checklist S-07":                   "measured with thru in a lab",
		"measured (docs/causes.md); measured (ARCHITECTURE.md)":       "measured with thru in a lab",
		"reference, causes (too-few-queues, numa); Linux scaling.rst": "Linux scaling.rst",
		"checklist B-17, C-18":                                        "",
	} {
		if got := result.SourceText(source); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

// TestKnobsUntuned: if nothing may be set, no knob is shown as settable.
func TestKnobsUntuned(t *testing.T) {
	var b strings.Builder
	point := tunedTest().EndPoints[1]
	point.NoTune = "agent: this client may measure here, but not tune"
	if err := tuning.Knobs(&b, []measure.EndPoint{point}, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasPrefix(got, "b: this client may measure here, but not tune\n") || strings.Contains(got, "settable") || strings.Contains(got, "cannot be set") {
		t.Errorf("%s", got)
	}
}

// TestLastState: the page of a tuning shows the cells of its final state, whatever its journey claims, and
// never those that were compared before.
func TestLastState(t *testing.T) {
	d := tunedTest()
	v := newView(d)
	if len(v.Cells) != 2 || v.Cells[0].Source.Goodput.Value != 181e6 || v.Cells[0].Tried {
		t.Errorf("%d cells of the last state", len(v.Cells))
	}
	d.Tuning.Journey[2].Cells = []int{-1, 99}
	for i := range d.Cells[1:] {
		d.Cells[i+1].Experiment = "tune-3"
	}
	d.Cells[0].Experiment = ""
	if v := newView(d); len(v.Cells) != 1 {
		t.Errorf("%d cells, want the one that is no experiment", len(v.Cells))
	}
}

func TestKnobs(t *testing.T) {
	var b strings.Builder
	points := append(tunedTest().EndPoints, measure.EndPoint{Name: "c"})
	if err := tuning.Knobs(&b, points, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"local: thru does not run as root here\n", "b: 3 knobs\n", "cannot be set rx-ring eth0 (the driver has no", "up to 4096 131072 2147483647", " on off\n", "256 ", " no\n", "c: no setting is available\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
