package lab_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"thru/internal/watch/record"
	"thru/lab"
)

// query is a query of the examples.
type query struct {
	name    string // of its rule, or the text itself
	text    string
	instant bool
}

// absent has the queries that may find nothing here, by their names, and why.
func absent() map[string]string {
	const oneHost = "where a host does other work, the CPU time of a test is not known"
	const clocks = "the clock of this machine need not be in sync"
	return map[string]string{
		"ThruPairDown":     "no pair is down",
		"ThruPairChanged":  "nothing has changed",
		"ThruLoss":         "nothing is lost",
		"ThruNoSamples":    "samples come",
		"ThruHostsOffline": "no host is offline",
		"ThruExporterAway": "the exporters are there until the last part of the test",
		`thru_one_way_delay_seconds{from="$from",to="$to"}`:                                               clocks,
		`thru_one_way_delay_error_seconds{from="$from",to="$to"}`:                                         clocks,
		`last_over_time(thru_sender_cpu_seconds_per_byte{from="$from",to="$to"}[$__interval]) * 1.25e8`:   oneHost,
		`last_over_time(thru_receiver_cpu_seconds_per_byte{from="$from",to="$to"}[$__interval]) * 1.25e8`: oneHost,
	}
}

// queries returns all queries of the rules and of the dashboards.
func (m *monitored) queries(t *testing.T) (all []query) {
	t.Helper()
	type rule struct{ Name, Query, Health, LastError string }
	rules := decoded[struct {
		Data struct{ Groups []struct{ Rules []rule } }
	}](t, m.get(t, prometheusPort, "/api/v1/rules"))
	for _, g := range rules.Data.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" {
				t.Errorf("the rule %s: %s %s", r.Name, r.Health, r.LastError)
			}
			all = append(all, query{r.Name, r.Query, true})
		}
	}
	for _, name := range []string{"overview", "pair"} {
		all = append(all, dashboard(t, m, name)...)
	}
	return all
}

// dashboard returns the queries of a dashboard, and checks its variables.
func dashboard(t *testing.T, m *monitored, name string) (all []query) {
	t.Helper()
	text, err := os.ReadFile(monitoringExamples + "grafana-" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	d := decoded[struct {
		Templating struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
			}
		}
		Panels []struct {
			Title   string
			Targets []struct {
				Expr    string
				Instant bool
			}
		}
	}](t, text)
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s: %s asks for nothing", name, p.Title)
		}
		for _, x := range p.Targets {
			all = append(all, query{x.Expr, inserted(x.Expr), x.Instant})
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		asked := decoded[struct{ Query string }](t, v.Query).Query
		parts := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(inserted(asked))
		if parts == nil {
			t.Fatalf("%s: %q is not known to this test", name, asked)
		}
		values := decoded[struct{ Data []string }](t, m.get(t, prometheusPort, "/api/v1/label/"+parts[2]+"/values", "match[]", parts[1]))
		if want := inserted("$" + v.Name); len(values.Data) != 1 || values.Data[0] != want {
			t.Errorf("%s: %s has %q, want %q", name, v.Name, values.Data, want)
		}
	}
	return all
}

// inserted returns a query with the values that Grafana inserts.
func inserted(text string) string {
	return strings.NewReplacer("$from", "local", "$to", "b", "$__interval", "1m").Replace(text)
}

// checkQueries executes all queries until each has found something, unless absent says why not.
func (m *monitored) checkQueries(t *testing.T) {
	all, reasons := m.queries(t), absent()
	if len(all) < 30 {
		t.Fatalf("only %d queries", len(all))
	}
	for _, q := range all {
		why, may := reasons[q.name]
		delete(reasons, q.name)
		if may {
			t.Logf("%d series of %s: %s", len(m.ask(t, "query", q.text)), q.name, why)
			continue
		}
		lab.Eventually(t, 45*time.Second, "the query finds something: "+q.text, func() bool {
			if q.instant {
				return len(m.ask(t, "query", q.text)) > 0
			}
			now := time.Now().Unix()
			return len(m.ask(t, "query_range", q.text, "start", fmt.Sprint(now-300), "end", fmt.Sprint(now), "step", "15")) > 0
		})
	}
	for name := range reasons {
		t.Errorf("nobody asks for %s", name)
	}
}

// checkMeasured checks values by their times against what the watch has measured. The watch prints it after it offers it.
func (m *monitored) checkMeasured(t *testing.T, what string, got map[int64]float64, layer record.Layer, of record.Metric, factor float64, least int) {
	t.Helper()
	if len(got) < least {
		t.Errorf("%s: %d values, want %d", what, len(got), least)
	}
	for at, v := range got {
		lab.Eventually(t, 10*time.Second, fmt.Sprintf("%s: the watch has measured %v at %d", what, v, at), func() bool {
			want, is := m.turns(t, layer, of)[at]
			return is && math.Abs(v-want*factor) <= 1e-9*math.Abs(v)
		})
	}
}

// oldExporter offers values that are old, after somebody has said so.
type oldExporter struct{ offers atomic.Bool }

func (o *oldExporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for _, age := range []int64{44, 61} {
		if o.offers.Load() {
			fmt.Fprintf(w, "%s{age=\"%d\"} 1 %d\n", oldFigure, age, time.Now().Add(-time.Duration(age)*time.Minute).UnixMilli())
		}
	}
}

// checkTimes checks what Prometheus makes of the times of measurements: it keeps them, and takes each value once.
func (m *monitored) checkTimes(t *testing.T, old *oldExporter) {
	for name, x := range map[string]struct {
		layer  record.Layer
		of     record.Metric
		factor float64
	}{
		"thru_goodput_bytes_per_second":           {record.TCP, record.Goodput, 1.0 / 8},
		`thru_round_trip_seconds{quantile="0.5"}`: {record.Probe, record.RTTMedian, 1e-9},
	} {
		got := map[int64]float64{}
		for _, s := range m.ask(t, "query", name+"[10m]") {
			for _, v := range s.Values {
				value, err := strconv.ParseFloat(v[1].(string), 64)
				if err != nil {
					t.Fatal(err)
				}
				got[int64(math.Round(1000*v[0].(float64)))] = value
			}
		}
		m.checkMeasured(t, name, got, x.layer, x.of, x.factor, 1)
	}
	in := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).Unix()) }
	if n := len(m.ask(t, "query", "thru_goodput_bytes_per_second", "time", in(6*time.Minute))); n > 0 {
		t.Errorf("6 minutes after a test its value is there without last_over_time: then the rule is not needed")
	}
	if n := len(m.ask(t, "query", "last_over_time(thru_goodput_bytes_per_second[25h])", "time", in(24*time.Hour))); n != 1 {
		t.Errorf("%d values a day after the last test", n)
	}
	m.checkRefused(t, old)
}

// checkRefused checks that Prometheus refuses no value of thru, and one that is older than package metrics offers any.
func (m *monitored) checkRefused(t *testing.T, old *oldExporter) {
	t.Helper()
	refused := func(why string) string {
		name := "prometheus_target_scrapes_sample_" + why + "_total"
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(m.get(t, prometheusPort, "/metrics"))
		if found == nil {
			t.Fatalf("Prometheus does not count %s", name)
		}
		return string(found[1])
	}
	for _, why := range []string{"out_of_bounds", "out_of_order", "duplicate_timestamp"} {
		if n := refused(why); n != "0" {
			t.Errorf("Prometheus refuses %s values: %s", n, why)
		}
	}
	old.offers.Store(true)
	lab.Eventually(t, 20*time.Second, "Prometheus refuses the older of two values", func() bool { return refused("out_of_bounds") != "0" })
	lab.Eventually(t, 10*time.Second, "it takes the other", func() bool {
		found := m.ask(t, "query", "last_over_time("+oldFigure+"[2h])")
		return len(found) == 1 && found[0].Metric["age"] == "44"
	})
}

// checkStored checks what VictoriaMetrics has got from Prometheus.
func (m *monitored) checkStored(t *testing.T) {
	got := map[int64]float64{}
	lab.Eventually(t, 30*time.Second, "VictoriaMetrics has two TCP tests", func() bool {
		clear(got)
		for line := range strings.SplitSeq(strings.TrimSpace(string(m.get(t, victoriaPort, "/api/v1/export", "match[]", `thru_goodput_bytes_per_second{from="local",to="b"}`))), "\n") {
			if line == "" {
				continue
			}
			x := decoded[struct {
				Values     []float64
				Timestamps []int64
			}](t, []byte(line))
			for i := range x.Values {
				got[x.Timestamps[i]] = x.Values[i]
			}
		}
		return len(got) > 1
	})
	m.checkMeasured(t, "VictoriaMetrics", got, record.TCP, record.Goodput, 1.0/8, 2)
}

// otlpReceiver decodes what is pushed as the OpenTelemetry protocol says. Of Debian's programs none takes it: its Prometheus and VictoriaMetrics are too old.
type otlpReceiver struct {
	mu    sync.Mutex
	got   map[int64]float64 // goodput, by its time
	wrong []string
}

// otlpBody is an ExportMetricsServiceRequest with gauges (opentelemetry-proto 1.x, JSON).
type otlpBody struct {
	ResourceMetrics []struct {
		Resource     struct{ Attributes []otlpPair }
		ScopeMetrics []struct {
			Scope   struct{ Name, Version string }
			Metrics []struct {
				Name, Description, Unit string
				Gauge                   struct {
					DataPoints []struct {
						Attributes   []otlpPair
						TimeUnixNano string
						AsDouble     float64
					}
				}
			}
		}
	}
}

type otlpPair struct {
	Key   string
	Value struct{ StringValue string }
}

func (o *otlpReceiver) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	var x otlpBody
	if err := d.Decode(&x); err != nil || r.URL.Path != "/v1/metrics" || r.Header.Get("Content-Type") != "application/json" {
		o.wrong = append(o.wrong, fmt.Sprintf("%v at %s, %s", err, r.URL.Path, r.Header.Get("Content-Type")))
	}
	if o.got == nil {
		o.got = map[int64]float64{}
	}
	for _, resource := range x.ResourceMetrics {
		for _, scope := range resource.ScopeMetrics {
			for _, metric := range scope.Metrics {
				for _, p := range metric.Gauge.DataPoints {
					ns, err := strconv.ParseInt(p.TimeUnixNano, 10, 64)
					if _, twice := o.got[ns/1e6]; err != nil || metric.Name == "thru_goodput_bytes_per_second" && (twice || metric.Unit != "By/s" || len(p.Attributes) != 2) {
						o.wrong = append(o.wrong, fmt.Sprintf("%v: %+v", err, metric))
					}
					if metric.Name == "thru_goodput_bytes_per_second" {
						o.got[ns/1e6] = p.AsDouble
					}
				}
			}
		}
	}
}

// checkPushed checks what was pushed.
func (m *monitored) checkPushed(t *testing.T, o *otlpReceiver) {
	lab.Eventually(t, 30*time.Second, "a TCP test is pushed", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.got) > 0
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	m.checkMeasured(t, "OTLP", o.got, record.TCP, record.Goodput, 1.0/8, 1)
	if len(o.wrong) > 0 {
		t.Errorf("pushed: %q", o.wrong)
	}
}
