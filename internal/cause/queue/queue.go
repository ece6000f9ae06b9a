// Package queue holds the causes that hold a rate down by a queue or over time:
// shapers, token buckets, slow convergence, neighbours.
package queue

import (
	"thru/internal/cause/diagnose"
)

// stealPct is the share of the CPUs that the end's threads may use which the
// hypervisor gave to others.
func stealPct(e *diagnose.End) (float64, bool) {
	if e.Seen == nil || e.Seen.Host == nil {
		return 0, false
	}
	return diagnose.StealOf(e.Own(e.Seen.Host.CPUs))
}
