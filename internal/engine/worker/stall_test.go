package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/measure"
)

// TestStopped: missing data ends a test when the path does not answer, or after a long time when it does.
func TestStopped(t *testing.T) {
	for _, c := range []struct {
		name     string
		protocol string
		answers  time.Duration // to the kernel's probes, for this time after the last byte
		ends     time.Duration
	}{
		{"nothing answers", measure.TCP, 0, 12 * time.Second},
		{"it has answered a few times", measure.TCP, 6 * time.Second, 30 * time.Second},
		{"it answers all the time", measure.TCP, time.Hour, 30 * time.Second},
		{"datagrams", measure.UDP, time.Hour, 12 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &worker{flow: &flow{}, cmd: openCommand{Spec: measure.Spec{Protocol: c.protocol, Traffic: measure.Bulk}}}
				began := time.Now()
				for w.stopped(stallWait) == nil && time.Since(began) < time.Minute {
					time.Sleep(100 * time.Millisecond)
					if !w.asked.at.IsZero() && time.Since(began) <= c.answers {
						w.asked.segments-- // one more has arrived than was counted
					}
				}
				if got := time.Since(began).Truncate(time.Second); got != c.ends {
					t.Errorf("ended after %v, want %v", got, c.ends)
				}
			})
		})
	}
}
