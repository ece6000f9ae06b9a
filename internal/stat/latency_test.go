package stat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thru/internal/measure"
)

// timesOf is a distribution of n requests with the values first, first+step ...
func timesOf(t testing.TB, n int, first, step int64) *measure.Latency {
	t.Helper()
	h := NewHistogram()
	for i := range n {
		if err := h.RecordValue(first + int64(i)*step); err != nil {
			t.Fatal(err)
		}
	}
	l := LatencyOf(h)
	var err error
	if l.Histogram, err = EncodeHistogram(h); err != nil {
		t.Fatal(err)
	}
	return &l
}

// requestCell is a cell of requests: one run of ten seconds for each distribution.
func requestCell(times ...*measure.Latency) *measure.Cell {
	c := recorded(make([]float64, len(times))...)
	c.Spec.Protocol, c.Spec.Traffic = measure.TCP, measure.RR
	for i, l := range times {
		e := c.Runs[i].Flows[0].Sender
		e.Latency = l
		for k := range e.Streams {
			e.Streams[k].Requests = l.Count / 2
		}
		for k := range e.Bins {
			e.Bins[k].Requests = l.Count / seconds
		}
	}
	return c
}

func TestRequests(t *testing.T) {
	c := requestCell(timesOf(t, 1000, 1000, 1000), timesOf(t, 1000, 1001_000, 1000))
	Summarise(c, twoHosts(), Link{})
	if c.Goodput != nil || c.Runs[0].Goodput != nil || c.Transactions == nil || !Measured(c) {
		t.Fatalf("goodput %+v, transactions %+v", c.Goodput, c.Transactions)
	}
	near(t, "requests a second", c.Transactions.Value, 100, 1e-9)
	near(t, "requests", float64(c.Latency.Count), 2000, 0)
	near(t, "least", float64(c.Latency.Min), 1000, 1)
	near(t, "median", float64(c.Latency.P50), 1e6, 1e3)
	near(t, "99%", float64(c.Latency.P99), 1.98e6, 2e3)
	near(t, "mean", float64(c.Latency.Mean), 1_000_500, 1e3)
	near(t, "greatest", float64(c.Latency.Max), 2e6, 2e3)
	for _, fact := range []string{"goodput_bps", "ceiling", "bdp_bytes", "rfc6349.transfer_time_ratio", "latency", "latency.histogram", "rtt_loaded_ns"} {
		if isMissing(c, fact) {
			t.Errorf("%s is said to be missing: %v", fact, c.Missing)
		}
	}
	if text := FigureText(c); text != "100 requests/s" {
		t.Error(text)
	}
	if rate, ok := RunFigure(c, &c.Runs[0]); !ok || rate != 100 || len(RunFigures(c)) != 2 {
		t.Errorf("figure of a run %v %v", rate, ok)
	}
}

// TestLatencyWithoutHistograms falls back to one distribution, and reports it.
func TestLatencyWithoutHistograms(t *testing.T) {
	one, other := timesOf(t, 100, 1000, 10), timesOf(t, 100, 2000, 10)
	one.Histogram, other.Histogram = "", "no base64"
	c := requestCell(one)
	if Summarise(c, nil, Link{}); c.Latency == nil || *c.Latency != *one || isMissing(c, "latency.histogram") {
		t.Errorf("one without a histogram: %+v, missing %v", c.Latency, c.Missing)
	}
	c = requestCell(one, other)
	if Summarise(c, nil, Link{}); c.Latency == nil || c.Latency.P50 != other.P50 || !isMissing(c, "latency.histogram") {
		t.Errorf("none readable: %+v, missing %v", c.Latency, c.Missing)
	}
	c = requestCell(one, timesOf(t, 100, 2000, 10))
	if Summarise(c, nil, Link{}); c.Latency == nil || c.Latency.Count != 100 || !isMissing(c, "latency.histogram") {
		t.Errorf("one readable: %+v, missing %v", c.Latency, c.Missing)
	}
	c.Runs[0].Flows[0].Sender.Latency, c.Runs[1].Flows[0].Sender.Latency = nil, nil
	if Summarise(c, nil, Link{}); c.Latency != nil || !isMissing(c, "latency") {
		t.Errorf("no times: %+v, missing %v", c.Latency, c.Missing)
	}
}

func TestRequestWarnings(t *testing.T) {
	l := timesOf(t, 1000, 1000, 10)
	l.Errors = 3
	c := requestCell(l)
	c.Spec.PerSecond, c.Spec.Streams = 100, 2
	Summarise(c, nil, Link{})
	if !warned(c, "only 100 requests/s of the requested 200 requests/s were answered") || !warned(c, "3 requests had no response in time") {
		t.Errorf("%q", c.Warnings)
	}
}

func TestLatencyUnderLoad(t *testing.T) {
	asked := func(label string, group, atOnce int, l *measure.Latency) measure.Cell {
		return measure.Cell{From: "local", To: "peer", Label: label, Group: group, AtOnce: atOnce, Latency: l, Spec: measure.Spec{Traffic: measure.RR}}
	}
	idle, loaded := timesOf(t, 100, 200e3, 0), timesOf(t, 100, 4_000e3, 0)
	bulk := measure.Cell{From: "peer", To: "local", Group: 2, AtOnce: 2, Goodput: &measure.Figure{Value: 1e9}}
	alone := bulk
	alone.Group = 3
	elsewhere := bulk
	elsewhere.To = "third"
	cells := []measure.Cell{asked("latency, idle", 1, 1, idle), bulk, asked("latency, loaded", 2, 2, loaded), alone, elsewhere}
	LatencyUnderLoad(cells)
	u := cells[1].UnderLoad
	if u == nil || u.Idle == nil || u.Loaded == nil || u.AddedNs == nil || u.Responsiveness == nil {
		t.Fatalf("%+v", u)
	}
	near(t, "added", float64(*u.AddedNs), 3.8e6, 8e3)
	near(t, "round trips a minute", *u.Responsiveness, 15_000, 30)
	if u.Loaded.Histogram != "" || cells[2].Latency.Histogram == "" {
		t.Error("the histogram belongs to the cell of the requests alone")
	}
	if cells[3].UnderLoad != nil || cells[4].UnderLoad != nil {
		t.Error("a cell without requests beside it has latency under load")
	}
	cells[2].Spec.PerSecond, cells[2].Transactions = 200, &measure.Figure{Value: 140}
	if LatencyUnderLoad(cells); cells[1].UnderLoad != nil || !isMissing(&cells[1], "latency_under_load") {
		t.Errorf("requests that queued behind each other: %+v", cells[1].UnderLoad)
	}
	cells[2].Transactions.Value = 199
	cells = cells[1:3]
	if LatencyUnderLoad(cells); cells[0].UnderLoad == nil || cells[0].UnderLoad.AddedNs != nil || cells[0].UnderLoad.Idle != nil {
		t.Errorf("without the idle one: %+v", cells[0].UnderLoad)
	}
}

func TestRequestRate(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1.5: "1.5", 12.34: "12.3", 99.96: "100", 204_123: "204 000", 999.6: "1 000", 1234: "1 230", 0.126: "0.13"} {
		if got := RequestRate(measure.RR, x); got != want+" requests/s" {
			t.Errorf("RequestRate(%g) is %q, want %q", x, got, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	fine, err := hdrhistogram.New(1, 1<<62, 5).Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	for text, says := range map[string]string{
		"": "compressed V2", "no base64!": "illegal base64", "AAAAAAAAAAAAAAAA": "compressed V2", "HISTFAAAAAAAAAAA": "zlib",
		string(fine): "5 significant digits", strings.Repeat("A", MaxHistogram+1): "the limit is",
	} {
		if _, err := DecodeHistogram(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: %v, want %q", text, err, says)
		}
	}
}

func FuzzDecodeHistogram(f *testing.F) {
	f.Add(timesOf(f, 100, 1000, 1e6).Histogram)
	f.Add(timesOf(f, 1, 1, 0).Histogram)
	f.Add("HISTFAAAAB42kw==")
	f.Fuzz(func(t *testing.T, text string) {
		merged, _ := MergeLatency([]*measure.Latency{{Count: 1, Histogram: text}, {Count: -1, Histogram: text}})
		if merged == nil {
			return
		}
		if merged.Count < 0 || merged.P50 > merged.P99 {
			t.Fatalf("%+v", merged)
		}
		if _, err := json.Marshal(merged); err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeHistogram(merged.Histogram); err != nil {
			t.Fatalf("what was merged cannot be read: %v", err)
		}
	})
}
