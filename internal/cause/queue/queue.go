// Package queue holds the causes that limit a rate by a queue or over time: shapers, token buckets, slow
// convergence, neighbours.
package queue

import (
	"thru/internal/cause/diagnose"
)

// stealPct returns the percentage of time that the hypervisor took from the CPUs that the end's threads may use.
func stealPct(e *diagnose.End) (float64, bool) {
	return diagnose.StealOf(e.Own(e.Counters().CPUs))
}
