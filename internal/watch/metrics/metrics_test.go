package metrics

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"thru/internal/watch/record"
)

var at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// filled returns a Set with a probe and a TCP test of one pair, and a hostile name.
func filled() *Set {
	s := NewSet()
	p := record.Pair{From: "a", To: "b"}
	s.Take(record.Sample{Pair: p, Layer: record.Probe, Begin: at, Seconds: 60, State: record.Up, Values: map[record.Metric]float64{
		record.LossRatio: 0.01, record.RTTMin: 1e6, record.RTTMedian: 2e6, record.RTT99: 5e6, record.MTU: 1500}})
	s.Take(record.Sample{Pair: p, Layer: record.TCP, Begin: at.Add(-time.Hour), Seconds: 3, State: record.Up, Values: map[record.Metric]float64{record.Goodput: 8e9}})
	s.Take(record.Sample{Pair: p, Layer: record.TCP, Begin: at, State: record.Deferred, Reason: record.Load})
	s.Take(record.Sample{Pair: record.Pair{From: "x\"\n\\\xff", To: "b"}, Layer: record.Probe, Begin: at, Values: map[record.Metric]float64{record.Hops: 3}})
	s.Hear(record.Event{Kind: record.StateChanged, At: at, Pair: &p, State: record.Up})
	s.Hear(record.Event{Kind: record.AlarmRaised, Alarm: &record.Alarm{}})
	return s
}

func TestWrite(t *testing.T) {
	answer := httptest.NewRecorder()
	own := func() []Family { return []Family{One("thru_build", Info, "", "Version.", 1, "version", "1")} }
	Handler(own, filled().Families).ServeHTTP(answer, nil)
	b := answer.Body
	for _, want := range []string{
		"# TYPE thru_goodput_bytes_per_second gauge\n# UNIT thru_goodput_bytes_per_second bytes_per_second\n",
		`thru_goodput_bytes_per_second{from="a",to="b"} 1e+09 1777633203.000` + "\n", // the end of the test an hour before
		`thru_round_trip_seconds{from="a",to="b",quantile="0"} 0.001 1777636860.000` + "\n" + `thru_round_trip_seconds{from="a",to="b",quantile="0.5"} 0.002`,
		`thru_hops{from="x\"\n\\` + "\uFFFD" + `",to="b"} 3`,
		`thru_state{from="a",to="b",thru_state="up"} 1` + "\n" + `thru_state{from="a",to="b",thru_state="degraded"} 0`,
		"# TYPE thru_build info\n# HELP thru_build Version.\nthru_build_info{version=\"1\"} 1\n", "\nthru_alarms 1\n", `thru_samples_total{layer="tcp"} 2`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "thru_capacity_bytes_per_second{") || !strings.HasSuffix(b.String(), "\n# EOF\n") {
		t.Errorf("what was not measured is there, or the end is missing:\n%s", b.String())
	}
}

func TestPush(t *testing.T) {
	var bodies []otlpRequest
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var q otlpRequest
		if err := json.Unmarshal(text, &q); err != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%v: %s at %s", err, text, r.URL.Path)
		}
		bodies = append(bodies, q)
		w.WriteHeader(status)
	}))
	defer server.Close()
	p, s := Pusher{URL: server.URL, Version: "1"}, filled()
	push := func(want int) {
		t.Helper()
		bodies = nil
		if err := p.Push(t.Context(), s); (err == nil) != (status == http.StatusOK) {
			t.Errorf("%v", err)
		}
		n := 0
		for _, q := range bodies {
			for _, m := range q.Resources[0].Scopes[0].Metrics {
				n += len(m.Gauge.Points)
			}
		}
		if n != want {
			t.Errorf("%d points, want %d", n, want)
		}
	}
	status = http.StatusServiceUnavailable
	push(7)
	status = http.StatusOK
	push(7) // again, since the first was refused
	push(0)
	s.Take(record.Sample{Pair: record.Pair{From: "a", To: "b"}, Layer: record.Probe, Begin: at.Add(time.Minute), Seconds: 60, Values: map[record.Metric]float64{record.LossRatio: 0}})
	push(1)
}

func TestBounded(t *testing.T) {
	s := NewSet()
	for i := range mostPairs + 10 {
		s.Take(record.Sample{Pair: record.Pair{From: strings.Repeat("x", i%300), To: time.Duration(i).String()}, Layer: record.Probe})
	}
	if len(s.pairs) != mostPairs || s.dropped != 10 {
		t.Errorf("%d pairs, %d left out", len(s.pairs), s.dropped)
	}
}
