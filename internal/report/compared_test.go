package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/chromedp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"thru/internal/compare"
	"thru/internal/doc"
	blocks "thru/internal/doc/html"
	"thru/internal/measure"
	"thru/internal/report/compared"
)

const comparisonSchema = "../../docs/comparison.schema.json"

// comparisons returns those of the golden tests.
func comparisons() map[string]*measure.Compared {
	side := func(name string) measure.ComparedSide {
		return measure.ComparedSide{Name: name, Results: []measure.ComparedResult{{Name: "20260314-092653-a3f9", Command: "test", Thru: "0.1.0", StartedAt: began()}}}
	}
	week := measure.ComparedSide{Name: "last-week"}
	for i := range 7 {
		week.Results = append(week.Results, measure.ComparedResult{Name: "20260307-09265" + string(rune('0'+i)), Command: "test", StartedAt: began().AddDate(0, 0, i-7)})
	}
	sample := func(v float64, n int) *measure.Sample {
		return &measure.Sample{Value: v, Low: v * 0.99, High: v * 1.01, Units: n}
	}
	worse := measure.ComparedCell{From: "local", To: "peer", What: "TCP, 4 streams", Figure: "goodput_bps", Before: sample(956e6, 5), After: sample(812e6, 5), Basis: measure.OfRuns,
		ChangePct: new(-15.06), LowPct: new(-16.02), HighPct: new(-14.2), LevelPct: new(97.5), Outcome: measure.Worse, Reason: "beyond 2%; of one session each: what differs from day to day is not in it",
		Settings: []measure.SettingDiff{{Name: "MSS in use", Before: "8948", After: "1448"}},
		Guards: []measure.ComparedRail{{Name: "CPU per Gb/s, receiver", Unit: "pct_per_gbps", Before: 12.1, After: 31, ChangePct: new(156.2), Worse: true, Bar: "10%"},
			{Name: "RTT under load", Unit: "ns", Before: 8e6, After: 4e6, ChangePct: new(-50.0), Better: true, Bar: "10%"}, {Name: "sent again", Unit: "pct", Bar: "0.1 percentage points"}}}
	back := worse
	back.From, back.To, back.Outcome, back.ChangePct, back.LowPct, back.HighPct, back.Reason = "peer", "local", measure.Equivalent, new(0.1), new(-0.4), new(0.6), "within 2%"
	back.After, back.Guards, back.Settings = sample(957e6, 5), nil, nil
	requests := measure.ComparedCell{From: "local", To: "peer", What: "TCP request and response, 1 stream", Figure: "transactions_per_s", Before: sample(20400, 7), After: sample(24800, 1), Basis: measure.OfResults,
		ChangePct: new(21.6), LowPct: new(12.0), HighPct: new(32.0), LevelPct: new(95.0), Outcome: measure.Improved, Indicative: true, Reason: "beyond 2%; indicative: 1 against 7 results"}
	refused := measure.ComparedCell{From: "local", To: "peer", What: "TCP, 1 stream", Figure: "goodput_bps", Before: sample(9e9, 1), After: sample(4e9, 1), Outcome: measure.NotCompared,
		Reason: "streams: 4 before, 1 after; figures of different things (--anyway compares them)", Settings: []measure.SettingDiff{{Name: "streams", Before: "4", After: "1", Refuses: true}}}
	return map[string]*measure.Compared{
		"compared-worse": {Schema: measure.ComparedSchema, Thru: "0.1.0", Arguments: []string{"compare", "last~1", "last"}, Before: side("last~1"), After: side("last"), BarPct: 2, Outcome: measure.Worse, Regression: true, Reason: "flows: 1 worse, 1 equivalent",
			Cells: []measure.ComparedCell{worse, back},
			Facts: []measure.FactChange{{Of: "peer", Fact: "interfaces[eth0].mtu_bytes", Name: "MTU of eth0", Before: "9000", After: "1500"}, {Of: "local -> peer", Fact: "paths.mtu", Name: "path MTU", Before: "9000", After: "1500"}, {Of: "peer -> local", Fact: "paths.mtu", Name: "path MTU", Before: "9000", After: "1500"},
				{Of: "peer", Fact: "kernel", Name: "kernel", Before: "6.12.48", After: "6.13.1"}, {Of: "peer", Fact: "boot_device", Name: "boot device", Before: "sda", After: "sdb", Minor: true}},
			Causes:    []measure.CauseChange{{From: "local", To: "peer", Before: "link-rate", After: "receiver-cpu (receiver)", Summary: "one CPU of the receiver is busy"}},
			Gates:     []measure.GateChange{{ID: "mtu-path", Of: "local -> peer", Before: "pass", After: "warn", Fact: "1500 of 9000 bytes pass"}},
			Unmatched: []measure.UnmatchedCell{{Side: "before", From: "local", To: "peer", What: "UDP, 1 stream"}}},
		"compared-range":    {Schema: measure.ComparedSchema, Thru: "0.1.0", Before: week, After: side("today"), BarPct: 2, Outcome: measure.Improved, Reason: "flows: 1 improved", Cells: []measure.ComparedCell{requests}},
		"compared-refused":  {Schema: measure.ComparedSchema, Thru: "0.1.0", Before: side("a.json"), After: side("b.json"), BarPct: 2, Outcome: measure.NotCompared, Reason: "no flow can be compared", Cells: []measure.ComparedCell{refused}},
		"compared-disk":     comparedDisk(),
		"compared-transfer": comparedTransfer(),
		"compared-none":     {Schema: measure.ComparedSchema, Thru: "0.1.0", Before: side("a.json"), After: side("b.json"), BarPct: 2, Outcome: measure.NotCompared, Reason: "no flow was measured on both sides", Cells: []measure.ComparedCell{}},
	}
}

// comparedDisk returns a comparison of a disk with fewer random reads under another scheduler.
func comparedDisk() *measure.Compared {
	before, after := diskDocument(), diskDocument()
	after.Disks[0].Scheduler = "bfq"
	r := &after.Disks[0].Runs[1]
	for _, f := range []*measure.Figure{r.Bytes, r.IOPS} {
		f.Value, f.Low, f.High = 0.4*f.Value, 0.4*f.Low, 0.4*f.High
	}
	r.Latency.P50, r.Latency.P99 = 3*r.Latency.P50, 3*r.Latency.P99
	return compareTwo(before, after)
}

// comparedTransfer returns a comparison of a transfer whose local disk has become slower.
func comparedTransfer() *measure.Compared {
	before, after := transferDocument(), transferDocument()
	for i := range after.Transfer.Layers {
		if l := &after.Transfer.Layers[i]; l.Name == measure.LayerDiskHere {
			l.Bps, l.Low, l.High = new(0.5**l.Bps), new(0.5**l.Low), new(0.5**l.High)
		}
	}
	f := after.Transfer.Runs[1].Bps
	f.Value, f.Low, f.High = 0.5*f.Value, 0.5*f.Low, 0.5*f.High
	before.Findings[0].Cause = "network"
	return compareTwo(before, after)
}

func compareTwo(before, after *measure.Document) *measure.Compared {
	after.StartedAt = before.StartedAt.AddDate(0, 0, 1)
	return compare.Of([]*measure.Document{before}, []*measure.Document{after}, compare.Options{Before: "last~1", After: "last"})
}

func TestComparedGolden(t *testing.T) {
	for name, x := range comparisons() {
		for _, kind := range []string{"txt", "wide.txt", "html", "md", "compared-json"} {
			var got bytes.Buffer
			if err := printCompared(&got, kind, x); err != nil {
				t.Fatal(err)
			}
			golden(t, name+"."+kind, withoutStyle(got.String()))
			wrapped := map[string]int{"txt": 80, "wide.txt": 120}[kind]
			for line := range strings.Lines(got.String()) {
				if wrapped > 0 && utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > wrapped {
					t.Errorf("%s.%s: a line of more than %d columns: %q", name, kind, wrapped, line)
				}
			}
		}
	}
}

// withoutStyle returns a page without its style sheet, which is the same in all pages.
func withoutStyle(page string) string {
	before, rest, found := strings.Cut(page, "<style>")
	_, after, _ := strings.Cut(rest, "</style>")
	if !found {
		return page
	}
	return before + after
}

func printCompared(w *bytes.Buffer, kind string, x *measure.Compared) error {
	switch kind {
	case "txt":
		return ComparedText(w, x, TextOptions{Width: 80})
	case "wide.txt":
		return ComparedText(w, x, TextOptions{Width: 120})
	case "md":
		return ComparedMarkdown(w, x, MarkdownOptions{})
	case "compared-json": // *.json.golden are results
		return ComparedJSON(w, x)
	}
	return ComparedHTML(w, x, HTMLOptions{Signed: &Signature{Host: "a", Key: "k", Verify: "thru report --verify FILE"}})
}

// TestComparedBadge: every badge has a colour in the style sheet of all pages.
func TestComparedBadge(t *testing.T) {
	for name, x := range comparisons() {
		class := "none"
		for _, b := range compared.Report(x).Body {
			if b, ok := b.(doc.Brief); ok {
				class = cmp.Or(string(b.Verdict.Tone), class)
			}
		}
		if !strings.Contains(blocks.Style(), ".badge."+class+" {") {
			t.Errorf("%s: the style has no badge %q", name, class)
		}
	}
}

// TestComparedAnswer: the answer is one line for a program, whatever the width of a terminal.
func TestComparedAnswer(t *testing.T) {
	var text bytes.Buffer
	if err := ComparedText(&text, comparisons()["compared-worse"], TextOptions{}); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(text.String(), "\n")
	want := "956 -> 812 Mb/s local -> peer, -15.1% (-16.0..-14.2%): worse; changed: MTU of eth0 9000 -> 1500 at peer, kernel 6.12.48 -> 6.13.1 at peer"
	if first != want {
		t.Errorf("%q, want %q", first, want)
	}
}

// TestComparedRailInTheAnswer: if a guardrail is a regression with --fail-on any, the first line begins with
// it.
func TestComparedRailInTheAnswer(t *testing.T) {
	x := comparisons()["compared-range"]
	x.Regression = true
	x.Cells[0].Guards = []measure.ComparedRail{{Name: "loss", Unit: "pct", Before: 1, After: 2, ChangePct: new(100.0), Worse: true},
		{Name: "RTT under load", Unit: "ns", Before: 4.4e6, After: 12e6, ChangePct: new(172.7), Worse: true}, {Name: "jitter", Unit: "ns", Before: 1e6, After: 9e6}}
	v := compared.Report(x)
	if !strings.HasPrefix(v.Answer, "RTT under load 4.40 ms -> 12.0 ms (+173%) local -> peer: worse (and 1 more figure); ") || v.Tone != doc.ToneBad {
		t.Error(v.Answer)
	}
}

// TestComparedReproduce: the command to repeat a comparison names results by permanent ids, and the page
// names their hosts and the time of the comparison.
func TestComparedReproduce(t *testing.T) {
	x := comparisons()["compared-worse"]
	x.Arguments, x.ComparedAt = []string{"compare", "last~1", "last", "--html", "x.html"}, new(began())
	x.Before.Results[0].Hosts, x.After.Results[0].Name = []string{"local is vm1", "peer is vm2"}, "20260314-092653-b7c1"
	page := printedComparison(t, x)
	for _, want := range []string{"thru compare 20260314-092653-a3f9 20260314-092653-b7c1 --html x.html", "local is vm1, peer is vm2", "thru 0.1.0, compared 2026-03-14 09:26 UTC"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	x = comparisons()["compared-range"]
	x.Arguments = []string{"compare", "--pair", "local..peer", "last-week", "today"}
	if page, want := printedComparison(t, x), "thru compare --pair local..peer 2026-03-07T09:26:53Z..2026-03-13T09:26:53Z 20260314-092653-a3f9"; !strings.Contains(page, want) {
		t.Errorf("no %q in\n%s", want, page)
	}
}

func printedComparison(t *testing.T, x *measure.Compared) string {
	t.Helper()
	var b bytes.Buffer
	if err := ComparedMarkdown(&b, x, MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestComparedSettingsInTheAnswer: settings that the user changed come before facts that changed.
func TestComparedSettingsInTheAnswer(t *testing.T) {
	x := comparisons()["compared-worse"]
	x.Cells[0].Settings = []measure.SettingDiff{{Name: "streams", Before: "4", After: "1", Refuses: true}, {Name: "congestion control", Before: "bbr", After: "reno", Affects: true}, {Name: "MSS in use", Before: "8948", After: "1448"}}
	if v := compared.Report(x); len(v.More) == 0 || !strings.HasPrefix(v.More[0], "changed: streams 4 -> 1, congestion control bbr -> reno, MTU of eth0 9000 -> 1500 at peer") {
		t.Error(v.More)
	}
	if v := compared.Report(comparisons()["compared-refused"]); len(v.More) > 0 { // its reason contains it
		t.Error(v.More)
	}
}

// TestComparedSchema checks hand-made comparisons and those of recorded results against
// docs/comparison.schema.json.
func TestComparedSchema(t *testing.T) {
	s, err := jsonschema.NewCompiler().Compile(comparisonSchema)
	if err != nil {
		t.Fatal(err)
	}
	all := comparisons()
	docs := goldenDocuments()
	for name, d := range docs {
		all[name] = compare.Of([]*measure.Document{docs["verdict"]}, []*measure.Document{d}, compare.Options{Anyway: true})
	}
	for name, x := range all {
		var text bytes.Buffer
		if err := ComparedJSON(&text, x); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(&text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if o, ok := v.(map[string]any); ok {
			o["outcome"] = "better"
			if s.Validate(v) == nil {
				t.Errorf("%s: the schema takes an outcome that there is not", name)
			}
		}
	}
}

// TestComparedHostile prints comparisons with arbitrary wrong parts: no control character, no markup, no page
// above its size limit.
func TestComparedHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	foreign := []string{"<script>alert(1)</script>", "\x1b[2J\x07", strings.Repeat("x", 10000), "a\nb", "\u202e", ""}
	text, err := json.Marshal(comparisons()["compared-worse"])
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		var x measure.Compared
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatal(err)
		}
		for len(x.Cells) < 400 && r.IntN(20) == 0 || len(x.Cells) < 3 {
			x.Cells = append(x.Cells, x.Cells[r.IntN(len(x.Cells))])
		}
		distort(reflect.ValueOf(&x).Elem(), r, foreign)
		var page, plain, marked bytes.Buffer
		if err := ComparedMarkdown(&marked, &x, MarkdownOptions{}); err != nil {
			t.Fatal(err)
		}
		if prose, _, _ := strings.Cut(marked.String(), "## Reproduce"); strings.Contains(prose, "<script") {
			t.Fatalf("%.2000s", prose)
		}
		if err := printCompared(&page, "html", &x); err != nil {
			t.Fatal(err)
		}
		if err := ComparedText(&plain, &x, TextOptions{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if page.Len() > 1<<20 || strings.Contains(page.String(), "<script") || strings.ContainsAny(page.String()+plain.String(), "\x1b\x07\u202e") {
			t.Fatalf("%d bytes:\n%.2000s", page.Len(), plain.String())
		}
	}
}

// comparedInABrowser: a comparison opens without network requests, and stays within a screen, a phone and
// a sheet of paper.
func comparedInABrowser(t *testing.T, ctx context.Context) {
	var heard seen
	if err := chromedp.Listen(ctx, heard.hear); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, listenTo()); err != nil {
		t.Fatal(err)
	}
	all := comparisons()
	for name, x := range all {
		var page bytes.Buffer
		if err := printCompared(&page, "html", x); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(ctx, time.Minute)
		lookAt(t, ctx, name, file)
		onAPhone(t, ctx, name)
		stop()
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	if len(heard.asked) != len(all) || len(heard.said) > 0 {
		t.Errorf("asked for %q; the browser says %q", heard.asked, heard.said)
	}
}

// onAPhone checks that no open table of the page exceeds a phone's screen: before and after are both visible.
func onAPhone(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if err := chromedp.Do(ctx, colours("light"), chromedp.EmulateViewport(390, 800)); err != nil {
		t.Fatal(err)
	}
	hidden, err := chromedp.Run(ctx, chromedp.Evaluate[string](`!matchMedia("screen").matches ? "on paper all" : String([...document.querySelectorAll(".cards td")].filter(d => d.getBoundingClientRect().right > innerWidth).length)`))
	if err != nil || hidden != "0" {
		t.Errorf("%s: %s cells are beyond a phone's screen, %v", name, hidden, err)
	}
}

// distort replaces strings and figures at random.
func distort(v reflect.Value, r *rand.Rand, foreign []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			distort(v.Elem(), r, foreign)
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			return
		}
		for i := range v.NumField() {
			distort(v.Field(i), r, foreign)
		}
	case reflect.Slice:
		for i := range v.Len() {
			distort(v.Index(i), r, foreign)
		}
	case reflect.Float64:
		if r.IntN(3) == 0 {
			v.SetFloat([]float64{-1, 0, 1e308, 5e-324, math.Inf(-1), math.NaN()}[r.IntN(6)])
		}
	case reflect.String:
		if r.IntN(3) == 0 {
			v.SetString(foreign[r.IntN(len(foreign))])
		}
	}
}
