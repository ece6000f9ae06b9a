package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/planfile"
	"thru/internal/runs"
)

// flow returns a Spec between two end points.
func flow(from, to string) measure.Spec {
	return measure.Spec{From: from, To: to, Streams: 1, Duration: int64(time.Second), Protocol: measure.TCP}
}

// sample returns a plan of two rungs and of three pairs at once.
func sample() plan.Plan {
	four := []measure.Axis{{Name: "streams", Value: "4"}}
	return plan.Plan{
		Name:      "sample",
		Targets:   []plan.Target{{Where: four}, {Rung: plan.RungLocalhost}, {}},
		EndPoints: []plan.EndPoint{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Steps: []plan.Step{
			{Label: "1 stream", Rung: plan.RungLocalhost, Specs: []measure.Spec{flow("a", "a")}},
			{Label: "4 streams", Rung: plan.RungInterconnect, Axes: four, Specs: []measure.Spec{flow("a", "b")}},
			{Label: "3 pairs, 4 streams", Axes: four, Independent: true, Labels: []string{"ab", "bc", "ca"}, Specs: []measure.Spec{flow("a", "b"), flow("b", "c"), flow("c", "a")}},
		},
	}
}

func TestOnly(t *testing.T) {
	for _, tt := range []struct {
		words   []string
		steps   int
		ends    int
		targets int
	}{
		{nil, 3, 3, 3}, {[]string{"streams=4"}, 2, 3, 2}, {[]string{"INTER"}, 1, 2, 2}, {[]string{"local"}, 1, 1, 2}, {[]string{"pairs", "local"}, 2, 3, 3},
		{[]string{"nosuch"}, 0, 0, 0}, {[]string{"streams=8"}, 0, 0, 0},
	} {
		p := sample()
		err := runs.Only(&p, tt.words)
		if tt.steps == 0 {
			if fault.Code(err) != fault.Usage || !strings.Contains(fault.Hint(err), "3 pairs, 4 streams") {
				t.Errorf("%q: %v", tt.words, err)
			}
			continue
		}
		if len(p.Targets) != tt.targets {
			t.Errorf("%q: %d targets", tt.words, len(p.Targets))
		}
		if err != nil || len(p.Steps) != tt.steps || len(p.EndPoints) != tt.ends {
			t.Errorf("%q: %v, %d steps, %d end points", tt.words, err, len(p.Steps), len(p.EndPoints))
		}
	}
}

// TestSetLinks: a rate applies to the plan, to the topmost rung, or to a named one.
func TestSetLinks(t *testing.T) {
	for _, tt := range []struct {
		stated []string
		rates  string // of the plan and of each step
		hint   string
	}{
		{nil, "0 [0 0 0]", ""},
		{[]string{"10G"}, "0 [0 10000000000 0]", ""},
		{[]string{"across=1G", "localhost=40G"}, "0 [40000000000 1000000000 0]", ""},
		{[]string{"Interconnect = 1G"}, "0 [0 1000000000 0]", ""},
		{[]string{"lan=1G"}, "", "the rungs are: localhost, interconnect"},
		{[]string{"across=fast"}, "", "--link-rate takes a value"},
	} {
		p := sample()
		err := runs.SetLinks(&p, tt.stated)
		if tt.hint != "" {
			if fault.Code(err) != fault.Usage || !strings.HasPrefix(fault.Hint(err), tt.hint) {
				t.Errorf("%q: %v, hint %s", tt.stated, err, fault.Hint(err))
			}
			continue
		}
		var steps []int64
		for _, s := range p.Steps {
			steps = append(steps, s.Link.RateBps)
		}
		if got := fmt.Sprint(p.Link.RateBps, " ", steps); err != nil || got != tt.rates {
			t.Errorf("%q: %v, %s", tt.stated, err, got)
		}
	}
	p := sample()
	p.Steps = p.Steps[2:]
	if err := runs.SetLinks(&p, []string{"1G"}); err != nil || p.Link.RateBps != 1e9 {
		t.Errorf("without rungs: %v, %+v", err, p.Link)
	}
}

func TestRungsOfFlags(t *testing.T) {
	for _, tt := range []struct {
		same, lan, across string
		want              string
	}{
		{"a,b", "a,c", "a,d", "localhost a a, virtual switch a b, LAN a c, interconnect a d"},
		{"", "", "x, y", "localhost x x, interconnect x y"},
		{"a", "", "", "error"}, {"a,a", "", "", "error"}, {"a,b,c", "", "", "error"}, {",b", "", "", "error"},
	} {
		rungs, err := (&ladderCmd{SameHost: tt.same, SameLAN: tt.lan, Across: tt.across}).pairs()
		var got []string
		for _, r := range rungs {
			got = append(got, r.Name+" "+r.From+" "+r.To)
		}
		if err != nil {
			got = []string{"error"}
			if fault.Code(err) != fault.Usage {
				t.Error(err)
			}
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%q %q %q: %s, want %s", tt.same, tt.lan, tt.across, s, tt.want)
		}
	}
}

// TestRunView checks that redrawn lines are removed, and that a step leaves one line.
func TestRunView(t *testing.T) {
	var out bytes.Buffer
	p := sample()
	v := newRunView(&env{Console: &console.Console{Err: &out}}, p, nil, false)
	v.W, v.Width = &out, 80
	v.Checking("facts")
	v.Step("3 pairs, 4 streams", p.Steps[2].Specs, 2, 3)
	receives := bus.Event{Kind: bus.EventProgress, Bytes: 125e6, SpanNs: 1e9}
	v.drawn = time.Time{}
	v.Live(control.Live{Flow: 1, EndPoint: "c", Event: receives})
	v.drawn = time.Time{}
	v.Live(control.Live{Flow: 0, EndPoint: "b", Event: receives})
	v.Failed(p.Steps[2].Specs[2], errors.New("closed"))
	if s := v.state(); s.Bps == nil || *s.Bps != 2e9 || !s.Pairs[2].Failed || s.Failed != 1 || s.Turn != 3 || s.Turns != 3 {
		t.Errorf("%+v", s)
	}
	for i, x := range p.Steps[2].Specs {
		c := measure.Cell{From: x.From, To: x.To, Spec: x, Runs: []measure.Run{{}}}
		if i < 2 {
			c.Runs[0].Goodput = new(1e9)
		}
		v.Ran(&c)
	}
	v.stepOver()
	screen := drawn(out.String())
	if want := "c -> a failed: closed\n3/3    2.00 Gb/s   3 pairs, 4 streams"; strings.TrimSpace(screen) != want {
		t.Errorf("the screen shows %q, want %q", screen, want)
	}
}

// drawn returns what a terminal finally shows; it interprets the control sequences that runView uses.
func drawn(text string) string {
	var lines []string
	at := 0
	put := func(s string) {
		for len(lines) <= at {
			lines = append(lines, "")
		}
		lines[at] += s
	}
	for len(text) > 0 {
		var up int
		switch n, _ := fmt.Sscanf(text, "\x1b[%dA", &up); {
		case n == 1:
			at -= up
			text = text[strings.IndexByte(text, 'A')+1:]
		case strings.HasPrefix(text, "\r\x1b[J"):
			lines = append(lines[:at], "")
			text = text[len("\r\x1b[J"):]
		case text[0] == '\n':
			put("")
			at++
			text = text[1:]
		default:
			put(text[:1])
			text = text[1:]
		}
	}
	return strings.Join(lines, "\n")
}

// TestForceIsKept: a run that began with --force resumes with it, and a run that a gate has ended may resume
// with it.
func TestForceIsKept(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	text, err := planfile.Starter("mesh")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ began, now, want bool }{{true, false, true}, {false, true, true}, {false, false, false}} {
		j, err := runs.Begin("", text, runs.Head{Command: "run", Plan: "a.yaml", Steps: 3, Options: runs.Options{Time: "1", Force: tt.began}})
		if err != nil {
			t.Fatal(err)
		}
		j.Close()
		r := &planRun{env: &env{Console: &console.Console{}}, options: runs.Options{Force: tt.now}}
		if err := r.open(t.Context(), j.Dir); err != nil || r.options.Force != tt.want || r.options.Time != "1" || r.journal.Head.Options.Force != tt.want {
			t.Errorf("%+v: %v, %+v", tt, err, r.options)
		}
		r.journal.Close()
	}
}
