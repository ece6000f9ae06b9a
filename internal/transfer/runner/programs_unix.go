//go:build unix

package runner

import "golang.org/x/sys/unix"

// childrenUsed returns the CPU time of the children that have ended, in ns
// (getrusage(2)).
func childrenUsed() (user, system int64, known bool) {
	var r unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_CHILDREN, &r)
	return r.Utime.Nano(), r.Stime.Nano(), err == nil
}
