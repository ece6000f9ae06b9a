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
	s.Take(record.Sample{Pair: p, Layer: record.TCP, Begin: at.Add(-15 * time.Minute), Seconds: 3.25, State: record.Up, Values: map[record.Metric]float64{record.Goodput: 8e9}})
	s.Take(record.Sample{Pair: p, Layer: record.TCP, Begin: at, State: record.Deferred, Reason: record.Load})
	s.Take(record.Sample{Pair: p, Layer: record.TCP, Begin: at.Add(-30 * time.Minute), State: record.Up, Values: map[record.Metric]float64{record.Goodput: 1}}) // late
	s.Take(record.Sample{Pair: record.Pair{From: "x\"\n\\\xff", To: "b"}, Layer: record.Probe, Begin: at, Values: map[record.Metric]float64{record.Hops: 3, record.RTTMin: 1e6}})
	s.Stand([]record.Standing{
		{Pair: p, State: record.Up, Goals: []record.Goal{
			{Objective: "goodput >= 1G, 99% of days", Metric: record.Goodput, Limit: 1e9, Of: 4, UsedPct: 50},
			{Objective: "loss <= 1%, 99% of days", Metric: record.LossRatio, Limit: 0.01}, // nothing is counted yet
		}}, {Pair: record.Pair{From: "x\"\n\\\xff", To: "b"}},
	}, []record.Alarm{{ID: "1", Kind: record.KindOutage, Pairs: []record.Pair{p}}})
	return s
}

// text returns what a Set offers two minutes after at, with a family of another source.
func text(f format) string {
	own := One("thru_build", Info, "", "Version.", 1, "version", "1")
	return f.text(append([]Family{own}, filled().Families()...), at.Add(2*time.Minute)).String()
}

func TestOpenMetrics(t *testing.T) {
	b := text(open)
	for _, want := range []string{
		"# TYPE thru_goodput_bytes_per_second gauge\n# UNIT thru_goodput_bytes_per_second bytes_per_second\n",
		`thru_goodput_bytes_per_second{from="a",to="b"} 1e+09 1777635903.250` + "\n", // the end of the test before
		"# TYPE thru_round_trip_seconds summary\n",
		`thru_round_trip_seconds{from="a",to="b",quantile="0"} 0.001 1777636860.000` + "\n" + `thru_round_trip_seconds{from="a",to="b",quantile="0.5"} 0.002 1777636860.000` + "\n" + `thru_round_trip_seconds{from="a",to="b",quantile="0.99"} 0.005`,
		`thru_hops{from="x\"\n\\` + "\uFFFD" + `",to="b"} 3`,
		`thru_state{from="a",to="b",thru_state="up"} 1` + "\n" + `thru_state{from="a",to="b",thru_state="degraded"} 0`,
		`thru_last_measured_timestamp_seconds{from="a",to="b",layer="probe"} 1.77763686e+09` + "\n" + `thru_last_measured_timestamp_seconds{from="a",to="b",layer="tcp"} 1.77763590325e+09`,
		`thru_pair_alarms{from="a",to="b",kind="change"} 0` + "\n" + `thru_pair_alarms{from="a",to="b",kind="outage"} 1`,
		`thru_goodput_objective_bytes_per_second{from="a",to="b"} 1.25e+08` + "\n",
		`thru_objective_budget_used_ratio{from="a",to="b",objective="goodput >= 1G, 99% of days"} 0.5` + "\n",
		"# HELP thru_build Version.\n# TYPE thru_build info\nthru_build_info{version=\"1\"} 1\n", "\nthru_alarms 1\n", `thru_samples_total{layer="tcp"} 3`,
	} {
		if !strings.Contains(b, want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
	if strings.Contains(b, "thru_capacity_bytes_per_second{") || strings.Contains(b, `objective="loss`) || !strings.HasSuffix(b, "\n# EOF\n") {
		t.Errorf("what was not measured is there, or the end is missing:\n%s", b)
	}
}

func TestPlain(t *testing.T) {
	b := text(plain)
	for _, want := range []string{
		`thru_goodput_bytes_per_second{from="a",to="b"} 1e+09 1777635903250` + "\n",
		"# TYPE thru_state gauge\n", "# TYPE thru_samples_total counter\nthru_samples_total{", "# TYPE thru_build_info gauge\n",
	} {
		if !strings.Contains(b, want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
	if strings.Contains(b, "# UNIT") || strings.Contains(b, "# EOF") {
		t.Errorf("the plain format has comments of another:\n%s", b)
	}
}

// TestOffered checks that old values end: Prometheus refuses them, and says so at each scrape.
func TestOffered(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: true, offered - time.Second: true, offered: false, 24 * time.Hour: false} {
		b := open.text(filled().Families(), at.Add(time.Minute+after)).String()
		if got := strings.Contains(b, "thru_loss_ratio{"); got != want {
			t.Errorf("%v after its measurement a value is offered: %v, want %v", after, got, want)
		}
		if !strings.Contains(b, "thru_state{") || !strings.Contains(b, "thru_last_measured_timestamp_seconds{") {
			t.Errorf("%v after its measurement a pair has no state", after)
		}
	}
}

func TestHandler(t *testing.T) {
	for accept, want := range map[string]format{
		"": plain, "*/*": plain, "text/html, */*;q=0.1": plain, "text/plain;version=0.0.4": plain,
		"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1": open,
	} {
		r, w := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
		r.Header.Set("Accept", accept)
		Handler(filled().Families).ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); got != want.mediaType() {
			t.Errorf("Accept %q: %q", accept, got)
		}
	}
}

func TestPush(t *testing.T) {
	type otlpRequest struct {
		Resources []struct {
			Scopes []struct {
				Metrics []struct {
					Gauge struct {
						Points []any `json:"dataPoints"`
					} `json:"gauge"`
				} `json:"metrics"`
			} `json:"scopeMetrics"`
		} `json:"resourceMetrics"`
	}
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
	push(8)
	status = http.StatusOK
	push(8) // again, since the first was refused
	push(0)
	s.Take(record.Sample{Pair: record.Pair{From: "a", To: "b"}, Layer: record.Probe, Begin: at.Add(time.Minute), Seconds: 60, Values: map[record.Metric]float64{record.LossRatio: 0}})
	push(1)
}

func TestBounded(t *testing.T) {
	s := NewSet()
	for i := range mostPairs + 10 {
		s.Take(record.Sample{Pair: record.Pair{From: strings.Repeat("x", i%300), To: time.Duration(i).String()}, Layer: record.Probe})
	}
	if len(s.pairs) != mostPairs {
		t.Errorf("%d pairs", len(s.pairs))
	}
	s.Stand([]record.Standing{{Pair: record.Pair{To: "0s"}}}, nil)
	if len(s.pairs) != 1 {
		t.Errorf("%d pairs, of which one is watched", len(s.pairs))
	}
}
