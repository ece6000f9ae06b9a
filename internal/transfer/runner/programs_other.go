//go:build !unix

package runner

// childrenUsed is not known on this system.
func childrenUsed() (user, system int64, known bool) { return 0, 0, false }
