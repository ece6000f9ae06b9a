// Package stage creates private folders for the files that programs send,
// fetch or serve while they run, in memory where there is room.
//
// Each folder is locked while it is in use. So a folder without a lock was
// left by a killed run, and the next run removes it.
package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"thru/internal/transfer"
)

// Memory is Linux's file system in memory for everyone (shm_overview(7)).
const Memory = "/dev/shm"

// Folder is a folder for this process alone, mode 0700.
type Folder struct {
	Path string
	held *os.File // locked, where the system supports it
}

// New creates a folder for files of so many bytes: in memory where they take
// no more than half of the free space, otherwise in the folder for temporary
// files. Without room in either, the error is transfer.ErrFull. The caller
// closes it.
func New(size int64) (*Folder, error) {
	var errs []error
	for _, dir := range []string{Memory, os.TempDir()} {
		room, known := Room(dir)
		if dir == Memory { // other programs need it too
			room /= 2
		}
		if known && size > room {
			errs = append(errs, fmt.Errorf("%w in %s: the file has %d bytes, %d are available", transfer.ErrFull, dir, size, room))
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

// ErrLocked means that another process holds a file or folder.
var ErrLocked = errors.New("another process uses it")

// tries limits how often a folder is created again after another process has
// cleared it.
const tries = 8

// In creates a folder in another one. The caller closes it.
func In(dir string) (*Folder, error) {
	for range tries {
		path, err := os.MkdirTemp(dir, prefix+fmt.Sprintf("%d-", os.Getpid()))
		if err != nil {
			return nil, fmt.Errorf("stage: making a folder for incoming files: %w", err)
		}
		held, err := hold(path)
		if err == nil {
			return &Folder{Path: path, held: held}, nil
		}
	}
	return nil, fmt.Errorf("stage: making a folder for incoming files: another process removes each one in %s", dir)
}

// prefix begins the name of each folder.
const prefix = "thru-stage-"

// hold locks a new folder. Before that, another process may have taken it for
// a left one.
func hold(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err = Lock(f); !errors.Is(err, ErrLocked) { // it is usable without a lock too
		_, err = os.Lstat(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// File returns the path of a file in the folder.
func (f *Folder) File(name string) string { return filepath.Join(f.Path, name) }

// Close removes the folder with all its files. A second time it does nothing.
func (f *Folder) Close() error {
	err := os.RemoveAll(f.Path)
	if cerr := f.held.Close(); !errors.Is(cerr, os.ErrClosed) { // only now: it stays locked until it is gone
		err = errors.Join(err, cerr)
	}
	return err
}

// Clear removes what killed runs of this user have left, in memory and in the
// folder for temporary files.
func Clear() {
	for _, dir := range []string{Memory, os.TempDir()} {
		clear(dir)
	}
}

func clear(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, prefix+"*")) // the pattern is valid
	for _, path := range left {
		info, err := os.Lstat(path)
		if err != nil || !mine(info) {
			continue // where others may write, a link of theirs could lead anywhere
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
