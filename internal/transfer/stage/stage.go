// Package stage makes private folders for files that programs move: what they send,
// bring or serve lies there while they run, in memory where there is room.
//
// Each folder is locked while it is in use. So what a run that was killed has left
// is known by its lock being gone, and the next run removes it.
package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"thru/internal/transfer"
)

// Memory is where Linux has a file system in memory for everyone (shm_overview(7)).
const Memory = "/dev/shm"

// Folder is one for this process alone, mode 0700.
type Folder struct {
	Path string
	held *os.File // locked, where the system can
}

// New makes a folder for files of so many bytes: in memory where they take no more
// than half of what is free, else where temporary files lie. Without room in either,
// the error is transfer.ErrFull. The caller closes it.
func New(size int64) (*Folder, error) {
	var errs []error
	for _, dir := range []string{Memory, os.TempDir()} {
		room, known := Room(dir)
		if dir == Memory { // which others want, too
			room /= 2
		}
		if known && size > room {
			errs = append(errs, fmt.Errorf("%w in %s: %d bytes are to come, %d may be used", transfer.ErrFull, dir, size, room))
			continue
		}
		f, err := In(dir)
		if err == nil {
			return f, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// ErrLocked is of a file or folder that another process holds.
var ErrLocked = errors.New("another process uses it")

// tries bounds how often a folder is made anew that somebody else has just cleared.
const tries = 8

// In makes a folder below another. The caller closes it.
func In(dir string) (*Folder, error) {
	for range tries {
		path, err := os.MkdirTemp(dir, prefix+fmt.Sprintf("%d-", os.Getpid()))
		if err != nil {
			return nil, fmt.Errorf("stage: making a folder for what is on its way: %w", err)
		}
		held, err := hold(path)
		if err == nil {
			return &Folder{Path: path, held: held}, nil
		}
	}
	return nil, fmt.Errorf("stage: making a folder for what is on its way: each one in %s is removed at once", dir)
}

// prefix begins the name of each folder.
const prefix = "thru-stage-"

// hold locks a folder that was just made. Between both, another process may have
// taken it for one that is left.
func hold(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err = Lock(f); !errors.Is(err, ErrLocked) { // without a lock it serves too
		_, err = os.Lstat(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// File is the path of a file in it.
func (f *Folder) File(name string) string { return filepath.Join(f.Path, name) }

// Close removes it with all that is in it. A second time it does nothing.
func (f *Folder) Close() error {
	err := os.RemoveAll(f.Path)
	if cerr := f.held.Close(); !errors.Is(cerr, os.ErrClosed) { // now: it is locked until it is gone
		err = errors.Join(err, cerr)
	}
	return err
}

// Clear removes what runs of this user that were killed have left, in memory and
// where temporary files lie.
func Clear() {
	for _, dir := range []string{Memory, os.TempDir()} {
		clear(dir)
	}
}

func clear(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, prefix+"*")) // the pattern is right
	for _, path := range left {
		info, err := os.Lstat(path)
		if err != nil || !mine(info) {
			continue // where others may write, one of theirs could lead anywhere
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		now, err := f.Stat()
		if held, lerr := Lock(f); err == nil && lerr == nil && held && os.SameFile(info, now) {
			os.RemoveAll(path)
		}
		f.Close()
	}
}
