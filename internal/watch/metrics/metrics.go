// Package metrics offers figures to monitoring systems: as text that Prometheus scrapes (OpenMetrics 1.0, or the older text format), and pushed by OTLP/HTTP.
// A Set has the latest samples of a watch; agents and controllers add families of their own.
//
// A measured value has the time of its measurement, not that of the scrape, and is absent if it was not measured. What is true at the moment, such as a state, has
// no time. Prometheus takes a measured value once, however often it scrapes it, and shows it for five minutes: who asks for a TCP test of an hour ago uses
// last_over_time. Names and units follow the conventions of Prometheus: base units (seconds, bytes, ratios), and the unit in the name. The labels of a watch are the
// two end points and what the plan names, so that their number is bounded.
package metrics

import (
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
		{"thru_other_load_ratio", "ratio", "Traffic of others just before and after the last TCP test, of the link rate.", record.OtherLoad, 1, ""},
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
	dropped int                     // samples of pairs beyond mostPairs
	alarms  map[string]record.Alarm // that are raised now
	raised  int                     // since the start
	samples map[record.Layer]int
}

// latest is what is known of a pair.
type latest struct {
	values   map[record.Metric]value
	measured map[record.Layer]time.Time // end of the last turn that judges the path
	state    record.State
	goals    []record.Goal
}

// value is a measured value, and the end of its measurement.
type value struct {
	x  float64
	at time.Time
}

// NewSet returns an empty Set.
func NewSet() *Set {
	return &Set{pairs: map[record.Pair]*latest{}, samples: map[record.Layer]int{}, alarms: map[string]record.Alarm{}}
}

// Take takes a sample.
func (s *Set) Take(x record.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples[x.Layer]++
	p := s.of(x.Pair)
	if p == nil {
		s.dropped++
		return
	}
	at := x.Begin.Add(time.Duration(x.Seconds * float64(time.Second)))
	for m, v := range x.Values {
		if old, known := p.values[m]; !known || at.After(old.at) {
			p.values[m] = value{v, at}
		}
	}
	if x.State.Judges() && at.After(p.measured[x.Layer]) {
		p.measured[x.Layer] = at
	}
}

// Stand takes how a pair is, and how it keeps its objectives.
func (s *Set) Stand(of record.Pair, state record.State, goals []record.Goal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.of(of); p != nil {
		p.state, p.goals = state, goals
	}
}

// Alarm takes an alarm that an earlier run has raised.
func (s *Set) Alarm(a record.Alarm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarms[a.ID] = a
}

// of returns what is known of a pair; nil: there are too many.
func (s *Set) of(p record.Pair) *latest {
	if x := s.pairs[p]; x != nil {
		return x
	}
	if len(s.pairs) >= mostPairs {
		return nil
	}
	x := &latest{values: map[record.Metric]value{}, measured: map[record.Layer]time.Time{}}
	s.pairs[p] = x
	return x
}

// Only forgets the other pairs: they are not watched any more.
func (s *Set) Only(pairs map[record.Pair]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.pairs, func(p record.Pair, _ *latest) bool { return !pairs[p] })
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
		s.alarms[e.Alarm.ID] = *e.Alarm
		s.raised++
	case record.AlarmUpdated:
		s.alarms[e.Alarm.ID] = *e.Alarm
	case record.AlarmOver:
		delete(s.alarms, e.Alarm.ID)
	}
}

// Families returns all values.
func (s *Set) Families() (all []Family) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pairs := slices.SortedFunc(maps.Keys(s.pairs), record.Pair.Compare)
	for _, f := range figures() {
		if f.help != "" {
			all = append(all, Family{f.name, Gauge, f.unit, f.help, nil})
		}
		to := &all[len(all)-1]
		var more []string
		if f.quantile != "" {
			to.Kind, more = Summary, []string{"quantile", f.quantile}
		}
		for _, p := range pairs {
			if v, ok := s.pairs[p].values[f.of]; ok {
				to.Points = append(to.Points, Point{labels(p, more...), v.x * f.factor, v.at})
			}
		}
		if f.quantile != "" { // those of a pair belong together
			slices.SortStableFunc(to.Points, func(a, b Point) int { return slices.Compare(a.Labels[:4], b.Labels[:4]) })
		}
	}
	return append(append(all, s.standings(pairs)...), s.totals()...)
}

// labels returns the labels of a pair, and more.
func labels(p record.Pair, more ...string) []string {
	return append([]string{"from", p.From, "to", p.To}, more...)
}

// standings returns how the pairs are.
func (s *Set) standings(pairs []record.Pair) []Family {
	state := Family{"thru_state", StateSet, "", "State of the pair.", nil}
	last := Family{"thru_last_measured_timestamp_seconds", Gauge, "seconds", "End of the last turn that said something of the path, by layer.", nil}
	bound := Family{"thru_goodput_objective_bytes_per_second", Gauge, "bytes_per_second", "Goodput that an objective of the pair wants.", nil}
	used := Family{"thru_objective_budget_used_ratio", Gauge, "ratio", "Part of the error budget of 30 days that is used; from 1 on the objective is missed.", nil}
	alarms := Family{"thru_pair_alarms", Gauge, "", "Alarms that are raised now and touch the pair, by kind.", nil}
	counts := s.alarmsOf()
	add := func(to *Family, value float64, p record.Pair, more ...string) {
		to.Points = append(to.Points, Point{Labels: labels(p, more...), Value: value})
	}
	for _, p := range pairs {
		x := s.pairs[p]
		for _, l := range slices.Sorted(maps.Keys(x.measured)) {
			add(&last, float64(x.measured[l].UnixMilli())/1000, p, "layer", string(l))
		}
		if x.state == "" {
			continue
		}
		for _, is := range record.States() {
			add(&state, truth(x.state == is), p, state.Name, string(is))
		}
		for _, k := range []record.Kind{record.KindChange, record.KindOutage, record.KindObjective} {
			add(&alarms, float64(counts[pairKind{p, k}]), p, "kind", string(k))
		}
		goodput := 0.0
		for _, g := range x.goals {
			if g.Metric == record.Goodput {
				goodput = max(goodput, g.Limit/8)
			}
			if g.Of > 0 {
				add(&used, g.UsedPct/100, p, "objective", g.Objective)
			}
		}
		if goodput > 0 {
			add(&bound, goodput, p)
		}
	}
	return []Family{state, last, alarms, bound, used}
}

// pairKind is a kind of alarms of a pair.
type pairKind struct {
	record.Pair
	record.Kind
}

// alarmsOf counts the alarms of each pair.
func (s *Set) alarmsOf() map[pairKind]int {
	counts := map[pairKind]int{}
	for _, a := range s.alarms {
		for _, p := range a.Pairs {
			counts[pairKind{p, a.Kind}]++
		}
	}
	return counts
}

// totals returns what is counted of all pairs.
func (s *Set) totals() []Family {
	turns := Family{"thru_samples", Counter, "", "Turns since the start, measured or not.", nil}
	for _, l := range slices.Sorted(maps.Keys(s.samples)) {
		turns.Points = append(turns.Points, Point{Labels: []string{"layer", string(l)}, Value: float64(s.samples[l])})
	}
	return []Family{
		turns,
		One("thru_alarms", Gauge, "", "Alarms that are raised now.", float64(len(s.alarms))),
		One("thru_alarms_raised", Counter, "", "Alarms since the start.", float64(s.raised)),
		One("thru_samples_left_out", Counter, "", fmt.Sprintf("Samples of pairs beyond the limit of %d.", mostPairs), float64(s.dropped)),
	}
}
