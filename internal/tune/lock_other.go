//go:build !linux

package tune

import (
	"io/fs"
	"runtime"

	"thru/internal/fault"
)

// hold fails, since thru changes nothing on this system.
func hold(_, _, _ string) (release func(), err error) { return nil, Possible() }

// held returns false: thru does not tune such a host.
func held(_, _ string) bool { return false }

// holderPID returns 0: there is no lock.
func holderPID(string) int { return 0 }

// ownSpace returns the host's own: such systems have no network namespaces
// that matter here.
func ownSpace() space { return space{first: true} }

func bootID() string { return "" }

// ownedAlone returns true: only Linux checks modes and owners here.
func ownedAlone(fs.FileInfo) bool { return true }

// Possible returns why this process cannot change settings of the host.
func Possible() error {
	return fault.Failf("print its commands: thru tune --dry-run", "tune: thru cannot change settings on %s", runtime.GOOS)
}
