//go:build !(linux || darwin || freebsd || windows)

package store

import "thru/internal/fault"

// Open fails on systems that the database has no port to.
func Open(path string, o Options) (Store, error) {
	return nil, fault.Failf("results are not kept there: write them to files with --json > FILE", "store: opening %s: %w", path, ErrNone)
}
