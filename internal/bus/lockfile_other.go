//go:build !unix || solaris

package bus

import "errors"

// ErrLocked is the error of a file that another process holds.
var ErrLocked = errors.New("another thru has it under way")

// LockFile holds nothing on systems without flock(2): there two commands could
// go on with one run.
func LockFile(string) (unlock func(), err error) { return func() {}, nil }
