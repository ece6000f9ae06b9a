package metrics

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kind is a type of OpenMetrics.
type Kind string

// Kinds.
const (
	Gauge    Kind = "gauge"
	Counter  Kind = "counter"
	Info     Kind = "info"
	StateSet Kind = "stateset"
	Summary  Kind = "summary" // of quantiles: only its values have the label quantile
)

// Family is a metric with its values.
type Family struct {
	Name   string // without the ending of its kind, such as _total
	Kind   Kind
	Unit   string // with which the name ends; empty: none
	Help   string
	Points []Point // none: it was not measured
}

// Point is a value.
type Point struct {
	Labels []string // names and values in turn
	Value  float64
	At     time.Time // of its measurement; zero: it is of the moment
}

// add adds a value of the moment.
func (f *Family) add(value float64, labels ...string) {
	f.Points = append(f.Points, Point{Labels: labels, Value: value})
}

// One returns a metric of one value of the moment.
func One(name string, kind Kind, unit, help string, value float64, labels ...string) Family {
	return Family{name, kind, unit, help, []Point{{Labels: labels, Value: value}}}
}

// offered is how long a measured value is offered. Prometheus refuses values that are an hour older than its newest, and notes it at each scrape.
const offered = 45 * time.Minute

// format is a text format.
type format int

// Formats.
const (
	plain format = iota // Prometheus text format 0.0.4: for those that do not ask for another, such as curl and promtool
	open                // OpenMetrics 1.0
)

// mediaType returns the media type of the format.
func (f format) mediaType() string {
	if f == open {
		return openType + "; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

// openType is the media type of OpenMetrics.
const openType = "application/openmetrics-text"

// wanted returns the format that a request asks for.
func wanted(r *http.Request) format {
	for _, header := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(header, ",") {
			if media, _, err := mime.ParseMediaType(one); err == nil && media == openType {
				return open
			}
		}
	}
	return plain
}

// Handler answers with the metrics of all sources. A slow reader delays none of them.
func Handler(sources ...func() []Family) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var all []Family
		for _, source := range sources {
			all = append(all, source()...)
		}
		f := wanted(r)
		w.Header().Set("Content-Type", f.mediaType())
		_, _ = f.text(all, time.Now()).WriteTo(w) // the scraper has gone
	})
}

// text returns the metrics as text. Values that were measured too long before now are absent.
func (f format) text(all []Family, now time.Time) *bytes.Buffer {
	w := new(bytes.Buffer)
	for _, x := range all {
		suffix := map[Kind]string{Counter: "_total", Info: "_info"}[x.Kind]
		name, kind := x.Name, x.Kind
		if f == plain { // which has other names and fewer types
			name += suffix
			if kind == Info || kind == StateSet {
				kind = Gauge
			}
		}
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, x.Help, name, kind)
		if x.Unit != "" && f == open {
			fmt.Fprintf(w, "# UNIT %s %s\n", name, x.Unit)
		}
		for _, p := range x.Points {
			if p.At.IsZero() || now.Sub(p.At) < offered {
				f.point(w, x.Name+suffix, p)
			}
		}
	}
	if f == open {
		w.WriteString("# EOF\n")
	}
	return w
}

// point writes a value.
func (f format) point(w *bytes.Buffer, name string, p Point) {
	w.WriteString(name)
	for i := 0; i+1 < len(p.Labels); i += 2 {
		fmt.Fprintf(w, `%c%s="%s"`, "{,"[min(i, 1)], p.Labels[i], escaped(p.Labels[i+1]))
	}
	if len(p.Labels) > 0 {
		w.WriteByte('}')
	}
	w.WriteString(" " + strconv.FormatFloat(p.Value, 'g', -1, 64))
	switch ms := p.At.UnixMilli(); {
	case p.At.IsZero():
	case f == open: // seconds since 1970
		w.WriteString(" " + strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64))
	default:
		w.WriteString(" " + strconv.FormatInt(ms, 10))
	}
	w.WriteByte('\n')
}

// escaped escapes a label value, the same way in both formats.
func escaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}
