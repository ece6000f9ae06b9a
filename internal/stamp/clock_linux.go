package stamp

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended returns how long this host has been suspended since it started: CLOCK_BOOTTIME counts that time, CLOCK_MONOTONIC does not (clock_gettime(2)).
func suspended() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
