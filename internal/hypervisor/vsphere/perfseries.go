package vsphere

import (
	"cmp"
	"slices"
	"time"

	"thru/internal/measure"
)

// series returns the samples of a time span, on our clock: each sample that
// overlaps it.
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
			s.Samples = spacedSamples(s.Samples, time.Duration(s.EveryNs)/2)
			out = append(out, s)
		}
	}
	slices.SortFunc(out, bySubject)
	return out
}

// spacedSamples orders samples by time and keeps one of several with nearly
// the same time: two hosts may report a guest that has moved.
func spacedSamples(all []measure.Reading, least time.Duration) []measure.Reading {
	slices.SortStableFunc(all, func(a, b measure.Reading) int { return a.EndedAt.Compare(b.EndedAt) })
	kept := all[:1]
	for _, r := range all[1:] {
		if r.EndedAt.Sub(kept[len(kept)-1].EndedAt) >= least {
			kept = append(kept, r)
		}
	}
	return kept
}

// bySubject orders series so that those of one subject are together.
func bySubject(a, b measure.Series) int {
	return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Counter, b.Counter), cmp.Compare(len(a.Instance), len(b.Instance)), cmp.Compare(a.Instance, b.Instance))
}
