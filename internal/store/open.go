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

// connections is how many a process has at most: one writes, the others read
// beside it.
const connections = 4

// Open opens the store in a file, and makes it and its folder for this user alone
// where they are not there.
func Open(path string, o Options) (Store, error) {
	s, err := open(path, o)
	if err != nil {
		return nil, explain("opening", path, err)
	}
	return s, nil
}

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
	if s.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
		return nil, err
	}
	if s.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxDocument)); err != nil {
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
		s.db.Close()
		err = s.connect("ro&immutable=1") // nobody writes to it, so it is read as it lies there
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// errNoFile is the error of a folder, a device or a pipe.
var errNoFile = errors.New("it is no file")

// prepare makes the folder, for this user alone, and tells whether the file is
// there. It does not open the file: to close it would let go of the locks that
// this process has on it by another store (fcntl(2)).
func prepare(path string, makeNone bool) (isThere bool, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return true, errNoFile
	case err == nil && makeNone && info.Size() == 0:
		return false, fs.ErrNotExist // nothing was kept in it
	case makeNone || err == nil || !errors.Is(err, fs.ErrNotExist):
		return err == nil, err
	}
	return false, os.MkdirAll(filepath.Dir(path), 0o700)
}

// logged tells whether a log lies beside the file, without which it is not whole.
func logged(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}

// connect opens the database and brings it to this version. Mode is SQLite's.
func (s *database) connect(mode string) (err error) {
	if s.db, err = sql.Open("sqlite", source(s.path)+"&mode="+mode); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(connections)
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	return patiently(ctx, func() error {
		version, err := s.version(ctx)
		if err == nil && version > 0 {
			err = checkTables(ctx, s.db, version)
		}
		if err == nil && version == 0 && !s.isThere {
			err = os.Chmod(s.path, 0o600) // before there is anything in it
		}
		if err == nil && version < len(steps) {
			err = migrate(ctx, s.db, steps)
		}
		if err == nil && !s.readOnly {
			err = s.journal(ctx, onNetwork(s.path))
		}
		return err
	})
}

// source is the file as SQLite is to open it (sqlite.org/uri.html), with what
// each connection sets: synchronous=EXTRA, so that what was acknowledged outlives
// the machine with either journal; foreign keys, so that marks go with their result.
func source(path string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // C:/...
		slashed = "/" + slashed
	}
	u := url.URL{Scheme: "file", Path: slashed}
	q := url.Values{
		"_busy_timeout": {"2000"}, // ms; patiently goes on after it
		"_synchronous":  {"extra"},
		"_foreign_keys": {"on"},
		"_txlock":       {"immediate"}, // a transaction that began by reading could not wait for its turn to write
		"_defensive":    {"1"},
		"_error_rc":     {"1"},
		"_pragma":       {"trusted_schema(off)"},
	}
	return u.String() + "?" + q.Encode()
}

// errForeign is the error of a database that another program has made.
var errForeign = errors.New("it is a database of another program")

// glance refuses a file by its header, as it lies there: where SQLite opens it as
// usual, it writes into the file what a crash has left in its log. What cannot be
// read so is left to what comes after. SQLite reads it, since by a file of our own
// the locks would go (prepare).
func (s *database) glance() error {
	db, err := sql.Open("sqlite", source(s.path)+"&mode=ro&immutable=1")
	if err != nil {
		return err
	}
	defer db.Close()
	log := logged(s.path) // looked at first: another process may be making the store, and its log begins when it is made
	h, err := headOf(context.Background(), db)
	switch {
	case err != nil:
		return nil
	case h.foreign() || log && h.app != application:
		return errForeign
	}
	return checkVersion(h.version)
}

// head is what tells whose a database is.
type head struct{ app, version, tables int }

// headOf reads it in one statement, so that it is of one moment.
func headOf(ctx context.Context, db *sql.DB) (h head, err error) {
	row := db.QueryRowContext(ctx, "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version")
	err = row.Scan(&h.app, &h.version, &h.tables)
	return h, err
}

// foreign tells of a database of another program. One without anything is what a
// process leaves that ends as it makes a store.
func (h head) foreign() bool {
	return h.app != application && (h.app != 0 || h.version != 0 || h.tables > 0)
}

// version is that of the store in the file; 0 where it is empty.
func (s *database) version(ctx context.Context) (int, error) {
	h, err := headOf(ctx, s.db)
	switch {
	case err != nil:
		return 0, err
	case h.foreign():
		return 0, errForeign
	}
	return h.version, checkVersion(h.version)
}

// checkVersion refuses what this thru does not know.
func checkVersion(version int) error {
	if version >= 0 && version <= len(steps) {
		return nil
	}
	return fault.Failf("use a newer thru, or name another file with --store", "%w: its version is %d, this thru knows %d", ErrNewer, version, len(steps))
}

// journal sets how the file is kept whole: by a log that readers need not wait
// for, and where other machines may write too, by the older journal, which
// needs no memory shared with them (sqlite.org/wal.html). The file remembers it.
func (s *database) journal(ctx context.Context, shared bool) error {
	wanted, have := "wal", ""
	if shared {
		wanted = "delete"
	}
	err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&have)
	if err != nil || have == wanted {
		return err
	}
	if err := s.db.QueryRowContext(ctx, "PRAGMA journal_mode="+wanted).Scan(&have); err != nil {
		return err
	}
	if shared && have != wanted {
		return fmt.Errorf("its journal is %q, and cannot be made fit for a network file system", have)
	}
	return nil
}

// patiently does something again while other processes are in its way, until
// the context ends or patience does.
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
