package metrics

import (
	"context"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/watch/alert"
)

// pushTime bounds a push.
const pushTime = 10 * time.Second

// Pusher sends values to an OTLP/HTTP endpoint as JSON (OpenTelemetry protocol 1.x, ExportMetricsServiceRequest). Each value is sent once.
type Pusher struct {
	URL     string // of the collector; /v1/metrics is added to an address without a path
	Version string
	sent    map[string]time.Time // by name and labels
}

// object is one of JSON.
type object = map[string]any

// attributes returns names and values in turn as OTLP has them.
func attributes(labels ...string) []object {
	all := []object{}
	for i := 0; i+1 < len(labels); i += 2 {
		all = append(all, object{"key": labels[i], "value": object{"stringValue": strings.ToValidUTF8(labels[i+1], "\uFFFD")}})
	}
	return all
}

// Push sends all values that are new since the last push. After an error they are sent again.
func (p *Pusher) Push(ctx context.Context, s *Set) error {
	metrics, sent := p.fresh(s)
	if len(metrics) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	scope := object{"scope": object{"name": "thru", "version": p.Version}, "metrics": metrics}
	resource := object{"resource": object{"attributes": attributes("service.name", "thru")}, "scopeMetrics": []object{scope}}
	if err := alert.PostJSON(ctx, p.address(), object{"resourceMetrics": []object{resource}}, nil); err != nil {
		return fault.Failf("is it the address of an OTLP/HTTP collector?", "metrics: pushing to %s: %w", p.URL, err)
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
func (p *Pusher) fresh(s *Set) (all []object, sent map[string]time.Time) {
	sent = map[string]time.Time{}
	ucum := map[string]string{"seconds": "s", "bytes": "By", "bytes_per_second": "By/s", "seconds_per_byte": "s/By", "ratio": "1"} // OpenTelemetry's code of units
	for _, f := range s.Families() {
		var points []object
		for _, v := range f.Points {
			k := f.Name + "\n" + strings.Join(v.Labels, "\n")
			if v.At.IsZero() {
				continue
			}
			if sent[k] = v.At; !p.sent[k].Equal(v.At) {
				points = append(points, object{"attributes": attributes(v.Labels...), "timeUnixNano": strconv.FormatInt(v.At.UnixNano(), 10), "asDouble": v.Value})
			}
		}
		if len(points) > 0 {
			all = append(all, object{"name": f.Name, "description": f.Help, "unit": ucum[f.Unit], "gauge": object{"dataPoints": points}})
		}
	}
	return all, sent
}
