//go:build !linux

package worker

import (
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// threadClock is not known on this system.
type threadClock struct{}

func (*threadClock) read() (run, wait int64) { return notKnown, notKnown }

func sleepThread(d time.Duration) { time.Sleep(d) }

func favourThread() {}

func defaultLength(string) int { return measure.DefaultLength }

func bindThread([]int) error { return nil }

// confineProcess is not done on this system.
func confineProcess(cpus []int) error {
	return fault.Usagef("leave the CPUs out for this end point, or confine the agent by the system's own means (cpuset(1), start /affinity)",
		"worker: confining to CPUs %s: thru does that on Linux only", unit.List(cpus))
}
