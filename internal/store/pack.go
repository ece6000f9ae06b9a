package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"thru/internal/stat"
	"thru/internal/watch/record"
)

// series is what a watch measures of a pair in one way.
type series struct {
	record.Pair
	Layer record.Layer
}

// pack has samples of one series by columns, as differences: most columns hardly change, so they compress well.
type pack struct {
	Rest   []json.RawMessage          `json:"rest"`   // what has no column, each once
	Which  []int                      `json:"which"`  // place in Rest
	Values map[record.Metric][]*int64 `json:"values"` // differences in steps of the metric; null was not measured
}

// Columns of what is no metric.
const (
	beginColumn  record.Metric = "begin_ms"
	lengthColumn record.Metric = "duration_ms"
)

// vocabulary is what packs have in common: the dictionary of their compression, which is part of the format and never changes.
const vocabulary = `turns:refused turns:deferred turns:not-measured turns:degraded turns:down count goodput_bps mean median max","why":"maintenance",` +
	`"reason":"not-permitted","reason":"agent-away","reason":"budget","reason":"load","reason":"busy","reason":"no-answer","error":"` +
	`"gaps":[{"begin":"2026-01-01T00:00:00Z","end":"2026-01-01T00:00:00Z","lost_packets":3}],{"begin_ms":[1780000000000,-1780000000000,` +
	`0,0,0,0,0,0,0,0,0,0,0,0],"duration_ms":[60000,0,0,0,0,0,0,0],"rest":[{"state":"up","route":"eth0 192.0.2.1","facts":"",` +
	`"not_checked":[{"fact":"delay_p50_ns","why":"the clocks"}]},{"state":"not-measured"},{"state":"deferred"},{"state":"refused"},` +
	`{"state":"degraded"},{"state":"down"}],"which":[0,0,0,0,0,0],"values":{"capacity_bps":[null,null,"cpu_receiver_s_per_gb":[` +
	`"cpu_sender_s_per_gb":["goodput_bps":["retransmit_ratio":["rtt_loaded_ns":["delay_error_ns":["delay_p50_ns":["hops":["loss_ratio":[` +
	`"mtu_bytes":["rtt_min_ns":["rtt_p50_ns":["rtt_p99_ns":["sent_packets":[60,0,0,0,0,0,0,0,0,0,0,0,0],"traffic_bytes":[0,0,0,0]}}`

// rest is a sample without what a pack has elsewhere: its fields hide those of the sample.
type rest struct {
	record.Sample
	From    *int `json:"from,omitempty"`
	To      *int `json:"to,omitempty"`
	Layer   *int `json:"layer,omitempty"`
	Begin   *int `json:"begin,omitempty"`
	Seconds *int `json:"seconds,omitempty"`
	ID      *int `json:"id,omitempty"`
	Values  *int `json:"values,omitempty"`
}

// newPack packs samples, which are as stored returns them.
func newPack(samples []record.Sample) (pack, error) {
	p := pack{Values: map[record.Metric][]*int64{}}
	places, last := map[string]int{}, map[record.Metric]int64{}
	for i, x := range samples {
		set := func(m record.Metric, n int64) {
			if p.Values[m] == nil {
				p.Values[m] = make([]*int64, len(samples))
			}
			p.Values[m][i], last[m] = new(n-last[m]), n
		}
		set(beginColumn, x.Begin.UnixMilli())
		set(lengthColumn, milliseconds(x.Seconds))
		for m, v := range x.Values {
			n, _ := stepOf(m).count(v)
			set(m, n)
		}
		text, err := marshal(rest{Sample: x})
		if err != nil {
			return p, err
		}
		place, known := places[string(text)]
		if !known {
			place = len(p.Rest)
			places[string(text)] = place
			p.Rest = append(p.Rest, text)
		}
		p.Which = append(p.Which, place)
	}
	return p, nil
}

// errColumns is the error of a pack that newPack cannot have made.
var errColumns = errors.New("its columns differ in length")

// samples returns the samples of a pack, which may be of foreign origin.
func (p pack) samples(of series) ([]record.Sample, error) {
	rests := make([]record.Sample, len(p.Rest))
	for i, text := range p.Rest {
		if err := json.Unmarshal(text, &rests[i]); err != nil {
			return nil, err
		}
	}
	all := make([]record.Sample, len(p.Which))
	if len(p.Values[beginColumn]) != len(all) {
		return nil, errColumns
	}
	for i, place := range p.Which {
		if place < 0 || place >= len(rests) {
			return nil, errColumns
		}
		all[i] = rests[place]
		all[i].Pair, all[i].Layer, all[i].Values = of.Pair, of.Layer, make(map[record.Metric]float64, len(p.Values))
	}
	for m, column := range p.Values {
		if len(column) != len(all) {
			return nil, errColumns
		}
		last, step := int64(0), stepOf(m)
		for i, d := range column {
			if d == nil {
				continue
			}
			last += *d
			switch m {
			case beginColumn:
				all[i].Begin = time.UnixMilli(last).UTC()
				all[i].ID = record.SampleID(of.Pair, of.Layer, all[i].Begin)
			case lengthColumn:
				all[i].Seconds = float64(last) / 1000
			default:
				all[i].Values[m] = step.value(last)
			}
		}
	}
	return all, nil
}

// stored returns a sample as it is stored. The error is that of one that no store accepts.
func stored(x record.Sample) (record.Sample, error) {
	if year := x.Begin.UTC().Year(); year < 1970 || year > 9999 {
		return x, fmt.Errorf("a sample of %s -> %s began in the year %d", shortName(x.From), shortName(x.To), year)
	}
	x.Begin, x.Seconds = time.UnixMilli(x.Begin.UnixMilli()).UTC(), float64(milliseconds(x.Seconds))/1000
	x.ID = record.SampleID(x.Pair, x.Layer, x.Begin)
	values := x.Values
	x.Values = nil
	for m, v := range values {
		step := stepOf(m)
		if n, fits := step.count(v); fits {
			if x.Values == nil {
				x.Values = make(map[record.Metric]float64, len(values))
			}
			x.Values[m] = step.value(n)
		}
	}
	return x, nil
}

func milliseconds(seconds float64) int64 {
	n, _ := step{1, 1000}.count(seconds)
	return n
}

// step is the resolution of a metric: times/per of its unit.
type step struct{ times, per float64 }

// stepOf returns the step of a metric, or of its part of an hour: "rtt_p50_ns median".
func stepOf(m record.Metric) step {
	name, part, _ := strings.Cut(string(m), " ")
	ends := func(ending string) bool { return strings.HasSuffix(name, ending) }
	s := step{1, 1e6}
	switch {
	case part == countPart:
		return step{1, 1}
	case ends("_ns"), ends("_bps"):
		s = step{1000, 1}
	case ends("_packets"), ends("_bytes"), name == string(record.Hops):
		s = step{1, 1}
	case ends("_ratio"), ends("_per_gb"):
		s = step{1, 1e9}
	}
	if part == meanPart && s == (step{1, 1}) {
		s.per = 1000 // a mean of whole numbers is not one
	}
	return s
}

// count returns a value in steps; it may not fit.
func (s step) count(v float64) (n int64, fits bool) {
	steps := math.Round(v * s.per / s.times)
	if !(math.Abs(steps) < 1<<50) { // nor does NaN; beyond, a float64 has too few digits
		return 0, false
	}
	return int64(steps), true
}

// value is the inverse of count.
func (s step) value(n int64) float64 { return float64(n) * s.times / s.per }

// Parts of a metric in the summary of an hour, which is packed as a sample, and what stands for its turns by state.
const (
	countPart = "count"
	meanPart  = "mean"
	turnsOf   = "turns:"
)

// sumOf returns the summary of the samples of an hour: turns by state, and parts of each metric.
func sumOf(samples []record.Sample) record.Sample {
	first := samples[0]
	sum := record.Sample{Pair: first.Pair, Layer: first.Layer, Begin: first.Begin.Truncate(time.Hour), Values: map[record.Metric]float64{}}
	values := map[record.Metric][]float64{}
	for _, x := range samples {
		sum.Values[record.Metric(turnsOf+string(x.State)+" "+countPart)]++
		for m, v := range x.Values {
			values[m] = append(values[m], v)
		}
	}
	for m, all := range values {
		slices.Sort(all)
		n := len(all)
		for part, v := range map[string]float64{countPart: float64(n), "min": all[0], "median": (all[(n-1)/2] + all[n/2]) / 2, meanPart: stat.Mean(all), "max": all[n-1]} {
			sum.Values[m+record.Metric(" "+part)] = v
		}
	}
	return sum
}
