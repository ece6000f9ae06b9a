//go:build !(linux || darwin || freebsd || windows)

package store

import "thru/internal/fault"

// Open returns an error on systems that the database does not support.
func Open(path string, o Options) (Store, error) {
	return nil, fault.Failf("write results to files with --json > FILE: this system has no store", "store: opening %s: %w", path, ErrNone)
}
