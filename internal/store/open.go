//go:build linux || darwin || freebsd || windows

package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"thru/internal/fault"
)

// patience is how long a store waits for other processes that write to it.
const patience = 30 * time.Second

// connections is the maximum of connections of a process: one writes, the others read
// at the same time.
const connections = 4

// Open opens the store in a file. It creates the file and its folder, for this user
// alone, where they do not exist.
func Open(path string, o Options) (Store, error) {
	s, err := open(path, o)
	if err != nil {
		return nil, explain("opening", path, err)
	}
	return s, nil
}

// packDictionary is the number of the dictionary of packs.
const packDictionary = 1

func open(path string, o Options) (*database, error) {
	path, err := filepath.Abs(path)
	isThere := false
	if err == nil {
		isThere, err = prepare(path, o.ReadOnly || o.Existing)
	}
	if err != nil {
		return nil, err
	}
	s := &database{path: path, readOnly: o.ReadOnly, isThere: isThere, patience: cmp.Or(o.Patience, patience), readTime: readTime, writing: make(chan struct{}, 1)}
	if s.zipPack, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithEncoderDictRaw(packDictionary, []byte(vocabulary))); err != nil {
		return nil, err
	}
	s.Engine, s.Dialect = s, dialect()
	if err = s.Prepare(zstd.WithDecoderDictRaw(packDictionary, []byte(vocabulary))); err != nil {
		return nil, err
	}
	switch err = s.glance(); {
	case err != nil:
	case o.ReadOnly || o.Existing:
		err = s.connect("rw")
	default:
		err = s.connect("rwc")
	}
	if err != nil && o.ReadOnly && unwritable(err) && !logged(path) {
		s.DB.Close()
		err = s.connect("ro&immutable=1") // no process writes to it, so it is read without locks
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// errNoFile is the error of a folder, a device or a pipe.
var errNoFile = errors.New("it is not a file")

// prepare makes the folder, for this user alone, and reports whether the file exists. It
// does not open the file: closing it would release the locks that this process holds on
// it for another store (fcntl(2)).
func prepare(path string, makeNone bool) (isThere bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return true, errNoFile
	case err == nil && makeNone && info.Size() == 0:
		return false, fs.ErrNotExist // an empty file: nothing was stored
	case makeNone || err == nil || !errors.Is(err, fs.ErrNotExist):
		return err == nil, err
	}
	return false, os.MkdirAll(filepath.Dir(path), 0o700)
}

// logged reports whether the file has a write-ahead log, without which it is incomplete.
func logged(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// connect opens the database and migrates it to this version. Mode is SQLite's.
func (s *database) connect(mode string) (err error) {
	if s.DB, err = sql.Open("sqlite", source(s.path)+"&mode="+mode); err != nil {
		return err
	}
	s.DB.SetMaxOpenConns(connections)
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	return patiently(ctx, func() error {
		version, err := s.readVersion(ctx)
		if err == nil && version > 0 {
			err = checkTables(ctx, s.DB, version)
		}
		if err == nil && version == 0 && !s.isThere {
			err = os.Chmod(s.path, 0o600) // before it has any content
		}
		s.version = version
		if err == nil && version < len(steps) && (version == 0 || !s.readOnly) {
			err = migrate(ctx, s.DB, steps)
			s.version = len(steps)
		}
		if err == nil && !s.readOnly {
			err = s.journal(ctx, onNetwork(s.path))
		}
		return err
	})
}

// source returns the file's URI for SQLite (sqlite.org/uri.html), with the settings of
// each connection: synchronous=EXTRA, so that committed results survive a crash of the
// machine with either journal; foreign keys, so that marks are deleted with their result.
func source(path string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // C:/...
		slashed = "/" + slashed
	}
	u := url.URL{Scheme: "file", Path: slashed}
	q := url.Values{
		"_busy_timeout": {"2000"}, // ms; patiently retries after it
		"_synchronous":  {"extra"},
		"_foreign_keys": {"on"},
		"_txlock":       {"immediate"}, // a transaction that began with a read could not wait to write
		"_defensive":    {"1"},
		"_error_rc":     {"1"},
		"_pragma":       {"trusted_schema(off)"},
	}
	return u.String() + "?" + q.Encode()
}

// errForeign is the error of a database of another program.
var errForeign = errors.New("it is a database of another program")

// glance rejects a file by its header without changing it: opened as usual, SQLite
// would write the log of a crash into the file. It leaves a file that it cannot read
// to the later checks. It reads through SQLite, since closing a file of our own would
// release the locks (prepare).
func (s *database) glance() error {
	db, err := sql.Open("sqlite", source(s.path)+"&mode=ro&immutable=1")
	if err != nil {
		return err
	}
	defer db.Close()
	log := logged(s.path) // checked first: another process may be creating the store, whose log begins at its creation
	h, err := headOf(context.Background(), db)
	switch {
	case err != nil:
		return nil
	case h.foreign() || log && h.app != application:
		return errForeign
	}
	return checkVersion(h.version)
}

// head identifies the program of a database.
type head struct{ app, version, tables int }

// headOf reads the head in one statement, so that it is consistent.
func headOf(ctx context.Context, db *sql.DB) (h head, err error) {
	row := db.QueryRowContext(ctx, "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version")
	err = row.Scan(&h.app, &h.version, &h.tables)
	return h, err
}

// foreign reports whether the database is of another program. An empty one is left by a
// process that ended while it created a store.
func (h head) foreign() bool {
	return h.app != application && (h.app != 0 || h.version != 0 || h.tables > 0)
}

// readVersion returns the version of the store in the file; 0 where it is empty.
func (s *database) readVersion(ctx context.Context) (int, error) {
	h, err := headOf(ctx, s.DB)
	switch {
	case err != nil:
		return 0, err
	case h.foreign():
		return 0, errForeign
	}
	return h.version, checkVersion(h.version)
}

// checkVersion returns an error for a version that this thru does not know.
func checkVersion(version int) error {
	if version >= 0 && version <= len(steps) {
		return nil
	}
	return fault.Failf("install a newer thru, or name another file with --store", "%w: its version is %d, this thru knows %d", ErrNewer, version, len(steps))
}

// journal sets SQLite's journal mode: a write-ahead log, for which readers need not
// wait, and where other machines may write too, the rollback journal, which needs no
// memory shared with them (sqlite.org/wal.html). The file stores the mode.
func (s *database) journal(ctx context.Context, shared bool) error {
	wanted, have := "wal", ""
	if shared {
		wanted = "delete"
	}
	err := s.DB.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&have)
	if err != nil || have == wanted {
		return err
	}
	if err := s.DB.QueryRowContext(ctx, "PRAGMA journal_mode="+wanted).Scan(&have); err != nil {
		return err
	}
	if shared && have != wanted {
		return fmt.Errorf("its journal mode is %q, and cannot be changed for a network file system", have)
	}
	return nil
}

// patiently repeats do while other processes hold the file, until the context or
// patience ends.
func patiently(ctx context.Context, do func() error) error {
	end := time.Now().Add(patience)
	for {
		err := do()
		switch {
		case !busy(err) || time.Now().After(end):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
