//go:build !linux

package worker

import (
	"time"

	"thru/internal/measure"
)

// threadClock is not known on this system.
type threadClock struct{}

func (*threadClock) read() (run, wait int64) { return notKnown, notKnown }

func sleepThread(d time.Duration) { time.Sleep(d) }

func favourThread() {}

func defaultLength(string) int { return measure.DefaultLength }

func bindThread([]int) error { return nil }
