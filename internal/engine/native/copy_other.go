//go:build !linux

package native

import (
	"time"

	"thru/internal/measure"
)

// paths names the data paths of this system, the best first.
func paths() []path { return []path{{measure.IOPortable, portablePath{}}} }

// threadClock is not known on this system.
type threadClock struct{}

func (*threadClock) read() (run, wait int64) { return notKnown, notKnown }

func sleepThread(d time.Duration) { time.Sleep(d) }

func favourThread() {}
