package judge

import (
	"cmp"
	"math"
	"slices"
	"time"

	"thru/internal/watch/record"
)

// Config is what a plan says of how its pairs are judged. Fields that are zero have the values of the comments.
type Config struct {
	Every     map[record.Layer]time.Duration // time between turns of a layer; probe 1 min, train 15 min, tcp 6 h
	LostInRow int                            // probe packets lost in a row that are an outage; 3
	Confirm   int                            // turns in a row below an objective that make a pair degraded; 3
	Clear     int                            // turns in a row back at the level that end an alarm; 3
	Gather    time.Duration                  // an alarm waits for other pairs with the same problem; 90 s, above the time between probes
	Wait      time.Duration                  // an alarm waits for Explained; 5 min
	Share     float64                        // of the judged pairs of a host or segment, if it is to be named; 0.6
	Separate  int                            // with more pairs of ends that share nothing, there is one alarm for all; 5
	FlapCount int                            // a problem that came so often
	FlapTime  time.Duration                  // in this time is flapping; 4 in 1 h
	Accept    time.Duration                  // a changed level is the new normal after this time; 14 days
	Late      time.Duration                  // samples may arrive so late, from the spool of an agent; 8 days
	Ahead     time.Duration                  // samples that are further ahead of the watch have a wrong clock; 5 min
	Burn      float64                        // an objective raises an alarm from this burn rate; 10
	Location  *time.Location                 // of midnight; UTC

	Goals    func(record.Pair) []record.Goal // objectives of a pair; Objective, Metric, Limit, AtLeast, SharePct and Per count
	Segments func(record.Pair) []string      // declared shared segments that a pair crosses
	Windows  []record.MaintenanceWindow      // announced work
}

// complete returns the configuration with the values of all fields.
func (c Config) complete() Config {
	every := map[record.Layer]time.Duration{record.Probe: time.Minute, record.Train: 15 * time.Minute, record.TCP: 6 * time.Hour}
	for layer := range every {
		every[layer] = cmp.Or(c.Every[layer], every[layer])
	}
	c.Every = every
	c.LostInRow = cmp.Or(c.LostInRow, 3)
	c.Confirm = cmp.Or(c.Confirm, 3)
	c.Clear = cmp.Or(c.Clear, 3)
	c.Gather = cmp.Or(c.Gather, 90*time.Second)
	c.Wait = cmp.Or(c.Wait, 5*time.Minute)
	c.Share = cmp.Or(c.Share, 0.6)
	c.Separate = cmp.Or(c.Separate, 5)
	c.FlapCount = cmp.Or(c.FlapCount, 4)
	c.FlapTime = cmp.Or(c.FlapTime, time.Hour)
	c.Accept = cmp.Or(c.Accept, 14*24*time.Hour)
	c.Late = cmp.Or(c.Late, 8*24*time.Hour)
	c.Ahead = cmp.Or(c.Ahead, 5*time.Minute)
	c.Burn = cmp.Or(c.Burn, 10)
	c.Location = cmp.Or(c.Location, time.UTC)
	if c.Goals == nil {
		c.Goals = func(record.Pair) []record.Goal { return nil }
	}
	if c.Segments == nil {
		c.Segments = func(record.Pair) []string { return nil }
	}
	return c
}

// layers are in the order of how often their turns come. The first that judges a pair decides its state.
func layers() []record.Layer { return []record.Layer{record.Probe, record.Train, record.TCP} }

// rank returns the place of a layer; -1 for none.
func rank(l record.Layer) int { return slices.Index(layers(), l) }

// maintained reports whether an instant is in a maintenance window of a pair, and when that changes next.
func (c *Config) maintained(p record.Pair, at int64) (in bool, edge int64) {
	edge = math.MaxInt64
	if len(c.Windows) == 0 {
		return false, edge
	}
	segments := c.Segments(p)
	for _, w := range c.Windows {
		if !w.Covers(p, segments) {
			continue
		}
		inside, next := w.At(instant(at))
		in = in || inside
		if !next.IsZero() {
			edge = min(edge, next.UnixNano())
		}
	}
	return in, edge
}

// nextDay returns the first midnight after an instant.
func (c *Config) nextDay(at int64) time.Time {
	year, month, day := instant(at).In(c.Location).Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, c.Location).UTC()
}

// instant returns the time of a count of nanoseconds since 1970.
func instant(ns int64) time.Time { return time.Unix(0, ns).UTC() }
