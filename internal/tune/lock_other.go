//go:build !linux

package tune

import (
	"io/fs"
	"runtime"

	"thru/internal/fault"
)

// hold is not possible where nothing is changed.
func hold(_, _, _ string) (release func(), err error) { return nil, Possible() }

// held: nobody tunes such a host.
func held(_, _ string) bool { return false }

// holderPID: nobody holds it.
func holderPID(string) int { return 0 }

// ownSpace: such systems have no network namespaces, or none that matter here.
func ownSpace() space { return space{first: true} }

func bootID() string { return "" }

// ownedAlone: modes and owners are Linux's here.
func ownedAlone(fs.FileInfo) bool { return true }

// Possible says why this process cannot change settings of the host.
func Possible() error {
	return fault.Failf("print its commands: thru tune --dry-run", "tune: thru changes no settings of %s: it prints what to do", runtime.GOOS)
}
