package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"thru/internal/doc/draw"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report/result"
)

func textFace(t *testing.T, d *measure.Document, o TextOptions) string {
	t.Helper()
	var b strings.Builder
	if err := Text(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func pageOf(t *testing.T, d *measure.Document) string {
	t.Helper()
	var b strings.Builder
	if err := HTML(&b, d, HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAnswer(t *testing.T) {
	fail := verdictTest()
	fail.Verdict.Pass, fail.Verdict.Share = false, 61.2
	oneWay := verdictTest()
	oneWay.Cells = oneWay.Cells[:1]
	tenGig := verdictTest()
	for i := range tenGig.Cells {
		tenGig.Cells[i].Goodput.Value, tenGig.Cells[i].Ceiling.LinkBps = 9.41e9, 10e9
	}
	inTurn := bidirTest()
	inTurn.Cells[1].Group = 1
	busyTargets, openRung := manyToOneTest(), rungsTest()
	busyTargets.Verdict = &measure.Verdict{Inconclusive: true}
	for i := range openRung.Ladder.Rungs {
		if v := openRung.Ladder.Rungs[i].Verdict; v != nil && !v.Pass {
			v.Inconclusive = true
		}
	}
	tests := []struct {
		name string
		d    *measure.Document
		want string
	}{
		{"localhost", localhostTest(), "48.9 Gb/s localhost, TCP, 4 streams"},
		{"both ways at once", bidirTest(), "9.41 Gb/s local -> peer, 8.87 Gb/s back at the same time, TCP, 4 streams, 800 KiB window"},
		{"in turn", inTurn, "9.41 Gb/s local -> peer, 8.87 Gb/s back, TCP, 4 streams, 800 KiB window"},
		{"verdict", verdictTest(), "956 of 1000 Mb/s local -> peer, 951 back (99.4% of what MTU 1500 allows): pass"},
		{"verdict not met", fail, "956 of 1000 Mb/s local -> peer, 951 back (61.2% of what MTU 1500 allows): fail"},
		{"one way", oneWay, "956 of 1000 Mb/s local -> peer (99.4% of what MTU 1500 allows): pass"},
		{"in Gb/s", tenGig, "9.41 of 10 Gb/s local -> peer, 9.41 back (99.4% of what MTU 1500 allows): pass"},
		{"partial", partialTest(), "31.2 Gb/s local -> peer, TCP, 4 streams (partial: ended early)"},
		{"pairs at once, of two settings", meshTest(), "12 pairs at once carried 8.16 Gb/s, 624-741 Mb/s each with 1 stream, the highest rate of 2 settings"},
		{"pairs that share a link, and targets", manyToOneTest(), "8 pairs at once carried 7.52 of 10 Gb/s, 905-972 Mb/s each: 2 of 3 targets are not met; the CPU 3 of store is full: it takes in all 8 flows"},
		{"targets that a busy host may miss", busyTargets, "8 pairs at once carried 7.52 of 10 Gb/s, 905-972 Mb/s each: inconclusive, 2 of 3 targets are not met; the CPU 3 of store is full: it takes in all 8 flows"},
		{"a rung that is open", openRung, "the interconnect carries 9.41 of 10 Gb/s, -20.3% against the LAN below it: pass; the LAN is inconclusive"},
		{"rungs", rungsTest(), "the interconnect carries 9.41 of 10 Gb/s, -20.3% against the LAN below it: pass; the LAN fails"},
		{"variants", variantsTest(), "bbr against cubic: goodput +12.1% (95% interval +9.3..+14.6%, 8 pairs of runs), a -> b: improved"},
		{"pairs in turn", inTurnTest(), "28 pairs one after the other carried 1.02-9.42 Gb/s each, median 9.36 Gb/s, the slowest n12 -> n13"},
		{"ladder", ladderTest(), "52.1 Gb/s with 4 streams and the default window: the highest rate of localhost"},
	}
	for _, tt := range tests {
		first, _, _ := strings.Cut(textFace(t, tt.d, TextOptions{}), "\n")
		if first != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, first, tt.want)
		}
		page := strings.NewReplacer("→", "-&gt;", "\u00a0", " ", "&#43;", "+").Replace(pageOf(t, tt.d))
		if !strings.Contains(page, "<h1>"+strings.ReplaceAll(tt.want, ">", "&gt;")+"</h1>") {
			t.Errorf("%s: the page does not begin with the answer", tt.name)
		}
	}
}

// hostile returns a document with what another host could send.
func hostile() *measure.Document {
	d := partialTest()
	const evil = "\x1b[31m<script>alert(1)</script>\r\n\u202e\"'&\x00\u0085"
	d.Command, d.Thru, d.Arguments = evil, evil, []string{evil, "it's"}
	d.Error = &measure.Error{Message: evil, Hint: evil}
	d.Warnings, d.Advice = []string{evil}, []string{evil}
	d.Missing = []measure.NotChecked{{Fact: evil, Why: evil}}
	d.EndPoints[0].Name, d.EndPoints[0].Facts.Hostname = evil, new(evil)
	d.EndPoints[0].Facts.Sysctls[evil] = evil
	d.Labels, d.Verdict = map[string]string{evil: evil, "=1+1": "-1"}, &measure.Verdict{Reason: evil, Share: 1e308}
	d.Plan = &measure.Planned{Name: evil, Run: evil, SHA256: evil, Order: evil, Steps: -1}
	d.EndPoints[1].Addr, d.EndPoints[1].Speaks = evil, evil
	d.EndPoints[0].Facts.Hypervisor, d.EndPoints[0].Facts.Machine = new(evil), &measure.Machine{Vendor: evil, BIOSVersion: evil}
	d.EndPoints[0].Facts.Disks = []measure.Disk{{Name: evil, Model: evil, SizeBytes: new(int64(-1)), Mounts: []measure.Mount{{Path: evil, Type: evil}}}}
	d.EndPoints[0].Facts.Changed, d.EndPoints[0].Facts.Interfaces[1].Kind = map[string]string{evil: evil}, new(evil)
	d.EndPoints[0].Facts.NotChecked = []measure.NotChecked{{Fact: "firmware", Why: evil}, {Fact: "disks", Why: evil}}
	for i := range d.Cells {
		c := &d.Cells[i]
		c.From, c.To, c.IO, c.Protocol, c.Label = evil, evil+"x", evil, evil, evil
		c.Warnings = []string{evil}
		if c.Steady != nil {
			c.Steady.Why = evil
		}
		for _, e := range result.Evidences(c) {
			e.Streams[0].Congestion, e.Route.Interface = evil, evil
		}
	}
	return d
}

func TestForeignTextIsHarmless(t *testing.T) {
	for _, command := range []string{"test", "ladder", "\x1b"} {
		d := hostile()
		d.Command = command
		printed := textFace(t, d, TextOptions{})
		for _, r := range printed {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("text of %q has %U", command, r)
			}
		}
		if html := pageOf(t, d); strings.Contains(html, "<script") || strings.ContainsAny(html, "\x00\x1b\u202e") {
			t.Errorf("the page of %q lets foreign text through", command)
		}
	}
}

// hostileKinds returns forged documents of datagrams and requests.
func hostileKinds() []*measure.Document {
	const evil = "\x1b[31m<script>alert(1)</script>\r\n\u202e\"'&\x00\u0085"
	udp, asked, search := udpLossTest(), underLoadTest(), searchTest()
	c := &udp.Cells[0]
	c.Spec.Traffic, c.IO = "", evil
	c.LossPlaces = append(c.LossPlaces, measure.LossPlace{Place: evil, EndPoint: evil, Packets: math.MinInt64, Counter: evil, Fix: evil})
	for range 400 {
		c.LossPlaces = append(c.LossPlaces, measure.LossPlace{Place: evil, Packets: math.MaxInt64, Counter: evil, Fix: evil})
	}
	c.Datagrams = &measure.DatagramFigures{Bytes: -1, LossPct: -1e300, Lost: math.MinInt64, JitterNs: new(int64(math.MinInt64)), SentPps: new(1e300), Reordered: 1, Fragments: 9}
	for _, e := range result.Evidences(c) {
		e.IO = evil + e.EndPoint
	}
	for i := range asked.Cells {
		x := &asked.Cells[i]
		x.Label = "latency, " + evil
		x.Latency = &measure.Latency{Count: math.MaxInt64, Min: -5, P50: math.MinInt64, P99: math.MaxInt64, Max: math.MaxInt64, Histogram: evil}
		x.Spec.PerSecond = math.MaxFloat64
	}
	asked.Cells[0].Spec.Traffic = evil
	search.Cells[0].Search.Why = evil
	for range 400 {
		search.Cells[0].Search.Trials = append(search.Cells[0].Search.Trials, measure.Trial{AskedBps: -1e300, Lost: -1})
	}
	return append(hostileCaptures(), udp, asked, search, hostileDiagnosis(), hostileTuning())
}

func TestForeignFiguresAreHarmless(t *testing.T) {
	for i, d := range hostileKinds() {
		for _, r := range textFace(t, d, TextOptions{}) {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("text %d has %U", i, r)
			}
		}
		html := pageOf(t, d)
		for _, bad := range []string{"<script", "\x00", "\x1b", "\u202e", "NaN", "Inf"} {
			if strings.Contains(html, bad) {
				t.Errorf("page %d has %q", i, bad)
			}
		}
		if len(html) > 1_000_000 {
			t.Errorf("page %d has %d bytes", i, len(html))
		}
	}
}

func TestTextFitsItsWidth(t *testing.T) {
	for name, d := range goldenDocuments() {
		for _, width := range []int{60, 80, 100, 120, 200} {
			for i, line := range strings.Split(textFace(t, d, TextOptions{Width: width}), "\n") {
				if i > 0 && utf8.RuneCountInString(line) > width {
					t.Errorf("%s at %d columns: %q", name, width, line)
				}
			}
		}
	}
}

func TestColour(t *testing.T) {
	d := verdictTest()
	coloured := textFace(t, d, TextOptions{Colour: true})
	if !strings.HasPrefix(coloured, "\x1b[1;32m") {
		t.Errorf("a pass is not green: %q", coloured[:20])
	}
	if bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured, ""); bare != textFace(t, d, TextOptions{}) {
		t.Error("colour changes the words")
	}
}

func TestNothingMeasured(t *testing.T) {
	for _, d := range []*measure.Document{failedTest(), {}} {
		if s := textFace(t, d, TextOptions{}); s != "" {
			t.Errorf("text of nothing is %q", s)
		}
		if html := pageOf(t, d); !strings.Contains(html, "No result") {
			t.Error("the page of nothing does not say so")
		}
	}
}

// TestPageStandsAlone checks that a page fetches and runs nothing, and that its drawings are well-formed and
// described.
func TestPageStandsAlone(t *testing.T) {
	drawings := map[string]int{"localhost": 2, "bidir": 6, "verdict": 6, "partial": 2, "ladder": 4, "failed": 0,
		"udp-loss": 3, "udp": 6, "rr": 3, "crr": 4, "under-load": 4, "search": 3, "lean": 2, "check": 0, "gated": 6,
		"receiver-cpu": 3, "receive-window": 6, "link-rate": 6, "none": 3, "transfer": 1, "disk": 1, "apart": 6, "mtu-black-hole": 3, "explain": 6, "captured": 7, "broken-tso": 2, "zero-window": 2,
		"tuned": 6, "advised": 6, "unhelped": 6, "same": 3, "restored": 0, "mesh": 1, "many-to-one": 0, "rungs": 8, "variants": 0, "in-turn": 0, "vcpus": 1, "placed": 9}
	for name, d := range goldenDocuments() {
		html := pageOf(t, d)
		for _, bad := range []string{"<script", "src=", "href=", "@import", "url(", "http://", "https://", "NaN", "Inf", "<nil>", "ZgotmplZ"} {
			if strings.Contains(html, bad) {
				t.Errorf("%s: the page has %q", name, bad)
			}
		}
		svgs := regexp.MustCompile(`(?s)<svg viewBox[^>]* role="img".*?</svg>`).FindAllString(html, -1)
		if len(svgs) != drawings[name] {
			t.Errorf("%s: %d drawings, want %d", name, len(svgs), drawings[name])
		}
		for _, svg := range svgs {
			if err := wellFormed(svg); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.Contains(svg, "<title id=") || !strings.Contains(svg, "<desc id=") {
				t.Errorf("%s: a drawing is not described", name)
			}
		}
		if ids := regexp.MustCompile(` id="[^"]*"`).FindAllString(html, -1); len(ids) != 2*len(svgs) || hasDouble(ids) {
			t.Errorf("%s: ids are not unique: %q", name, ids)
		}
	}
}

func hasDouble(list []string) bool {
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s] {
			return true
		}
		seen[s] = true
	}
	return false
}

func wellFormed(svg string) error {
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestPageOfMuchIsSmall(t *testing.T) {
	for _, command := range []string{"test", "ladder"} {
		d := newDocument(command)
		long := strings.Repeat("<long> ", 200)
		c := newCellFor("local", "peer", 1, 9e9)
		c.Runs[0].Flows[0].Sender, c.Runs[0].Flows[0].Receiver = end("local", true, 9e9, 128, 900), end("peer", false, 9e9, 128, 900)
		for i := range 400 {
			c.Streams = 1 + i%16
			c.Window.Send = int64(i / 16)
			c.Warnings = []string{long + string(rune('a'+i%26))}
			c.Missing = []measure.NotChecked{{Fact: long, Why: long + string(rune('a'+i%26))}}
			d.Cells = append(d.Cells, c)
		}
		if n := len(pageOf(t, d)); n > 1_000_000 {
			t.Errorf("the page of %s has %d bytes", command, n)
		}
	}
}

func TestWarningsNameTheirCells(t *testing.T) {
	d := localhostTest()
	d.Warnings = nil
	d.Cells[0].Warnings, d.Cells[1].Warnings = []string{"of the main"}, []string{"of the short one"}
	both := bidirTest()
	both.Cells[1].Warnings = append(both.Cells[1].Warnings, "of the second")
	ladder := ladderTest()
	ladder.Warnings = nil
	for i := range ladder.Cells {
		ladder.Cells[i].Warnings = []string{fmt.Sprintf("busy by %d.5%% without the test, 2 more", 9+i)}
	}
	busy := newDocument("test")
	for i, ends := range [][2]string{{"local", "10.0.0.2"}, {"10.0.0.2", "local"}} {
		c := newCellFor(ends[0], ends[1], 1, 9e9)
		for _, text := range []string{fmt.Sprintf("local: %d%% busy without the test", 99+i), fmt.Sprintf("10.0.0.2: %d%% busy without the test", 98-i)} {
			warn(&c, measure.Warning{Code: measure.BusyHost, Text: text, Means: "not of the test alone"})
		}
		busy.Cells = append(busy.Cells, c)
	}
	if got := strings.Join(doubts(busy), "|"); got != "10.0.0.2, local: 97-100% busy without the test" {
		t.Errorf("with care: %q", got)
	}
	counted := bidirTest()
	for i := range counted.Cells[:2] {
		counted.Cells[i].Warnings = []string{fmt.Sprintf("the sender counted %d.20 kb/s and the receiver %d.00 of 9", 7+i, 8-i)}
	}
	for _, tt := range []struct {
		d    *measure.Document
		want string
	}{
		{counted, "local -> peer / peer -> local: the sender counted 7.20 / 8.20 kb/s and the receiver 8.00 / 7.00 of 9"},
		{busy, "10.0.0.2, local: 97-100% busy without the test: not of the test alone"},
		{ladder, fmt.Sprintf("busy by 9.5-%d.5%% without the test, 2 more", 8+len(ladder.Cells))},
		{d, "of the main|localhost, 1 stream: of the short one"},
		{both, both.Cells[0].Warnings[0] + "|peer -> local: of the second"},
		{ladderTest(), "8 streams, default window: " + ladderTest().Cells[3].Warnings[0]},
	} {
		if got := strings.Join(warnings(tt.d), "|"); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestSingleValueHasNoRange(t *testing.T) {
	for _, d := range []*measure.Document{localhostTest(), ladderTest()} {
		for i := range d.Cells {
			f := d.Cells[i].Goodput
			f.Low, f.High, f.Runs, f.CI95Low, f.CI95High = f.Value, f.Value, 1, nil, nil
		}
		if s := textFace(t, d, TextOptions{}); strings.Contains(s, "48.9-48.9") || strings.Contains(s, "52.1-52.1") {
			t.Errorf("a range of one value:\n%s", s)
		}
	}
}

func TestNiceTicks(t *testing.T) {
	tests := []struct {
		high float64
		want int
		ends string
		n    int
	}{
		{100, 5, "100", 6}, {53.1, 5, "60", 4}, {10, 6, "10", 6}, {0, 5, "1", 6}, {0.0031, 3, "0.004", 3},
		{math.Inf(1), 4, "1.00e+18", 3}, {math.NaN(), 4, "1", 3}, {-5, 4, "1", 3}, {956, 3, "1000", 3},
	}
	for _, tt := range tests {
		ticks := draw.NiceTicks(tt.high, tt.want)
		if last := ticks[len(ticks)-1]; last.Label != tt.ends || len(ticks) != tt.n || ticks[0].At != 0 {
			t.Errorf("niceTicks(%v, %d): %v, want %d up to %s", tt.high, tt.want, ticks, tt.n, tt.ends)
		}
	}
}

func TestReadJSON(t *testing.T) {
	for name, d := range goldenDocuments() {
		var first, second bytes.Buffer
		if err := JSON(&first, d); err != nil {
			t.Fatal(err)
		}
		back, err := ReadJSON(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := JSON(&second, back); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s changes when it is read and written again: %v", name, err)
		}
	}
}

func TestReadJSONRefuses(t *testing.T) {
	tests := []struct {
		name, text, says string // says "": accepted
	}{
		{"unknown key", `{"schema":"thru.result/1","later":[1]}`, ""},
		{"empty", ``, "unexpected end"},
		{"other schema", `{"schema":"thru.result/3"}`, `"thru.result/3"`},
		{"no schema", `{"start":{"version":"iperf 3.12"}}`, "no schema"},
		{"no object", `[1]`, "cannot unmarshal"},
		{"wrong type", `{"schema":"thru.result/1","cells":{}}`, "it has an object instead of a slice"},
		{"two documents", `{"schema":"thru.result/1"} {}`, "after top-level value"},
		{"too large", `{"schema":"thru.result/1"}` + strings.Repeat(" ", MaxDocument), "64 MiB"},
	}
	for _, tt := range tests {
		_, err := ReadJSON(strings.NewReader(tt.text))
		if tt.says == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.says) || fault.Hint(err) == "" {
			t.Errorf("%s: error %v, hint %q; want it to say %q", tt.name, err, fault.Hint(err), tt.says)
		}
	}
}

func TestJSONWritesNothingBroken(t *testing.T) {
	d := localhostTest()
	d.Cells[0].Goodput.Value = math.NaN()
	var out bytes.Buffer
	if err := JSON(&out, d); err == nil || out.Len() != 0 {
		t.Errorf("error %v after %d bytes; want an error and none", err, out.Len())
	}
	if d.Cells[1].Runs = nil; JSON(&out, d) == nil || d.Cells[1].Runs != nil {
		t.Error("JSON changed the document that it prints")
	}
}

// TestJSONWithoutControls: no name in a document controls the terminal that shows it.
func TestJSONWithoutControls(t *testing.T) {
	d := localhostTest()
	const name = "a\u009b31m\u007f\u0085\u00e4\u2028\U0001f600"
	d.EndPoints[0].Name = name
	var out bytes.Buffer
	if err := JSON(&out, d); err != nil {
		t.Fatal(err)
	}
	if i := bytes.IndexFunc(out.Bytes(), func(r rune) bool { return r != '\n' && r < ' ' || r >= 0x7f && r <= 0x9f }); i >= 0 {
		t.Errorf("a control character is left: %q", out.String()[max(0, i-20):i+20])
	}
	if back, err := ReadJSON(&out); err != nil || back.EndPoints[0].Name != name {
		t.Errorf("%v, %q", err, back.EndPoints[0].Name)
	}
}

// smallDocument has a little of everything.
func smallDocument(command string) *measure.Document {
	d := newDocument(command, "peer")
	c := newCellFor("local", "peer", 1, 9e9)
	c.Runs[0].Flows[0].Sender, c.Runs[0].Flows[0].Receiver = end("local", true, 9e9, 1, 2), end("peer", false, 9e9, 1, 1)
	d.Cells, d.EndPoints = []measure.Cell{c}, d.EndPoints[:1]
	return d
}

// smallKinds has datagrams, requests and a search in one.
func smallKinds() *measure.Document {
	d := newDocument("test")
	d.EndPoints = d.EndPoints[:1]
	d.Cells = append(searchTest().Cells, requestsCell("local", "peer", measure.CRR, 1000, 100))
	d.Cells = append(d.Cells, underLoadTest().Cells...)
	for i := range d.Cells {
		for _, e := range result.Evidences(&d.Cells[i]) {
			e.Bins, e.PerSec, e.Streams, e.Host = e.Bins[:1], nil, e.Streams[:1], nil
		}
	}
	return d
}

// smallCapture has a crossing, and a time line of a few steps.
func smallCapture() *measure.Document {
	d := brokenTSOTest()
	for _, e := range result.Evidences(&d.Cells[0]) {
		e.Bins, e.Streams = e.Bins[:1], e.Streams[:1]
	}
	c := &d.Cells[0].Runs[0].Flows[0].Captures[0].Conns[0]
	c.Timeline = packetTimeline(61e6, 6, 20, 1_500_000, 4, 1, 2)
	c.Timeline.Again = []measure.PacketMark{{AtNs: 1, Seq: 2, Packet: 3}}
	return d
}

func FuzzReadJSON(f *testing.F) {
	for _, seed := range []*measure.Document{smallDocument("test"), smallDocument("ladder"), failedTest(), smallKinds(), smallCapture(), smallFleet(), variantsTest()} {
		text, err := json.Marshal(seed) // without indentation: the fuzzer is slow with long inputs
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"schema":"thru.result/1","command":"ladder","cells":[{"streams":-1,"goodput_bps":{"value":1e308,"high":-1e308},"runs":[{}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ReadJSON(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, r := range textFace(t, d, TextOptions{}) {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("text has %U", r)
			}
		}
		if html := pageOf(t, d); strings.Contains(html, "<script") || len(html) > 1<<20 {
			t.Fatalf("a page of %d bytes", len(html))
		}
		if err := errors.Join(JSON(io.Discard, d), Markdown(io.Discard, d, MarkdownOptions{}), CSV(io.Discard, d)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPublishedContext: if the best cell's published row is doubtful, the context is the whole rung.
func TestPublishedContext(t *testing.T) {
	d := ladderTest()
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Goodput != nil && c.Streams == 4 && c.Window.Send > 0 {
			c.Goodput.Value, c.Goodput.High = 99e9, 99e9
		}
	}
	if got := textFace(t, d, TextOptions{Width: 200}); !strings.Contains(got, "published for localhost, 1 to 8 streams: 69.8-95.3 Gb/s (iperf2;") {
		t.Errorf("no context:\n%s", got)
	}
}

// TestAnswersOfChecks checks the first lines of checks.
func TestAnswersOfChecks(t *testing.T) {
	doc := func(code int, statuses ...string) *measure.Document {
		d := &measure.Document{Command: "check"}
		if code > 0 {
			d.Error = &measure.Error{ExitCode: code}
		}
		for _, s := range statuses {
			d.Gates = append(d.Gates, measure.Gate{Status: s})
		}
		return d
	}
	const pass, warn, fail, none = measure.GatePass, measure.GateWarn, measure.GateFail, measure.GateNotChecked
	for want, d := range map[string]*measure.Document{
		"fit to be measured: 1 gate passes":                        doc(0, pass),
		"fit to be measured: 2 gates pass, 1 warns, 1 not checked": doc(0, warn, none, pass, pass),
		"not fit to be measured: 1 gate fails, 2 pass, 2 warn":     doc(3, fail, warn, warn, pass, pass),
		"check incomplete: 1 gate passes, 1 not checked":           doc(1, none, pass),
		"check incomplete: 2 gates fail, 1 passes":                 doc(1, fail, fail, pass),
		"nothing could be checked: 2 gates lack their facts":       doc(0, none, none),
		"": {Command: "check"},
	} {
		if got := Answer(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
