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
	watched []watched
	levels  map[key]*change.Detector
	values  map[key]*change.Discrete[float64]
}

// key is one series.
type key struct {
	record.Pair
	metric record.Metric
}

func newSeries() *series {
	return &series{watched: watchedMetrics(), levels: map[key]*change.Detector{}, values: map[key]*change.Discrete[float64]{}}
}

// take adds a sample to the series of its pair, and returns the changes that it shows.
func (s *series) take(x record.Sample) (found []record.Change) {
	for _, w := range s.watched {
		v, measured := x.Values[w.metric]
		if !measured {
			continue
		}
		k := key{x.Pair, w.metric}
		if w.discrete {
			found = append(found, s.discrete(k, w, x.Begin, v)...)
			continue
		}
		d := s.levels[k]
		if d == nil {
			d = change.New(w.detection)
			s.levels[k] = d
		}
		if c, is := d.Add(x.Begin, v); is {
			effect, low, high, _ := c.Percent()
			found = append(found, record.Change{
				Pair: x.Pair, Metric: w.metric, Since: c.Since, Earliest: c.Earliest, Latest: c.Latest, Found: c.Found, Before: c.Before, After: c.After,
				EffectPct: effect, LowPct: low, HighPct: high, Direction: direction(w.up, c.After > c.Before), P: c.P, Over: c.Over,
			})
		}
	}
	return found
}

// discrete adds a value of a series without a scale.
func (s *series) discrete(k key, w watched, at time.Time, v float64) []record.Change {
	d := s.values[k]
	if d == nil {
		d = change.NewDiscrete[float64](0)
		s.values[k] = d
	}
	c, is := d.Add(at, v)
	if !is {
		return nil
	}
	return []record.Change{{
		Pair: k.Pair, Metric: k.metric, Since: c.Since, Earliest: c.Earliest, Latest: c.Latest, Found: c.Found, Before: c.Before, After: c.After,
		Direction: direction(w.up, c.After > c.Before), P: c.P, Over: c.Over,
	}}
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
