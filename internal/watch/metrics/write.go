package metrics

import (
	"bytes"
	"fmt"
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

// One returns a metric of one value of the moment.
func One(name string, kind Kind, unit, help string, value float64, labels ...string) Family {
	return Family{name, kind, unit, help, []Point{{Labels: labels, Value: value}}}
}

// truth returns a condition as a number.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// ContentType is the media type of what Handler answers.
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// Handler answers with the metrics of all sources. A slow reader delays none of them.
func Handler(sources ...func() []Family) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		for _, source := range sources {
			for _, f := range source() {
				f.write(&b)
			}
		}
		b.WriteString("# EOF\n")
		w.Header().Set("Content-Type", ContentType)
		_, _ = b.WriteTo(w) // the scraper has gone
	})
}

// write writes a metric as OpenMetrics text.
func (f Family) write(w *bytes.Buffer) {
	fmt.Fprintf(w, "# TYPE %s %s\n", f.Name, f.Kind)
	if f.Unit != "" {
		fmt.Fprintf(w, "# UNIT %s %s\n", f.Name, f.Unit)
	}
	fmt.Fprintf(w, "# HELP %s %s\n", f.Name, f.Help)
	for _, p := range f.Points {
		w.WriteString(f.Name + map[Kind]string{Counter: "_total", Info: "_info"}[f.Kind])
		for i := 0; i+1 < len(p.Labels); i += 2 {
			fmt.Fprintf(w, `%c%s="%s"`, "{,"[min(i, 1)], p.Labels[i], escaped(p.Labels[i+1]))
		}
		if len(p.Labels) > 0 {
			w.WriteByte('}')
		}
		w.WriteString(" " + strconv.FormatFloat(p.Value, 'g', -1, 64))
		if !p.At.IsZero() { // seconds since 1970, with milliseconds
			w.WriteString(" " + strconv.FormatFloat(float64(p.At.UnixMilli())/1000, 'f', 3, 64))
		}
		w.WriteByte('\n')
	}
}

// escaped escapes a label value (OpenMetrics 1.0, escaping).
func escaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}
