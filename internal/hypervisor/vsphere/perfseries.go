package vsphere

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"thru/internal/measure"
)

// series are what was read of a span of time, placed on our clock: each sample
// of which a part lies within it.
func (p *perf) series(begin, end time.Time) []measure.Series {
	var out []measure.Series
	for col, all := range p.samples {
		s := measure.Series{Of: col.of, Instance: col.instance, Counter: col.counter, Native: col.native}
		for _, x := range all {
			at := x.ended.Add(-p.ahead(x.on))
			if at.After(begin) && at.Add(-x.every).Before(end) {
				s.EveryNs = int64(x.every)
				s.Samples = append(s.Samples, measure.Reading{EndedAt: at, Value: x.value})
			}
		}
		if len(s.Samples) > 0 {
			s.Samples = apart(s.Samples, time.Duration(s.EveryNs)/2)
			out = append(out, s)
		}
	}
	slices.SortFunc(out, bySubject)
	return out
}

// busiestCPUs is how many CPUs of a host have a series of their own.
const busiestCPUs = 32

// busiest leaves out, of a host with many CPUs, those that were the least busy
// at their busiest, and says how many.
func (p *perf) busiest(all []measure.Series) (kept []measure.Series, left []measure.NotChecked) {
	for _, e := range p.entities {
		single := func(s measure.Series) bool {
			return s.Of == e.ref.Value && e.ref.Type == hostKind && s.Counter == measure.CounterUsage && s.Instance != ""
		}
		var cpus []measure.Series
		for _, s := range all {
			if single(s) {
				cpus = append(cpus, s)
			}
		}
		if len(cpus) <= busiestCPUs {
			continue
		}
		slices.SortStableFunc(cpus, func(a, b measure.Series) int { return cmp.Compare(peak(b), peak(a)) })
		out := map[string]bool{}
		for _, s := range cpus[busiestCPUs:] {
			out[s.Instance] = true
		}
		all = slices.DeleteFunc(all, func(s measure.Series) bool { return single(s) && out[s.Instance] })
		left = append(left, measure.NotChecked{
			Fact: measure.CounterUsage + " of " + e.name,
			Why:  fmt.Sprintf("of its %d CPUs the %d are listed that were busiest at a time", len(cpus), busiestCPUs),
		})
	}
	return all, left
}

func peak(s measure.Series) (top float64) {
	for _, r := range s.Samples {
		top = max(top, r.Value)
	}
	return top
}

// apart orders samples by time and keeps one of several that are nearly of the
// same: two hosts may tell of a guest that has moved.
func apart(all []measure.Reading, least time.Duration) []measure.Reading {
	slices.SortStableFunc(all, func(a, b measure.Reading) int { return a.EndedAt.Compare(b.EndedAt) })
	kept := all[:1]
	for _, r := range all[1:] {
		if r.EndedAt.Sub(kept[len(kept)-1].EndedAt) >= least {
			kept = append(kept, r)
		}
	}
	return kept
}

// bySubject orders series: what belongs together stands together.
func bySubject(a, b measure.Series) int {
	return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Counter, b.Counter), cmp.Compare(len(a.Instance), len(b.Instance)), cmp.Compare(a.Instance, b.Instance))
}
