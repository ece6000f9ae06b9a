package watch

import (
	"time"

	"thru/internal/stat/change"
	"thru/internal/watch/record"
)

// watched says how a metric is watched for changes. Together the metrics of a pair have less than one false alarm in 90 days (docs/statistics.md).
type watched struct {
	metric    record.Metric
	up        record.Direction // what a rise is
	discrete  bool
	detection change.Options
}

// watchedMetrics lists the watched metrics.
func watchedMetrics() []watched {
	return []watched{
		{metric: record.Goodput, up: record.Better},
		{metric: record.RTTMedian, up: record.Worse, detection: change.Options{Every: 20 * time.Minute, Keep: 2016, LeastPct: 5, Least: float64(200 * time.Microsecond)}}, // four weeks, so that a weekly cycle is known
		{metric: record.LossRatio, up: record.Worse, detection: change.Options{Every: time.Hour, Least: 0.0005}},
		{metric: record.CPUSender, up: record.Worse, detection: change.Options{LeastPct: 10}},
		{metric: record.CPUReceiver, up: record.Worse, detection: change.Options{LeastPct: 10}},
		{metric: record.MTU, up: record.Better, discrete: true},
		{metric: record.Hops, up: record.Neither, discrete: true},
	}
}

// series has the detectors of all pairs.
type series struct {
	watched   []watched
	detectors map[key]detector
}

// key is one series.
type key struct {
	record.Pair
	metric record.Metric
}

// detector finds the changes of a series.
type detector interface {
	Add(at time.Time, x float64) (change.Change, bool)
}

func newSeries() *series {
	return &series{watched: watchedMetrics(), detectors: map[key]detector{}}
}

// take adds a sample to the series of its pair, and returns the changes that it shows.
func (s *series) take(x record.Sample) (found []record.Change) {
	for _, w := range s.watched {
		v, measured := x.Values[w.metric]
		if !measured {
			continue
		}
		k := key{x.Pair, w.metric}
		d := s.detectors[k]
		if d == nil && w.discrete {
			d = new(change.Discrete)
		} else if d == nil {
			d = change.New(w.detection)
		}
		s.detectors[k] = d
		c, is := d.Add(x.Begin, v)
		if !is {
			continue
		}
		r := record.Change{
			Pair: x.Pair, Metric: w.metric, Since: c.Since, Earliest: c.Earliest, Latest: c.Latest, Found: c.Found, Before: c.Before, After: c.After,
			Direction: direction(w.up, c.After > c.Before), P: c.P, Over: c.Over,
		}
		if !w.discrete {
			r.EffectPct, r.LowPct, r.HighPct = c.Percent()
		}
		found = append(found, r)
	}
	return found
}

// direction returns whether a change is for the better, where a rise is up.
func direction(up record.Direction, rises bool) record.Direction {
	switch {
	case up == record.Neither || rises:
		return up
	case up == record.Better:
		return record.Worse
	}
	return record.Better
}
