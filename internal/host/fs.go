package host

import (
	"errors"
	"io/fs"
	"path"

	"thru/internal/host/tree"
)

// FS is the tree of files in which a kernel shows itself.
type FS struct{ tree.Tree }

// net reads a file of /proc/net as the calling thread's network namespace
// shows it. "self" is the main thread, which may live in another namespace
// than the calling one; "thread-self" exists since Linux 3.17 (proc(5)).
func (f FS) net(name string) ([]byte, error) {
	b, err := f.Read(path.Join("proc/thread-self/net", name))
	if errors.Is(err, fs.ErrNotExist) {
		return f.Read(path.Join("proc/self/net", name))
	}
	return b, err
}

// unlessAbsent returns nil where a file is not there, and else the error.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
