package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
)

// pushTime bounds a push.
const pushTime = 10 * time.Second

// Pusher sends values to an OTLP/HTTP endpoint as JSON (OpenTelemetry protocol 1.x, ExportMetricsServiceRequest). Each value is sent once.
type Pusher struct {
	URL     string // of the collector; /v1/metrics is added to an address without a path
	Version string
	sent    map[string]time.Time // by name and labels
}

// The parts of OTLP's JSON that a gauge needs.
type (
	otlpRequest struct {
		Resources []otlpResource `json:"resourceMetrics"`
	}
	otlpResource struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes"`
		} `json:"resource"`
		Scopes []otlpScope `json:"scopeMetrics"`
	}
	otlpScope struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"scope"`
		Metrics []otlpMetric `json:"metrics"`
	}
	otlpMetric struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Unit        string `json:"unit,omitempty"`
		Gauge       struct {
			Points []otlpPoint `json:"dataPoints"`
		} `json:"gauge"`
	}
	otlpPoint struct {
		Attributes []otlpAttribute `json:"attributes"`
		Time       string          `json:"timeUnixNano"`
		Value      float64         `json:"asDouble"`
	}
	otlpAttribute struct {
		Key   string `json:"key"`
		Value struct {
			Text string `json:"stringValue"`
		} `json:"value"`
	}
)

// attribute returns an attribute.
func attribute(key, text string) (a otlpAttribute) {
	a.Key, a.Value.Text = key, strings.ToValidUTF8(text, "\uFFFD")
	return a
}

// Push sends all values that are new since the last push. After an error they are sent again.
func (p *Pusher) Push(ctx context.Context, s *Set) error {
	metrics, sent := p.fresh(s)
	if len(metrics) == 0 {
		return nil
	}
	r := otlpResource{Scopes: []otlpScope{{Metrics: metrics}}}
	r.Resource.Attributes = []otlpAttribute{attribute("service.name", "thru")}
	r.Scopes[0].Scope.Name, r.Scopes[0].Scope.Version = "thru", p.Version
	body, err := json.Marshal(otlpRequest{[]otlpResource{r}})
	if err != nil {
		return fmt.Errorf("metrics: pushing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("metrics: pushing: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(q)
	if err != nil {
		return fault.Failf("is it the address of an OTLP/HTTP collector?", "metrics: pushing to %s: %w", p.URL, err)
	}
	defer reply.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(reply.Body, 1<<16)) // so that the connection is used again
	if reply.StatusCode/100 != 2 {
		return fault.Failf("is it the address of an OTLP/HTTP collector?", "metrics: pushing to %s: it answers %s", p.URL, reply.Status)
	}
	p.sent = sent
	return nil
}

// address returns the full address.
func (p *Pusher) address() string {
	if _, path, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p.URL, "https://"), "http://"), "/"); ok && path != "" {
		return p.URL
	}
	return strings.TrimSuffix(p.URL, "/") + "/v1/metrics"
}

// fresh returns the measured values that were not sent yet, and all that will then be sent.
func (p *Pusher) fresh(s *Set) (all []otlpMetric, sent map[string]time.Time) {
	sent = map[string]time.Time{}
	for _, f := range s.Families() {
		m := otlpMetric{Name: f.Name, Description: f.Help, Unit: ucum(f.Unit)}
		for _, v := range f.Points {
			k := f.Name + "\n" + strings.Join(v.Labels, "\n")
			if v.At.IsZero() {
				continue
			}
			if sent[k] = v.At; p.sent[k].Equal(v.At) {
				continue
			}
			x := otlpPoint{Time: strconv.FormatInt(v.At.UnixNano(), 10), Value: v.Value}
			for i := 0; i+1 < len(v.Labels); i += 2 {
				x.Attributes = append(x.Attributes, attribute(v.Labels[i], v.Labels[i+1]))
			}
			m.Gauge.Points = append(m.Gauge.Points, x)
		}
		if len(m.Gauge.Points) > 0 {
			all = append(all, m)
		}
	}
	return all, sent
}

// ucum returns a unit in the code that OpenTelemetry wants (UCUM).
func ucum(unit string) string {
	return map[string]string{"seconds": "s", "bytes": "By", "bytes_per_second": "By/s", "seconds_per_byte": "s/By", "ratio": "1"}[unit]
}
