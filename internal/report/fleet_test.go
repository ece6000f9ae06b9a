package report

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/report/fleet"
	"thru/internal/unit"
)

// fleetHosts returns four hosts in the four possible states, and one with a foreign name.
func fleetHosts() []fleet.HostRow {
	return []fleet.HostRow{
		{Name: "web1", Labels: map[string]string{"site": "east", "role": "web"}, Thru: "0.1.0", Wire: "1.4", Addrs: []string{"10.1.0.1", "fd00::1"}, CPUs: 8, Ago: 300 * time.Millisecond, Online: true},
		{Name: "web2", Labels: map[string]string{"site": "east", "role": "web"}, Thru: "0.1.0", Wire: "1.4", Addrs: []string{"10.1.0.2"}, CPUs: 8, Ago: 2 * time.Second, Online: true, Busy: "tests for ops since 8 s"},
		{Name: "web1", Thru: "0.1.0", Wire: "1.4", Ago: 4 * time.Second, Online: true, Refused: "the name web1 belongs to another key"},
		{Name: "db-with-a-very-long-name-that-nobody-would-type.example.org", Labels: map[string]string{"role": "db"}, Wire: "1.3", CPUs: 64, Ago: 190 * time.Second},
		{Name: "\x1b[31mevil\u202e", Labels: map[string]string{"\x00": "<b>"}, Busy: "\r", Online: true},
	}
}

func hostsText(t *testing.T, hosts []fleet.HostRow, o TextOptions) string {
	t.Helper()
	var b strings.Builder
	if err := fleet.HostsTable(&b, hosts, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHostsTable(t *testing.T) {
	got := hostsText(t, fleetHosts()[:3], TextOptions{Width: 110})
	want := `3 hosts: 1 free, 1 busy, 1 refused

  name  state                          labels              CPUs     seen  thru   wire  addresses
  web1  free                           role=web site=east     8      now  0.1.0  1.4   10.1.0.1 fd00::1
  web2  busy: tests for ops since 8 s  role=web site=east     8  2 s ago  0.1.0  1.4   10.1.0.2
  web1  refused                        -                      -  4 s ago  0.1.0  1.4   -
web1 is refused: the name web1 belongs to another key
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := hostsText(t, nil, TextOptions{}); got != "no hosts\n" {
		t.Errorf("of none: %q", got)
	}
}

// fits checks that no line exceeds the width, and that no foreign text gets through.
func fits(t *testing.T, name, text string, width int) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%s: %d columns of %d: %q", name, n, width, line)
		}
		if strings.HasSuffix(line, " ") {
			t.Errorf("%s: spaces at the end of %q", name, line)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("%s: %q has %U", name, line, r)
			}
		}
	}
}

func TestHostsTableFits(t *testing.T) {
	for width := 60; width <= 200; width += 20 {
		got := hostsText(t, fleetHosts(), TextOptions{Width: width})
		fits(t, fmt.Sprint("hosts at ", width), got, width)
		if !strings.Contains(got, "refused") || !strings.Contains(got, "3 min 10 s ago") {
			t.Errorf("at %d columns something is left out:\n%s", width, got)
		}
	}
}

// meshPlan is a plan of three hosts, each to each other, in two steps.
func meshPlan() plan.Plan {
	p := plan.Plan{Command: "run", Name: "mesh", Order: plan.OrderSimultaneous, Repeat: plan.Repeat{Min: 3, Max: 3},
		EndPoints: []plan.EndPoint{{Name: "a", At: "ssh://root@10.0.0.1", Labels: map[string]string{"site": "east"}}, {Name: "b", At: "b"}, {Name: "local", DataAddr: "10.1.0.3"}},
		Targets: []plan.Target{{Of: plan.TargetTotal, Figure: "goodput_bps", Wanted: 9e9}, {Of: plan.TargetPair, Figure: "share_pct", Wanted: 95, Where: []measure.Axis{{Name: "streams", Value: "8"}}},
			{Of: plan.TargetPair, Figure: "loss_pct", Wanted: 0.1, AtMost: true}, {Of: plan.TargetTotal, Figure: "rtt_loaded_ns", Wanted: 5e6, AtMost: true, Rung: "LAN"}}}
	for _, streams := range []int{1, 8} {
		s := plan.Step{Label: unit.Plural(streams, "stream"), Independent: true}
		for _, from := range []string{"a", "b", "local"} {
			for _, to := range []string{"a", "b", "local"} {
				if from != to {
					s.Specs = append(s.Specs, measure.Spec{From: from, To: to, Protocol: measure.TCP, Streams: streams, Duration: 10e9})
				}
			}
		}
		p.Steps = append(p.Steps, s)
	}
	last := plan.Step{Label: "four end points a host", Rung: "LAN"}
	for range 4 {
		last.Specs = append(last.Specs, measure.Spec{From: "a", To: "b", Protocol: measure.UDP, Rate: 1e9, Streams: 1, Window: measure.Pair{Send: 800 << 10, Recv: 800 << 10}, Duration: 60e9})
	}
	p.Steps = append(p.Steps, last, plan.Step{Label: "self", Baseline: true, Specs: []measure.Spec{{From: "a", To: "a", Protocol: measure.TCP, Streams: 1, Duration: 3e9}}})
	return p
}

func planText(t *testing.T, p plan.Plan, width int) string {
	t.Helper()
	var b strings.Builder
	if err := fleet.PlanList(&b, p, TextOptions{Width: width}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPlanList(t *testing.T) {
	mesh := meshPlan()
	want := `mesh: 7 pairs in 4 steps, 3 runs of each, about ` + doc.AboutTime(mesh.Time()) + `
  order         simultaneous: all pairs of a step at once
  end points    a (ssh://root@10.0.0.1, site=east)
                b
                local (data at 10.1.0.3)
  targets       total goodput at least 9.00 Gb/s
                each pair's goodput at least 95% of the ceiling, where streams 8
                each pair's loss at most 0.1%
                total RTT under load at most 5.00 ms, on the rung LAN

  step  what                         flows  traffic                                             time
     1  1 stream                         6  TCP, 10 s                                         12.2 s
     2  8 streams                        6  TCP, 10 s                                         12.2 s
     3  LAN, four end points a host      4  UDP, 1 stream, 1.00 Gb/s requested, 800 KiB    1 min 1 s
                                            window, 1 min
     4  self (baseline, once)            1  TCP, 1 stream, 3 s                                 4.2 s

  steps 1-2     a -> b, a -> local, b -> a, b -> local, local -> a, local -> b
  step 3        a -> b (4 flows)
  step 4        a to itself
`
	got := planText(t, meshPlan(), 100)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	long := meshPlan()
	for i := range long.Steps {
		long.Steps[i].Label = strings.Repeat("<long>\x1b ", 30)
		for j := range long.Steps[i].Specs {
			long.Steps[i].Specs[j].From = strings.Repeat("n", 40) + fmt.Sprint(j)
		}
	}
	for width := 60; width <= 200; width += 20 {
		fits(t, "plan", planText(t, meshPlan(), width), width)
		fits(t, "long plan", planText(t, long, width), width)
	}
	precise := meshPlan()
	precise.Repeat, precise.Name = plan.Repeat{Min: 3, Max: 15, PrecisionPct: 2.5}, ""
	if got, want := fleet.PlanLine(precise), "7 pairs in 4 steps, 3 to 15 runs of each until they agree within 2.5%, at most "+doc.AboutTime(precise.Time()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPageOfAFleetIsSmall: many pairs, hosts, paths, gates and targets.
func TestPageOfAFleetIsSmall(t *testing.T) {
	for _, x := range [][2]int{{500, 1}, {100, 99}, {30, 29}, {300, 4}} {
		d := manyPairs(x[0], x[1])
		page := pageOf(t, d)
		if len(page) > 1_000_000 {
			t.Errorf("the page of %d hosts that send to %d others has %d bytes", x[0], x[1], len(page))
		}
		if has := strings.Contains(page, `<table class="matrix`); has != (x[1] > 4) {
			t.Errorf("%d hosts, %d others: a matrix %v", x[0], x[1], has)
		}
		said := textFace(t, d, TextOptions{Width: 100})
		if n := strings.Count(said, "\n"); n > 250 {
			t.Errorf("the text of %d hosts that send to %d others has %d lines", x[0], x[1], n)
		}
		first, _, _ := strings.Cut(said, "\n")
		if want := fmt.Sprintf("%d pairs at once carried ", x[0]*x[1]); !strings.HasPrefix(first, want) {
			t.Errorf("%q, want %q", first, want)
		}
	}
}

// spoil puts foreign text and absurd figures everywhere in a value.
func spoil(v reflect.Value, n *int) {
	const evil = "\x1b[31m<script>alert(1)</script>\r\n\u202e\"'&\x00\u0085"
	switch *n++; v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem(), n)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spoil(v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				spoil(v.Field(i), n)
			}
		}
	case reflect.String:
		v.SetString(evil + fmt.Sprint(*n%3))
	case reflect.Float64:
		v.SetFloat([]float64{1e300, -1e300, 0, math.SmallestNonzeroFloat64}[*n%4])
	case reflect.Int64:
		v.SetInt([]int64{math.MinInt64, math.MaxInt64, 0}[*n%3])
	}
}

func TestForeignFleetsAreHarmless(t *testing.T) {
	for name, d := range fleetDocuments() {
		for _, part := range []any{&d.Groups, &d.Ladder, &d.Targets, &d.Comparisons, &d.Plan, &d.EndPoints, &d.Cells} {
			spoil(reflect.ValueOf(part).Elem(), new(int))
			for _, r := range textFace(t, d, TextOptions{Width: 80}) {
				if r != '\n' && !unicode.IsPrint(r) {
					t.Fatalf("text of %s has %U", name, r)
				}
			}
			page := pageOf(t, d)
			for _, bad := range []string{"<script", "\x00", "\x1b", "\u202e", "NaN", "Inf", "ZgotmplZ"} {
				if strings.Contains(page, bad) {
					t.Errorf("the page of %s has %q", name, bad)
				}
			}
			if len(page) > 1_000_000 {
				t.Errorf("the page of %s has %d bytes", name, len(page))
			}
		}
	}
}

// TestLongNamesFit: host names longer than a terminal is wide.
func TestLongNamesFit(t *testing.T) {
	for name, d := range fleetDocuments() {
		long := func(s *string) { *s = strings.Repeat("x", 70) + *s }
		for i := range d.EndPoints {
			long(&d.EndPoints[i].Name)
		}
		for i := range d.Cells {
			long(&d.Cells[i].From)
			long(&d.Cells[i].To)
		}
		for i := range d.Groups {
			long(&d.Groups[i].Label)
			for j := range d.Groups[i].Failed {
				long(&d.Groups[i].Failed[j].From)
				long(&d.Groups[i].Failed[j].To)
			}
			for j := range d.Groups[i].Hosts {
				long(&d.Groups[i].Hosts[j].Name)
			}
		}
		d.Ladder = nil // its names come from the plan
		for width := 60; width <= 200; width += 35 {
			_, below, _ := strings.Cut(textFace(t, d, TextOptions{Width: width}), "\n\n") // the answer is a sentence
			for line := range strings.SplitSeq(below, "\n") {
				if n := utf8.RuneCountInString(line); n > width && !strings.Contains(line, ", TCP, ") {
					t.Errorf("%s at %d columns: %q", name, width, line)
				}
			}
		}
	}
}

// TestMatrix: a matrix wider than the terminal continues below, with the numbers of the hosts if names do not
// fit.
func TestMatrix(t *testing.T) {
	for _, hosts := range []int{16, 24} {
		d := manyPairs(hosts, hosts-1)
		said := textFace(t, d, TextOptions{Width: 100})
		blocks := strings.Count(said, "\n   "+strings.Repeat(" ", 33)) // the heads of its columns
		if want := map[int]int{16: 2, 24: 2}[hosts]; blocks > want {
			t.Errorf("%d hosts: %d blocks, want %d:\n%s", hosts, blocks, want, said)
		}
		fits(t, "matrix", said, 100)
	}
	if said := textFace(t, manyPairs(25, 24), TextOptions{Width: 100}); !strings.Contains(said, "Slowest pairs") || strings.Contains(said, "senders down") {
		t.Errorf("25 hosts do not have the worst pairs in place of a matrix:\n%s", said)
	}
}

func TestPairWarnings(t *testing.T) {
	d := meshTest()
	for i := range d.Cells {
		c := &d.Cells[i]
		c.Warnings = nil
		switch {
		case c.Group == 0:
			c.Warnings = []string{fmt.Sprintf("%s: all of CPU %d was used, at %d.5%%", c.To, i%3, 90+i)}
		case i == 13:
			c.Warnings = []string{"a window of 4 KiB is small."}
		}
	}
	want := "12 of 24 cells: a, b, c, d: all of CPU 0-2 was used, at 90.5-101.5%|a -> c: a window of 4 KiB is small."
	if got := strings.Join(warnings(d), "|"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFailures: a lost host is reported once, and a pair that failed midway is not compared with complete
// ones.
func TestFailures(t *testing.T) {
	d := meshTest()
	for i := range d.Groups[1].Failed {
		d.Groups[1].Failed[i].Error = d.EndPoints[3].Lost
	}
	d.Plan.Done = 1
	want := "d was lost: no answer for 10 s|failed: a -> d, b -> d, c -> d, d -> a, d -> b, d -> c: d was lost|1 of 2 steps were measured"
	if got := strings.Join(fleet.New(d).Failed, "|"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRecommendedTexts: a sweep ends with a recommendation and its confidence.
func TestRecommendedTexts(t *testing.T) {
	one := func(name, value string) []measure.Axis { return []measure.Axis{{Name: name, Value: value}} }
	best := measure.Recommended{From: "a", To: "b", Use: one("length", "128K"), Best: one("length", "128K"), Bps: 9e9, BestBps: 9e9, Equal: 1, Settings: 4, Runs: 5}
	alike := best
	alike.Use, alike.Bps, alike.Equal, alike.Runs = one("length", "16K"), 8.9e9, 3, 1
	for want, d := range map[string]*measure.Document{
		"use length 128K: 9.00 Gb/s, the highest rate of 4 settings": {Recommended: []measure.Recommended{best}},
		"use length 16K: 8.90 Gb/s; the highest rate of 4 settings, 9.00 Gb/s with length 128K, is hardly higher (one run each; repeat for certainty: --repeat 5)": {Recommended: []measure.Recommended{alike}},
	} {
		if got := recommendedTexts(d); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := recommendedTexts(&measure.Document{Recommended: []measure.Recommended{best, alike}}); len(got) != 2 || !strings.HasPrefix(got[1], "a -> b: use ") {
		t.Errorf("%q", got)
	}
}
