//go:build linux || darwin || freebsd || windows

package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Delete implements Store.
func (s *database) Delete(ctx context.Context, ids ...string) (gone int, err error) {
	err = s.write(ctx, "deleting in", func(tx *sql.Tx) error {
		gone = 0
		for _, id := range ids {
			if err := remove(ctx, tx, &gone, "DELETE FROM results WHERE id = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.shrink(ctx)
	return gone, nil
}

// remove executes a statement and counts the rows that it deleted.
func remove(ctx context.Context, tx *sql.Tx, gone *int, statement string, args ...any) error {
	r, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	*gone += int(n)
	return err
}

// errDry ends a transaction that only counts.
var errDry = errors.New("dry run")

// Prune implements Store.
func (s *database) Prune(ctx context.Context, r Retention) (gone int, err error) {
	err = s.write(ctx, "pruning", func(tx *sql.Tx) error {
		gone = 0
		if r.Age > 0 {
			const old = "DELETE FROM results WHERE started < ? AND " + concerned
			if err := remove(ctx, tx, &gone, old, sortTime(time.Now().Add(-r.Age)), r.Command, r.Command); err != nil {
				return err
			}
		}
		if r.Count > 0 {
			const older = "DELETE FROM results WHERE n IN (SELECT n FROM results WHERE " + concerned + " ORDER BY started DESC, id DESC LIMIT -1 OFFSET ?)"
			if err := remove(ctx, tx, &gone, older, r.Command, r.Command, r.Count); err != nil {
				return err
			}
		}
		if r.Bytes > 0 {
			if err := makeRoom(ctx, tx, &gone, r); err != nil {
				return err
			}
		}
		if r.DryRun {
			return errDry
		}
		return nil
	})
	if r.DryRun && errors.Is(err, errDry) {
		return gone, nil
	}
	if err != nil {
		return 0, err
	}
	s.shrink(ctx)
	return gone, nil
}

// concerned selects the results of a retention's command, a parameter given twice.
const concerned = "(? = '' OR command = ?)"

// makeRoom deletes the oldest results until the used pages of the file, without what
// watches stored, take at most r.Bytes bytes. It keeps the newest result.
func makeRoom(ctx context.Context, tx *sql.Tx, gone *int, r Retention) error {
	// The pages of their tables and indexes, but for the page that an empty one has too.
	const watches = `SELECT coalesce(sum(pgsize) - count(*) * max(page_size), 0) FROM dbstat, pragma_page_size WHERE aggregate = TRUE AND name IN
		(SELECT name FROM sqlite_schema WHERE tbl_name IN ('series', 'samples', 'packs', 'hours', 'days', 'watches'))`
	var others int64
	if err := tx.QueryRowContext(ctx, watches).Scan(&others); err != nil {
		return err
	}
	const used = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
	// Of the oldest results, as many as make up the excess: at least one.
	const oldest = `DELETE FROM results WHERE n IN (SELECT n FROM (
			SELECT n, sum(size) OVER (ORDER BY started, id) - size AS before FROM results WHERE ` + concerned + `
		) WHERE before < ?) AND n <> (SELECT n FROM results WHERE ` + concerned + ` ORDER BY started DESC, id DESC LIMIT 1)`
	for {
		var bytes int64
		if err := tx.QueryRowContext(ctx, used).Scan(&bytes); err != nil || bytes-others <= r.Bytes {
			return err
		}
		before := *gone
		if err := remove(ctx, tx, gone, oldest, r.Command, r.Command, bytes-others-r.Bytes, r.Command, r.Command); err != nil || *gone == before {
			return err
		}
	}
}

// shrink returns freed pages to the file system. If that fails, as on a full disk, later
// results use them.
func (s *database) shrink(ctx context.Context) {
	rows, err := s.db.QueryContext(ctx, "PRAGMA incremental_vacuum") // one row for each page
	if err != nil {
		return
	}
	for rows.Next() {
	}
	rows.Close()
	var state, log, moved int
	_ = s.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&state, &log, &moved)
}
