//go:build !unix || solaris

package bus

import "errors"

// ErrLocked is the error of a file that another process has locked.
var ErrLocked = errors.New("another thru process is using it")

// LockFile locks nothing on systems without flock(2): there two commands could
// continue the same run.
func LockFile(string) (unlock func(), err error) { return func() {}, nil }
