package record

import (
	"slices"
	"time"
)

// Period is what a watch knows of its pairs in a time, such as a month, by the days that were over.
type Period struct {
	Schema string       `json:"schema"`
	Begin  time.Time    `json:"begin"` // in the zone of its times
	End    time.Time    `json:"end"`
	Pairs  []PairPeriod `json:"pairs"`
}

// PairPeriod is the period of a pair. Its begin and end are those of its first and last day.
type PairPeriod struct {
	Figured
	Days []Figured `json:"days"`
}

// Figured is a summary with its figures, in place of its distributions.
type Figured struct {
	Summary
	Availability *float64 `json:"availability,omitempty"` // of the judged time, 0 to 1
	LossRatio    *float64 `json:"loss_ratio,omitempty"`
	Figures      []Figure `json:"percentiles,omitempty"`
}

// Figure has percentiles of the turns that measured a metric, each within 1%.
type Figure struct {
	Metric Metric  `json:"metric"`
	Count  int     `json:"count"`
	P5     float64 `json:"p5"`
	P50    float64 `json:"p50"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
}

// Figure returns the percentiles of a metric; false: no turn measured it.
func (f *Figured) Figure(m Metric) (Figure, bool) {
	i := slices.IndexFunc(f.Figures, func(x Figure) bool { return x.Metric == m })
	if i < 0 {
		return Figure{}, false
	}
	return f.Figures[i], true
}

// figured returns a summary with its figures.
func figured(s Summary) Figured {
	f := Figured{Summary: s, Availability: known(s.Availability()), LossRatio: known(s.LossRatio())}
	for _, v := range s.Values {
		if v.Count > 0 {
			f.Figures = append(f.Figures, Figure{v.Metric, v.Count, v.Quantile(0.05), v.Quantile(0.5), v.Quantile(0.95), v.Quantile(0.99)})
		}
	}
	f.Values = nil
	return f
}

// PeriodOf returns the period of days, which come in order: those of a pair do not overlap.
func PeriodOf(begin, end time.Time, days []Summary) Period {
	p := Period{Schema: Schema, Begin: begin, End: end, Pairs: []PairPeriod{}}
	var pairs []Pair
	by := map[Pair][]Summary{}
	for _, d := range days {
		if by[d.Pair] == nil {
			pairs = append(pairs, d.Pair)
		}
		by[d.Pair] = append(by[d.Pair], d)
	}
	for _, x := range pairs {
		one := PairPeriod{Figured: figured(Merge(by[x]...))}
		for _, d := range by[x] {
			one.Days = append(one.Days, figured(d))
		}
		p.Pairs = append(p.Pairs, one)
	}
	return p
}

// known returns a value, or nil.
func known(v float64, is bool) *float64 {
	if !is {
		return nil
	}
	return &v
}
