//go:build linux || darwin || freebsd || windows

package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/klauspost/compress/zstd"

	"thru/internal/measure"
)

// database is the store in one SQLite file.
type database struct {
	Results
	path     string
	readOnly bool
	isThere  bool          // the file existed before it was opened
	version  int           // of its tables: with readOnly it may be an earlier one
	patience time.Duration // wait for other processes when it is opened
	readTime time.Duration // time limit of each read
	writing  chan struct{} // held by the one goroutine of this process that writes: SQLite has one writer at a time
	zipPack  *zstd.Encoder // with the dictionary of packs
}

// dialect is the SQL of SQLite. Used are the pages without what watches stored: those of their tables and indexes, but for the page that an
// empty one has too.
func dialect() Dialect {
	return Dialect{
		Marked:   "n IN (SELECT result FROM marks WHERE kind = ? AND value = ?)",
		Contains: "instr(words, ?) > 0",
		Used: `SELECT (page_count - freelist_count) * page_size - (
			SELECT coalesce(sum(pgsize) - count(*) * max(page_size), 0) FROM dbstat, pragma_page_size WHERE aggregate = TRUE AND name IN
				(SELECT name FROM sqlite_schema WHERE tbl_name IN ('series', 'packs', 'hours', 'days'))
			) FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
		Size: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
	}
}

// Explain implements Engine.
func (s *database) Explain(doing string, err error) error { return explain(doing, s.path, err) }

// Digest implements Engine: SQLite has no tables of what is in documents.
func (s *database) Digest(context.Context, *sql.Tx, int64, *measure.Document) error { return nil }

// Freed implements Engine.
func (s *database) Freed(ctx context.Context) { s.shrink(ctx) }

// Write implements Engine.
func (s *database) Write(ctx context.Context, doing string, do func(*sql.Tx) error) error {
	if s.readOnly {
		return explain(doing, s.path, errReadOnly)
	}
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return explain(doing, s.path, ctx.Err())
	}
	return explain(doing, s.path, patiently(ctx, func() error {
		tx, err := s.DB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	}))
}

// readTime bounds each read of a file, which may be of foreign origin: well above the wait
// for processes that lock it.
const readTime = 2 * patience

// Read implements Engine, within readTime.
func (s *database) Read(ctx context.Context, doing string, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.readTime)
	defer cancel()
	err := patiently(limited, func() error { return do(limited) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errSlow
	}
	return explain(doing, s.path, err)
}

// Close implements Store.
func (s *database) Close() error {
	s.Results.Close()
	if s.DB == nil {
		return nil
	}
	if err := s.DB.Close(); err != nil {
		return explain("closing", s.path, err)
	}
	return nil
}

// shrink returns freed pages to the file system. If that fails, as on a full disk, later
// results use them.
func (s *database) shrink(ctx context.Context) {
	rows, err := s.DB.QueryContext(ctx, "PRAGMA incremental_vacuum") // one row for each page
	if err != nil {
		return
	}
	for rows.Next() {
	}
	rows.Close()
	var state, log, moved int
	_ = s.DB.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&state, &log, &moved)
}
