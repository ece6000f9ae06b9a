package host

import (
	"errors"
	"io/fs"
	"path"

	"thru/internal/host/tree"
)

// FS is the file tree that holds /proc and /sys.
type FS struct{ tree.Tree }

// net reads a file of /proc/net in the calling thread's network namespace.
// "self" is the main thread, which may be in another namespace; "thread-self"
// exists since Linux 3.17 (proc(5)).
func (f FS) net(name string) ([]byte, error) {
	b, err := f.Read(path.Join("proc/thread-self/net", name))
	if errors.Is(err, fs.ErrNotExist) {
		return f.Read(path.Join("proc/self/net", name))
	}
	return b, err
}

// unlessAbsent returns nil for "file does not exist", and any other error
// unchanged.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
