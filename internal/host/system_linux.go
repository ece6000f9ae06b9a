package host

import (
	"encoding/binary"
	"fmt"
	"os"
	"thru/internal/host/tree"
	"time"

	"golang.org/x/sys/unix"
)

// runningSystem returns the kernel that this program runs on.
func runningSystem() system { return live{} }

type live struct{}

// adjtime reads the clock's state; modes of 0 change nothing (adjtimex(2)).
// Offsets are in microseconds unless STA_NANO is set, the rate in units of
// 2^-16 ppm, the bound always in microseconds.
func (live) adjtime() (timex, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return timex{}, fmt.Errorf("adjtimex: %w", err)
	}
	unit := int64(time.Microsecond)
	if t.Status&unix.STA_NANO != 0 {
		unit = 1
	}
	return timex{
		synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		maxErrorNs:   int64(t.Maxerror) * int64(time.Microsecond),
		offsetNs:     int64(t.Offset) * unit,
		driftPPM:     float64(t.Freq) / (1 << 16),
	}, nil
}

// readCost returns the time of one reading of the monotonic clock: the
// shortest of some batches, so that an interruption does not count.
func (live) readCost() time.Duration {
	const batches, readings = 5, 200
	best := time.Hour
	for range batches {
		began := time.Now()
		var last time.Duration
		for range readings {
			last = time.Since(began) // one reading each
		}
		best = min(best, last)
	}
	return best / readings
}

// free returns the bytes that a user may still write to the file system at
// path (statfs(2)).
func (live) free(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// latencyLimit returns the longest exit latency of idle states that programs
// allow, in microseconds. Reading the file requests nothing
// (Documentation/admin-guide/pm/cpuidle.rst, "Power Management Quality of
// Service").
func (live) latencyLimit() (int, error) {
	file, err := os.Open("/dev/cpu_dma_latency")
	if err != nil {
		return 0, tree.Explain("dev/cpu_dma_latency", err)
	}
	defer file.Close()
	var b [4]byte
	if _, err := file.Read(b[:]); err != nil {
		return 0, tree.Explain("dev/cpu_dma_latency", err)
	}
	return int(int32(binary.NativeEndian.Uint32(b[:]))), nil
}
