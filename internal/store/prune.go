package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Delete implements Store.
func (s *Results) Delete(ctx context.Context, ids ...string) (gone int, err error) {
	err = s.Engine.Write(ctx, "deleting in", func(tx *sql.Tx) error {
		gone = 0
		for _, id := range ids {
			if err := remove(ctx, tx, &gone, "DELETE FROM results WHERE id = $1", id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.Engine.Freed(ctx)
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
func (s *Results) Prune(ctx context.Context, r Retention) (gone int, err error) {
	err = s.Engine.Write(ctx, "pruning", func(tx *sql.Tx) error {
		gone = 0
		if r.Age > 0 {
			const old = "DELETE FROM results WHERE " + concerned + " AND started < $2"
			if err := remove(ctx, tx, &gone, old, r.Command, sortTime(time.Now().Add(-r.Age))); err != nil {
				return err
			}
		}
		if r.Count > 0 {
			const older = `DELETE FROM results WHERE n IN (SELECT n FROM (
					SELECT n, row_number() OVER (ORDER BY started DESC, id DESC) AS place FROM results WHERE ` + concerned + `
				) AS newest WHERE place > $2)`
			if err := remove(ctx, tx, &gone, older, r.Command, r.Count); err != nil {
				return err
			}
		}
		if r.Bytes > 0 {
			if err := s.makeRoom(ctx, tx, &gone, r); err != nil {
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
	s.Engine.Freed(ctx)
	return gone, nil
}

// concerned selects the results of a retention's command, the first parameter.
const concerned = "($1 = '' OR command = $1)"

// makeRoom deletes the oldest results until those left take at most r.Bytes bytes. It keeps the newest result.
func (s *Results) makeRoom(ctx context.Context, tx *sql.Tx, gone *int, r Retention) error {
	// Of the oldest results, as many as make up the excess: at least one.
	const oldest = `DELETE FROM results WHERE n IN (SELECT n FROM (
			SELECT n, sum(size) OVER (ORDER BY started, id) - size AS before FROM results WHERE ` + concerned + `
		) AS older WHERE before < $2) AND n <> (SELECT n FROM results WHERE ` + concerned + ` ORDER BY started DESC, id DESC LIMIT 1)`
	for {
		var bytes int64
		if err := tx.QueryRowContext(ctx, s.Dialect.Used).Scan(&bytes); err != nil || bytes <= r.Bytes {
			return err
		}
		before := *gone
		if err := remove(ctx, tx, gone, oldest, r.Command, bytes-r.Bytes); err != nil || *gone == before {
			return err
		}
	}
}
