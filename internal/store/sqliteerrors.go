//go:build linux || darwin || freebsd || windows

package store

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"thru/internal/fault"
)

var (
	errReadOnly = errors.New("it was opened read-only")
	errSlow     = errors.New("it took too long")
	errStrange  = errors.New("its tables are not thru's")
)

// trouble explains a result code of SQLite to the user.
type trouble struct{ says, hint string }

// Hints for several troubles.
const (
	elsewhere = "name another file with --store, or run without a store: --no-store"
	damaged   = "move the file away, then thru creates a new one. Restore exported results with `thru history import`"
)

// explain adds to an error of the database its meaning and a hint.
func explain(doing, path string, err error) error {
	if err == nil {
		return nil
	}
	t := troubleOf(err)
	if t.says == "" {
		return fault.New(fault.Code(err), fault.Hint(err), "store: %s %s: %w", doing, path, err)
	}
	return fault.Failf(t.hint, "store: %s %s: %s: %w", doing, path, t.says, err)
}

// troubleOf explains errors with an external cause: the disk, its file system, other
// processes, an unexpected file.
func troubleOf(err error) trouble {
	switch {
	case errors.Is(err, errStrange):
		return trouble{"it is not a store of thru", "name another file with --store"}
	case errors.Is(err, errForeign):
		return trouble{"thru did not change it", "name another file with --store"}
	case errors.Is(err, errNoFile):
		return trouble{"a store is a file", "name a file with --store; --no-store stores nothing"}
	case errors.Is(err, ErrDamaged):
		return trouble{"a part of it cannot be read", damaged}
	case errors.Is(err, errSlow):
		return trouble{"it cannot be read", "check its disk, or the network to it; or name another file with --store"}
	case errors.Is(err, context.DeadlineExceeded):
		return held
	case errors.Is(err, syscall.ENOSPC):
		return full
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return trouble{"it cannot be written", elsewhere}
	case errors.Is(err, fs.ErrNotExist):
		return trouble{"it does not exist yet", "measure first: each test stores its result there; or name another file with --store"}
	case errors.As(err, new(*fs.PathError)):
		return trouble{"no file can be created there", elsewhere}
	}
	return troubleOfCode(codeOf(err))
}

// troubleOfCode explains the extended result codes of SQLite.
func troubleOfCode(code int) trouble {
	if code == sqlite3.SQLITE_IOERR_SHMSIZE {
		return full
	}
	if lockless(code) {
		return trouble{"its file system lacks the file locks that the store needs", "name a file on a local disk with --store, or run without a store: --no-store"}
	}
	switch code & 0xff { // the primary result code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return held
	case sqlite3.SQLITE_FULL:
		return full
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return trouble{"it cannot be written", elsewhere}
	case sqlite3.SQLITE_CANTOPEN:
		return trouble{"it cannot be opened, or its folder is not writable", elsewhere}
	case sqlite3.SQLITE_NOTADB:
		return trouble{"it is not a store of thru", "name another file with --store; thru did not change this one"}
	case sqlite3.SQLITE_CORRUPT:
		return trouble{"it is damaged", damaged}
	case sqlite3.SQLITE_IOERR:
		return trouble{"the disk or its file system fails", "check the kernel's messages about the disk (dmesg), and " + elsewhere}
	}
	return trouble{}
}

var (
	held = trouble{"another process has locked it", "end that process, or " + elsewhere}
	full = trouble{"its disk is full", "free space on it, or " + elsewhere}
)

// codeOf returns the extended result code of SQLite in an error (sqlite.org/rescode.html), or 0.
func codeOf(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// busy reports whether an error is temporary: another process holds the file.
func busy(err error) bool {
	code := codeOf(err) & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// unwritable reports whether no file can be written beside the store.
func unwritable(err error) bool {
	code := codeOf(err)
	if code == sqlite3.SQLITE_IOERR_SHMSIZE { // the disk is full
		return true
	}
	code &= 0xff
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY
}

// lockless reports whether the file system lacks the locks, or the shared memory, that
// separate processes need.
func lockless(code int) bool {
	switch code {
	case sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_RDLOCK, sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
		sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_IOERR_SHMMAP:
		return true
	}
	return code&0xff == sqlite3.SQLITE_PROTOCOL || code&0xff == sqlite3.SQLITE_NOLFS
}
