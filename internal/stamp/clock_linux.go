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

// mostClockError is the error that the kernel reports of a clock that nobody sets (NTP_PHASE_LIMIT in include/linux/timex.h), and more than any path needs.
const mostClockError = 16 * time.Second

// clockError returns how far the wall clock may be off, by the service that sets it (adjtimex(2)); 0: it is not known. Services that only step or slew the
// clock leave the estimated error at 0, and a maximum that says nothing: chrony and ntpd set both.
func clockError() time.Duration {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	bound := time.Duration(t.Maxerror) * time.Microsecond
	if err != nil || state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0 || t.Esterror <= 0 || bound >= mostClockError {
		return 0
	}
	return bound
}
