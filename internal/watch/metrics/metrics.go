// Package metrics offers figures to monitoring systems: as text that Prometheus scrapes (OpenMetrics 1.0, or the older text format), and pushed by OTLP/HTTP.
// A Set has the latest samples of a watch; agents and controllers add families of their own.
//
// A measured value has the time of its measurement, not that of the scrape, and is absent if it was not measured. What is true at the moment, such as a state, has
// no time. Prometheus takes a measured value once, however often it scrapes it, and shows it for five minutes: who asks for a TCP test of an hour ago uses
// last_over_time. Names and units follow the conventions of Prometheus: base units (seconds, bytes, ratios), and the unit in the name. The labels of a watch are the
// two end points and what the plan names, so that their number is bounded.
package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"thru/internal/watch/record"
)

// mostPairs bounds the pairs that are offered: a monitoring system suffers from too many series.
const mostPairs = 20_000

// figure is a metric of the samples as monitoring systems see it. One of several metrics is a summary with their quantiles.
type figure struct {
	name, unit, help string
	factor           float64 // from the unit of the sample
	of               []record.Metric
	quantiles        []string
}

// figures lists the metrics.
func figures() []figure {
	const ns, bits = 1e-9, 1.0 / 8
	one := func(name, unit, help string, m record.Metric, factor float64) figure {
		return figure{name, unit, help, factor, []record.Metric{m}, nil}
	}
	return []figure{
		one("thru_goodput_bytes_per_second", "bytes_per_second", "Payload that the receiver got, in the last TCP test.", record.Goodput, bits),
		one("thru_capacity_bytes_per_second", "bytes_per_second", "Capacity of the path, by trains of packets.", record.Capacity, bits),
		one("thru_loss_ratio", "ratio", "Probes that were lost, of all.", record.LossRatio, 1),
		{"thru_round_trip_seconds", "seconds", "Round trip of probes; quantile 0 is the least.", ns, []record.Metric{record.RTTMin, record.RTTMedian, record.RTT99}, []string{"0", "0.5", "0.99"}},
		one("thru_one_way_delay_seconds", "seconds", "Median delay from sender to receiver.", record.Delay, ns),
		one("thru_one_way_delay_error_seconds", "seconds", "How far the one-way delay may be wrong, either way.", record.DelayBound, ns),
		one("thru_loaded_round_trip_seconds", "seconds", "Round trip during the last TCP test.", record.RTTLoaded, ns),
		one("thru_retransmit_ratio", "ratio", "Segments that TCP retransmitted, of all, in the last TCP test.", record.Retransmits, 1),
		one("thru_other_load_ratio", "ratio", "Traffic of others just before and after the last TCP test, of the link rate.", record.OtherLoad, 1),
		one("thru_mtu_bytes", "bytes", "Largest packet that passed.", record.MTU, 1),
		one("thru_hops", "", "Routers on the path.", record.Hops, 1),
		one("thru_sender_cpu_seconds_per_byte", "seconds_per_byte", "CPU time of the sending host for each byte, in the last TCP test.", record.CPUSender, 8e-9),
		one("thru_receiver_cpu_seconds_per_byte", "seconds_per_byte", "CPU time of the receiving host for each byte, in the last TCP test.", record.CPUReceiver, 8e-9),
	}
}

// Set has the latest values. It is safe for concurrent use.
type Set struct {
	mu      sync.Mutex
	pairs   map[record.Pair]*latest
	alarms  []record.Alarm // that are raised now
	samples map[record.Layer]int
}

// latest is what is known of a pair.
type latest struct {
	values   map[record.Metric]value
	measured map[record.Layer]time.Time // end of the last turn that judges the path
	stands   record.Standing
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
	p := s.pairs[x.Pair]
	if p == nil && len(s.pairs) >= mostPairs {
		return
	}
	if p == nil {
		p = &latest{values: map[record.Metric]value{}, measured: map[record.Layer]time.Time{}}
		s.pairs[x.Pair] = p
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

// Stand takes how all pairs are, and the alarms that are raised. Pairs that are not among them are not watched any more.
func (s *Set) Stand(all []record.Standing, alarms []record.Alarm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	watched := map[record.Pair]bool{}
	for _, x := range all {
		watched[x.Pair] = true
		if p := s.pairs[x.Pair]; p != nil {
			p.stands = x
		}
	}
	maps.DeleteFunc(s.pairs, func(p record.Pair, _ *latest) bool { return !watched[p] })
	s.alarms = alarms
}

// Alarms returns the alarms that are raised now.
func (s *Set) Alarms() []record.Alarm {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alarms
}

// Families returns all values.
func (s *Set) Families() (all []Family) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pairs := slices.SortedFunc(maps.Keys(s.pairs), record.Pair.Compare)
	for _, f := range figures() {
		x := Family{Name: f.name, Kind: Gauge, Unit: f.unit, Help: f.help}
		if f.quantiles != nil {
			x.Kind = Summary
		}
		for _, p := range pairs {
			for i, m := range f.of {
				v, known := s.pairs[p].values[m]
				if !known {
					continue
				}
				x.add(v.x*f.factor, "from", p.From, "to", p.To)
				point := &x.Points[len(x.Points)-1]
				if point.At = v.at; f.quantiles != nil {
					point.Labels = append(point.Labels, "quantile", f.quantiles[i])
				}
			}
		}
		all = append(all, x)
	}
	turns := Family{Name: "thru_samples", Kind: Counter, Help: "Turns since the start, measured or not."}
	for _, l := range slices.Sorted(maps.Keys(s.samples)) {
		turns.add(float64(s.samples[l]), "layer", string(l))
	}
	return append(append(all, s.standings(pairs)...), turns, One("thru_alarms", Gauge, "", "Alarms that are raised now.", float64(len(s.alarms))))
}

// standings returns how the pairs are.
func (s *Set) standings(pairs []record.Pair) []Family {
	state := Family{Name: "thru_state", Kind: StateSet, Help: "State of the pair."}
	last := Family{Name: "thru_last_measured_timestamp_seconds", Kind: Gauge, Unit: "seconds", Help: "End of the last turn that said something of the path, by layer."}
	bound := Family{Name: "thru_goodput_objective_bytes_per_second", Kind: Gauge, Unit: "bytes_per_second", Help: "Goodput that an objective of the pair wants."}
	used := Family{Name: "thru_objective_budget_used_ratio", Kind: Gauge, Unit: "ratio", Help: "Part of the error budget of 30 days that is used; from 1 on the objective is missed."}
	alarms := Family{Name: "thru_pair_alarms", Kind: Gauge, Help: "Alarms that are raised now and touch the pair, by kind."}
	for _, p := range pairs {
		x := s.pairs[p]
		for _, l := range slices.Sorted(maps.Keys(x.measured)) {
			last.add(float64(x.measured[l].UnixMilli())/1000, "from", p.From, "to", p.To, "layer", string(l))
		}
		if x.stands.State == "" {
			continue
		}
		for _, is := range record.States() {
			n := 0.0
			if x.stands.State == is {
				n = 1
			}
			state.add(n, "from", p.From, "to", p.To, state.Name, string(is))
		}
		for _, k := range []record.Kind{record.KindChange, record.KindOutage, record.KindObjective} {
			n := 0.0
			for _, a := range s.alarms {
				if a.Kind == k && slices.Contains(a.Pairs, p) {
					n++
				}
			}
			alarms.add(n, "from", p.From, "to", p.To, "kind", string(k))
		}
		goodput := 0.0
		for _, g := range x.stands.Goals {
			if g.Metric == record.Goodput {
				goodput = max(goodput, g.Limit/8)
			}
			if g.Of > 0 {
				used.add(g.UsedPct/100, "from", p.From, "to", p.To, "objective", g.Objective)
			}
		}
		if goodput > 0 {
			bound.add(goodput, "from", p.From, "to", p.To)
		}
	}
	return []Family{state, last, alarms, bound, used}
}
