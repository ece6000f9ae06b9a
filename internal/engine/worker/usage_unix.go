//go:build unix

package worker

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// read reads the usage from the kernel; it does not allocate.
func (u *usage) read() {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		u.UserNs = notKnown
		return
	}
	u.UserNs, u.SystemNs = r.Utime.Nano(), r.Stime.Nano()
	u.Voluntary, u.Involuntary = int64(r.Nvcsw), int64(r.Nivcsw)
	u.PeakBytes = int64(r.Maxrss)
	if runtime.GOOS != "darwin" { // there in bytes, elsewhere in KiB
		u.PeakBytes <<= 10
	}
}
