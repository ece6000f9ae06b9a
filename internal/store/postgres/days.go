package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"thru/internal/store"
	"thru/internal/watch/record"
)

// Days implements store.Watches.
func (s *archive) Days(ctx context.Context, f store.SampleFilter) iter.Seq2[record.Summary, error] {
	return func(yield func(record.Summary, error) bool) {
		var all []record.Summary
		err := s.Read(ctx, "reading days in", func(ctx context.Context) error {
			all = nil
			rows, err := s.DB.QueryContext(ctx, `SELECT day FROM days JOIN series ON n = series WHERE $1 IN ('', source) AND $2 IN ('', target)
				AND begin_at >= $3 AND ($4::timestamptz IS NULL OR begin_at < $4) ORDER BY begin_at, series`, f.Pair.From, f.Pair.To, f.From, until(f))
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var text []byte
				var day record.Summary
				if err := rows.Scan(&text); err != nil {
					return err
				}
				if err := json.Unmarshal(text, &day); err != nil {
					return fmt.Errorf("%w: %w", store.ErrDamaged, err)
				}
				all = append(all, day)
			}
			return rows.Err()
		})
		if err != nil {
			yield(record.Summary{}, err)
			return
		}
		for _, day := range all {
			if !yield(day, nil) {
				return
			}
		}
	}
}

// PutWatchState implements store.Watches.
func (s *archive) PutWatchState(ctx context.Context, watch string, state []byte) error {
	return s.Write(ctx, "keeping the state of a watch in", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO watches (name, state) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET state = excluded.state", watch, state)
		return err
	})
}

// WatchState implements store.Watches.
func (s *archive) WatchState(ctx context.Context, watch string) (state []byte, err error) {
	err = s.Read(ctx, "reading the state of a watch in", func(ctx context.Context) error {
		return s.DB.QueryRowContext(ctx, "SELECT state FROM watches WHERE name = $1", watch).Scan(&state)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return state, err
}
