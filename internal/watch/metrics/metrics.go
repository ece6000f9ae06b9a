// Package metrics offers the latest samples of a watch to monitoring systems: as text that Prometheus scrapes (OpenMetrics 1.0), and pushed by OTLP/HTTP.
//
// A value has the time of its measurement, not that of the scrape, and is absent if it was not measured. Names and units follow the conventions of
// Prometheus: base units (seconds, bytes, ratios), and the unit in the name. The labels are the two end points, so that their number is bounded by the pairs.
package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"thru/internal/watch/record"
)

// mostPairs bounds the pairs that are offered: a monitoring system suffers from too many series.
const mostPairs = 20_000

// family is a metric as monitoring systems see it.
type family struct {
	name, unit, help string
	of               record.Metric
	factor           float64 // from the unit of the sample
	quantile         string
}

// families lists the metrics, quantiles of one family in a row.
func families() []family {
	const ns, bits = 1e-9, 1.0 / 8
	return []family{
		{"thru_goodput_bytes_per_second", "bytes_per_second", "Payload that the receiver got, in the last TCP test.", record.Goodput, bits, ""},
		{"thru_capacity_bytes_per_second", "bytes_per_second", "Capacity of the path, by trains of packets.", record.Capacity, bits, ""},
		{"thru_loss_ratio", "ratio", "Probes that were lost, of all.", record.LossRatio, 1, ""},
		{"thru_round_trip_seconds", "seconds", "Round trip of probes; quantile 0 is the least.", record.RTTMin, ns, "0"},
		{"thru_round_trip_seconds", "seconds", "", record.RTTMedian, ns, "0.5"},
		{"thru_round_trip_seconds", "seconds", "", record.RTT99, ns, "0.99"},
		{"thru_one_way_delay_seconds", "seconds", "Median delay from sender to receiver.", record.Delay, ns, ""},
		{"thru_one_way_delay_error_seconds", "seconds", "How far the one-way delay may be wrong, either way.", record.DelayBound, ns, ""},
		{"thru_loaded_round_trip_seconds", "seconds", "Round trip during the last TCP test.", record.RTTLoaded, ns, ""},
		{"thru_retransmit_ratio", "ratio", "Segments that TCP retransmitted, of all, in the last TCP test.", record.Retransmits, 1, ""},
		{"thru_mtu_bytes", "bytes", "Largest packet that passed.", record.MTU, 1, ""},
		{"thru_hops", "", "Routers on the path.", record.Hops, 1, ""},
		{"thru_sender_cpu_seconds_per_byte", "seconds_per_byte", "CPU time of the sending host for each byte, in the last TCP test.", record.CPUSender, 8e-9, ""},
		{"thru_receiver_cpu_seconds_per_byte", "seconds_per_byte", "CPU time of the receiving host for each byte, in the last TCP test.", record.CPUReceiver, 8e-9, ""},
	}
}

// Set has the latest values. It is safe for concurrent use.
type Set struct {
	mu      sync.Mutex
	pairs   map[record.Pair]*latest
	dropped int // pairs beyond mostPairs
	alarms  int // that are raised now
	raised  int // since the start
	samples map[record.Layer]int
}

// latest is what is known of a pair.
type latest struct {
	values map[record.Metric]value
	state  record.State
	since  time.Time
}

// value is a measured value, and the end of its measurement.
type value struct {
	x  float64
	at time.Time
}

// NewSet returns an empty Set.
func NewSet() *Set {
	return &Set{pairs: map[record.Pair]*latest{}, samples: map[record.Layer]int{}}
}

// Take takes a sample.
func (s *Set) Take(x record.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples[x.Layer]++
	p := s.of(x.Pair)
	if p == nil {
		return
	}
	at := x.Begin.Add(time.Duration(x.Seconds * float64(time.Second)))
	for m, v := range x.Values {
		if old, known := p.values[m]; !known || at.After(old.at) {
			p.values[m] = value{v, at}
		}
	}
}

// of returns what is known of a pair; nil: there are too many.
func (s *Set) of(p record.Pair) *latest {
	if x := s.pairs[p]; x != nil {
		return x
	}
	if len(s.pairs) >= mostPairs {
		s.dropped++
		return nil
	}
	x := &latest{values: map[record.Metric]value{}}
	s.pairs[p] = x
	return x
}

// Hear takes an event.
func (s *Set) Hear(e record.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case record.StateChanged:
		if p := s.of(*e.Pair); p != nil {
			p.state, p.since = e.State, e.At
		}
	case record.AlarmRaised:
		s.alarms++
		s.raised++
	case record.AlarmOver:
		s.alarms--
	}
}

// states lists the states of a pair, in the order in which they are printed.
func states() []record.State {
	return []record.State{record.Up, record.Degraded, record.Down, record.Refused, record.Deferred, record.NotMeasured}
}

// ContentType is the media type of Write.
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// Write writes all values as OpenMetrics text. A slow reader delays nobody else.
func (s *Set) Write(to io.Writer) error {
	var b bytes.Buffer
	s.format(&b)
	_, err := b.WriteTo(to)
	return err
}

// format writes all values.
func (s *Set) format(w *bytes.Buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(s.pairs), func(a, b record.Pair) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for i, f := range families() {
		if f.help != "" {
			fmt.Fprintf(w, "# TYPE %s gauge\n", f.name)
			if f.unit != "" {
				fmt.Fprintf(w, "# UNIT %s %s\n", f.name, f.unit)
			}
			fmt.Fprintf(w, "# HELP %s %s\n", f.name, f.help)
		}
		if f.quantile != "" {
			s.quantiles(w, i, names)
			continue
		}
		for _, p := range names {
			if v, ok := s.pairs[p].values[f.of]; ok {
				fmt.Fprintf(w, "%s{%s} %s %s\n", f.name, labels(p), number(v.x*f.factor), seconds(v.at))
			}
		}
	}
	s.writeStates(w, names)
	fmt.Fprintf(w, "# TYPE thru_alarms gauge\n# HELP thru_alarms Alarms that are raised now.\nthru_alarms %d\n", s.alarms)
	fmt.Fprintf(w, "# TYPE thru_alarms_raised counter\n# HELP thru_alarms_raised Alarms since the start.\nthru_alarms_raised_total %d\n", s.raised)
	fmt.Fprint(w, "# TYPE thru_samples counter\n# HELP thru_samples Turns since the start, measured or not.\n")
	for _, l := range slices.Sorted(maps.Keys(s.samples)) {
		fmt.Fprintf(w, "thru_samples_total{layer=\"%s\"} %d\n", l, s.samples[l])
	}
	fmt.Fprintf(w, "# TYPE thru_samples_left_out counter\n# HELP thru_samples_left_out Samples of pairs beyond the limit of %d.\nthru_samples_left_out_total %d\n# EOF\n", mostPairs, s.dropped)
}

// quantiles writes one quantile of all pairs. OpenMetrics wants the values of a metric together, so that the first quantile writes all of its family.
func (s *Set) quantiles(w io.Writer, first int, names []record.Pair) {
	all := families()
	if first > 0 && all[first-1].name == all[first].name {
		return
	}
	for _, p := range names {
		for _, f := range all[first:] {
			if f.name != all[first].name {
				break
			}
			if v, ok := s.pairs[p].values[f.of]; ok {
				fmt.Fprintf(w, "%s{%s,quantile=\"%s\"} %s %s\n", f.name, labels(p), f.quantile, number(v.x*f.factor), seconds(v.at))
			}
		}
	}
}

// writeStates writes the state of each pair.
func (s *Set) writeStates(w io.Writer, names []record.Pair) {
	fmt.Fprint(w, "# TYPE thru_state stateset\n# HELP thru_state State of the pair.\n")
	for _, p := range names {
		if s.pairs[p].state == "" {
			continue
		}
		for _, state := range states() {
			on := 0
			if s.pairs[p].state == state {
				on = 1
			}
			fmt.Fprintf(w, "thru_state{%s,thru_state=\"%s\"} %d\n", labels(p), state, on)
		}
	}
}

// ServeHTTP implements http.Handler.
func (s *Set) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", ContentType)
	_ = s.Write(w) // the scraper has gone
}

// labels returns the labels of a pair.
func labels(p record.Pair) string {
	return fmt.Sprintf(`from="%s",to="%s"`, escaped(p.From), escaped(p.To))
}

// escaped escapes a label value (OpenMetrics 1.0, escaping).
func escaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}

// number prints a value.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// seconds prints a time as OpenMetrics does: seconds since 1970, with milliseconds.
func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
