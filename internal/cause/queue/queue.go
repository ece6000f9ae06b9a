// Package queue holds the causes that hold a rate down by a queue or over time:
// shapers, token buckets, slow convergence, neighbours.
package queue

import (
	"thru/internal/cause/diagnose"
)

// stealPct is the share of the CPUs that the end's threads may use which the
// hypervisor gave to others.
func stealPct(e *diagnose.End) (float64, bool) {
	return diagnose.StealOf(e.Own(e.Counters().CPUs))
}
