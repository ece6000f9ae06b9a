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
	Every    map[record.Layer]time.Duration // time between turns of a layer; probe 1 min, train 15 min, tcp 6 h
	Gather   time.Duration                  // an alarm waits for other pairs with the same problem; 90 s, above the time between probes
	Wait     time.Duration                  // an alarm waits for Explained; 5 min
	Accept   time.Duration                  // a changed level is the new normal after this time; 14 days
	Location *time.Location                 // of midnight; UTC

	Goals    func(record.Pair) []record.Goal // objectives of a pair; Objective, Metric, Limit, AtLeast, SharePct and Per count
	Segments func(record.Pair) []string      // declared shared segments that a pair crosses
	Windows  []record.MaintenanceWindow      // announced work
}

const (
	lostInRow  = 3                  // probe packets lost in a row that are an outage
	confirm    = 3                  // turns in a row below an objective that make a pair degraded
	clearAfter = 3                  // turns in a row without the problem that end an alarm
	leastShare = 0.6                // of the judged pairs of a host or segment, if it is to be named
	separate   = 5                  // with more pairs of ends that share nothing, there is one alarm for all
	flapCount  = 4                  // a problem that came so often
	flapTime   = time.Hour          // in this time is flapping
	late       = 8 * 24 * time.Hour // samples may arrive so late, from the spool of an agent
	ahead      = 5 * time.Minute    // samples that are further ahead of the watch have a wrong clock
	burning    = 10                 // an objective raises an alarm from this burn rate
)

// complete returns the configuration with the values of all fields.
func (c Config) complete() Config {
	every := map[record.Layer]time.Duration{record.Probe: time.Minute, record.Train: 15 * time.Minute, record.TCP: 6 * time.Hour}
	for layer := range every {
		every[layer] = cmp.Or(c.Every[layer], every[layer])
	}
	c.Every = every
	c.Gather = cmp.Or(c.Gather, 90*time.Second)
	c.Wait = cmp.Or(c.Wait, 5*time.Minute)
	c.Accept = cmp.Or(c.Accept, 14*24*time.Hour)
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
