package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/cause/knob"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/remote"
)

func TestReadSettings(t *testing.T) {
	ends := []string{"local", "ssh://root@esx2:22"}
	tests := []struct {
		text string
		want measure.Setting
		err  string
	}{
		{"mtu=9000", measure.Setting{Knob: "mtu", Value: "9000"}, ""},
		{"tcp-rmem=4096 131072 8388608", measure.Setting{Knob: "tcp-rmem", Value: "4096 131072 8388608"}, ""},
		{"gro=on:eth0", measure.Setting{Knob: "gro", Value: "on", Interface: "eth0"}, ""},
		{"gro=on@local:eth0.7", measure.Setting{Knob: "gro", Value: "on", EndPoint: "local", Interface: "eth0.7"}, ""},
		{"irq-affinity=24 0-1,3@ssh://root@esx2:22", measure.Setting{Knob: "irq-affinity", Value: "24 0-1,3", EndPoint: "ssh://root@esx2:22"}, ""},
		{"channels=combined 4@ssh://root@esx2:22:eth1", measure.Setting{Knob: "channels", Value: "combined 4", EndPoint: "ssh://root@esx2:22", Interface: "eth1"}, ""},
		{"route-congestion=bbr:2001:db8::/64", measure.Setting{Knob: "route-congestion", Value: "bbr", Interface: "2001:db8::/64"}, ""},
		{"route-congestion=@local:10.0.0.0/8", measure.Setting{Knob: "route-congestion", EndPoint: "local", Interface: "10.0.0.0/8"}, ""},
		{"mtu=", measure.Setting{}, "no value"},
		{"mtu", measure.Setting{}, "no value"},
		{"mtu=9000@elsewhere", measure.Setting{}, "no end point elsewhere"},
		{"mtu=9000@localhost", measure.Setting{}, "no end point localhost"},
		{"mtuu=9000", measure.Setting{}, `no knob "mtuu"`},
		{"streams=4", measure.Setting{}, "an option of the test"},
		{"tcp-rmem=abc@local", measure.Setting{}, "does not consist of 3 numbers"},
		{"mtu=-5", measure.Setting{}, "is negative"},
		{"mtu=a\nb", measure.Setting{}, "does not consist of 1 number"},
		{"gro=maybe:eth0", measure.Setting{}, "neither"},
		{"qdisc=blackhole", measure.Setting{}, "drops or holds back all traffic"},
	}
	for _, tt := range tests {
		got, err := readSettings([]string{tt.text}, ends)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
				t.Errorf("%s: %v (hint %q), want %q", tt.text, err, fault.Hint(err), tt.err)
			}
			continue
		}
		if err != nil || len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %+v, %v", tt.text, got, err)
		}
	}
}

func FuzzReadSettings(f *testing.F) {
	f.Add("gro=on@b:eth0", "b")
	f.Add("route-congestion=@b:c:2001:db8::/64", "b:c")
	f.Fuzz(func(t *testing.T, text, end string) {
		all, err := readSettings([]string{text}, []string{"local", end})
		if err != nil {
			return
		}
		s := all[0]
		if _, ok := knob.Find(s.Knob); !ok || s.EndPoint != "" && s.EndPoint != "local" && s.EndPoint != end {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func TestMistypedKnob(t *testing.T) {
	_, err := onlyKnobs([]string{"tcp-rmem,tcp-wmen"})
	if err == nil || !strings.HasPrefix(fault.Hint(err), "did you mean tcp-wmem?") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
	if ids, err := onlyKnobs([]string{"tcp-rmem, mtu", "tso"}); err != nil || !cmp.Equal(ids, []string{"tcp-rmem", "mtu", "tso"}) {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestPlannedLine(t *testing.T) {
	two := []measure.Proposal{{Title: "a"}, {Title: "b"}, {Title: "c", OnlySaid: "no root"}}
	tests := []struct {
		t         measure.Tuning
		aa        int
		proposals []measure.Proposal
		want      string
	}{
		{measure.Tuning{ExpectNs: 130e9}, 0, two, "a and b: 2 changes to try at first, about 2 min 10 s; at most 10 min"},
		{measure.Tuning{ExpectNs: 130e9}, 0, two[:1], "a and b: 1 change to try at first, about 2 min 10 s; at most 10 min"},
		{measure.Tuning{ExpectNs: 1330e9}, 0, two, "a and b: 2 changes to try at first, about 22 min; the budget ends it after 10 min"},
		{measure.Tuning{}, 0, two[2:], "a and b: no change to try"},
		{measure.Tuning{DryRun: true, ExpectNs: 130e9}, 0, two, "a and b: trying the proposals would take about 2 min 10 s"},
		{measure.Tuning{ExpectNs: 37e9}, 3, two, "a and b: 3 comparisons of the state with itself, about 37 s"},
	}
	for _, tt := range tests {
		if got := plannedLine("a and b", tt.t, tt.proposals, control.Tuning{Budget: 10 * time.Minute, AA: tt.aa}); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestAcceptWithoutTerminal: without a terminal nobody can confirm a change that may cut the connection.
func TestAcceptWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	e := &env{Console: &console.Console{In: strings.NewReader("y\ny\n"), Out: &out, Err: &out}}
	self := &control.EndPoint{Name: control.Local}
	for _, tt := range []struct{ yes, cuts, want bool }{{false, false, true}, {false, true, false}, {true, true, true}} {
		v := newTuneView(t.Context(), e, remote.Pair{Local: self, Peer: self}, control.Tuning{Budget: time.Minute}, tt.yes)
		got := v.accept(measure.Proposal{Title: "MTU of 9000", Cuts: tt.cuts})
		if (got == "") != tt.want || got != "" && !strings.Contains(got, "--yes tries it") {
			t.Errorf("yes %v, cuts %v: declined %q", tt.yes, tt.cuts, got)
		}
	}
	if out.Len() > 0 {
		t.Errorf("it was asked: %q", out.String())
	}
}

// TestTuneView: on a terminal one line shows the current step and the time left, also if none is left, and
// finished lines stay.
func TestTuneView(t *testing.T) {
	var out bytes.Buffer
	self := &control.EndPoint{Name: control.Local}
	v := &tuneView{e: &env{Console: &console.Console{Err: &out}}, ctx: t.Context(), Board: &console.Board{W: &out, Width: 76}, ends: remote.Pair{Local: self, Peer: self}, how: control.Tuning{Budget: time.Minute}, until: time.Now()}
	p := measure.Proposal{Title: "receive windows of up to 25 MiB at local"}
	spec := []measure.Spec{{From: "local", To: "local"}}
	v.begin(6 * time.Second)
	v.Step("forward", spec, 0, 3)
	v.Planned(measure.Tuning{ExpectNs: 30e9}, []measure.Proposal{p})
	v.Trying(p, 0, 1, 0)
	v.Step(p.Title+": before", spec, 2, 18)
	v.Tried(measure.Attempt{Proposal: p, Outcome: measure.Undone, Reason: "none of 3 pairs was better"})
	v.Tried(measure.Attempt{Proposal: p, Outcome: measure.NoTime, Reason: "it does not fit in the time budget"})
	v.Stands(measure.Milestone{}, []measure.Cell{{From: "local", To: "local", Goodput: &measure.Figure{Value: 4.1e9}}})
	v.Clear()
	got := strings.ReplaceAll(out.String(), "\r\x1b[J", "<\n")
	want := `this machine against itself: about 8 s to measure the present state, then one change at a time; at most 1 min
run 1 of 3, forward, local -> local; no time left<
this machine against itself: 1 change to try at first, about 30 s; at most 1 min
  1 receive windows of up to 25 MiB at local
[1/1] receive windows of up to 25 MiB at local; no time left<
[1/1] run 3 of 18, before: receive windows of up to 25 MiB...; no time left<
undone     receive windows of up to 25 MiB at local: none of 3 pairs was ...
rate now   4.10 Gb/s local -> local
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWaitingIsSaid: the wait is printed also without a terminal.
func TestWaitingIsSaid(t *testing.T) {
	var out bytes.Buffer
	v := newWatch(&env{Console: &console.Console{Err: &out}}, plan.Plan{Steps: []plan.Step{{Specs: []measure.Spec{{From: "local", To: "b"}}}}}, remote.Pair{Local: &control.EndPoint{Name: control.Local}, Peer: &control.EndPoint{Name: "b"}}, time.Second, false)
	v.Hear(control.Waiting{EndPoint: "b", Ahead: 1})
	if out.String() != "b is busy: waiting for another test\n" {
		t.Errorf("%q", out.String())
	}
}

// TestHear: each question takes one line, and the end of the input counts as no.
func TestHear(t *testing.T) {
	e := &env{Console: &console.Console{In: strings.NewReader("y\nno\n")}}
	v := &tuneView{e: e, ctx: t.Context()}
	for _, want := range []string{"y", "no", "", ""} {
		if got := v.hear(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestScriptNames: no script overwrites another, and each name is short enough for a file system.
func TestScriptNames(t *testing.T) {
	long := strings.Repeat("b", 300)
	names := scriptNames("fix", []string{"a/b", "a_b", "A_B", "x", "x.undo", long, long + "c"})
	seen := map[string]bool{}
	for _, base := range names {
		for _, ending := range []string{".sh", ".undo.sh"} {
			name := strings.ToLower(base + ending)
			if seen[name] || len(name) > 255 || !strings.HasPrefix(name, "fix-") {
				t.Errorf("%s is taken, or too long", name)
			}
			seen[name] = true
		}
	}
	if names[0] != "fix-a_b" || names[3] != "fix-x" {
		t.Errorf("%q", names)
	}
}

func TestFileWord(t *testing.T) {
	for name, want := range map[string]string{"esx2": "esx2", "ssh://root@10.0.0.2:22": "ssh___root_10.0.0.2_22", "../../etc/x": ".._.._etc_x", "a\nb": "a_b"} {
		if got := fileName(name, '_'); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
