// Package metrics offers figures to monitoring systems: as text that Prometheus scrapes (OpenMetrics 1.0), and pushed by OTLP/HTTP. A Set has the latest
// samples of a watch; agents and controllers add families of their own.
//
// A value has the time of its measurement, not that of the scrape, and is absent if it was not measured. Names and units follow the conventions of
// Prometheus: base units (seconds, bytes, ratios), and the unit in the name. The labels of a watch are the two end points, so that their number is bounded by the pairs.
package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"thru/internal/watch/record"
)

// mostPairs bounds the pairs that are offered: a monitoring system suffers from too many series.
const mostPairs = 20_000

// figure is a metric of the samples as monitoring systems see it.
type figure struct {
	name, unit, help string
	of               record.Metric
	factor           float64 // from the unit of the sample
	quantile         string
}

// figures lists the metrics, quantiles of one family in a row.
func figures() []figure {
	const ns, bits = 1e-9, 1.0 / 8
	return []figure{
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
	dropped int             // pairs beyond mostPairs
	alarms  map[string]bool // that are raised now
	raised  int             // since the start
	samples map[record.Layer]int
}

// latest is what is known of a pair.
type latest struct {
	values map[record.Metric]value
	state  record.State
}

// value is a measured value, and the end of its measurement.
type value struct {
	x  float64
	at time.Time
}

// NewSet returns an empty Set.
func NewSet() *Set {
	return &Set{pairs: map[record.Pair]*latest{}, samples: map[record.Layer]int{}, alarms: map[string]bool{}}
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

// Forget removes a pair that is not watched any more.
func (s *Set) Forget(p record.Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pairs, p)
}

// Hear takes an event.
func (s *Set) Hear(e record.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case record.StateChanged:
		if p := s.of(*e.Pair); p != nil {
			p.state = e.State
		}
	case record.AlarmRaised:
		s.alarms[e.Alarm.ID] = true
		s.raised++
	case record.AlarmOver:
		delete(s.alarms, e.Alarm.ID)
	}
}

// states lists the states of a pair, in the order in which they are printed.
func states() []record.State {
	return []record.State{record.Up, record.Degraded, record.Down, record.Refused, record.Deferred, record.NotMeasured}
}

// Families returns all values.
func (s *Set) Families() (all []Family) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pairs := slices.SortedFunc(maps.Keys(s.pairs), func(a, b record.Pair) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for _, f := range figures() {
		if f.help != "" {
			all = append(all, Family{f.name, Gauge, f.unit, f.help, nil})
		}
		to := &all[len(all)-1]
		for _, p := range pairs {
			labels := []string{"from", p.From, "to", p.To}
			if f.quantile != "" {
				labels = append(labels, "quantile", f.quantile)
			}
			if v, ok := s.pairs[p].values[f.of]; ok {
				to.Points = append(to.Points, Point{labels, v.x * f.factor, v.at})
			}
		}
	}
	state := Family{"thru_state", StateSet, "", "State of the pair.", nil}
	for _, p := range pairs {
		for _, x := range states() {
			if now := s.pairs[p].state; now != "" {
				state.Points = append(state.Points, Point{Labels: []string{"from", p.From, "to", p.To, state.Name, string(x)}, Value: truth(now == x)})
			}
		}
	}
	turns := Family{"thru_samples", Counter, "", "Turns since the start, measured or not.", nil}
	for _, l := range slices.Sorted(maps.Keys(s.samples)) {
		turns.Points = append(turns.Points, Point{Labels: []string{"layer", string(l)}, Value: float64(s.samples[l])})
	}
	return append(all, state, turns,
		One("thru_alarms", Gauge, "", "Alarms that are raised now.", float64(len(s.alarms))),
		One("thru_alarms_raised", Counter, "", "Alarms since the start.", float64(s.raised)),
		One("thru_samples_left_out", Counter, "", fmt.Sprintf("Samples of pairs beyond the limit of %d.", mostPairs), float64(s.dropped)))
}
