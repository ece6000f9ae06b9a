package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"thru/internal/store"
	"thru/internal/watch/record"
)

// Samples that one statement stores, and that one reads.
const atATime = 1000

// PutSamples implements store.Watches.
func (s *archive) PutSamples(ctx context.Context, samples []record.Sample) error {
	fit, unfit := store.Fit(samples)
	if len(fit) == 0 {
		return unfit
	}
	err := s.Write(ctx, "keeping samples in", func(tx *sql.Tx) error {
		for some := range slices.Chunk(fit, atATime) {
			text, err := jsonb(some)
			if err != nil {
				return err
			}
			for _, statement := range []string{`INSERT INTO series (source, target, layer)
				SELECT DISTINCT x ->> 'from', x ->> 'to', x ->> 'layer' FROM jsonb_array_elements($1::jsonb) AS a (x)
				EXCEPT SELECT source, target, layer FROM series ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING`,
				`INSERT INTO samples (begin_at, series, sample)
				SELECT (x ->> 'begin')::timestamptz, n, x - '{from,to,layer,begin,id}'::text[]
				FROM jsonb_array_elements($1::jsonb) AS a (x) JOIN series ON key = series_key(x ->> 'from', x ->> 'to', x ->> 'layer')
				WHERE NOT EXISTS (SELECT 1 FROM hours WHERE series = n AND begin_at = date_trunc('hour', (x ->> 'begin')::timestamptz, 'UTC'))
				ORDER BY 1, 2 ON CONFLICT DO NOTHING`} {
				if _, err := tx.ExecContext(ctx, statement, text); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return unfit
}

// place is that of a sample in the order of Samples.
type place struct {
	begin  time.Time
	series int64
}

// Samples implements store.Watches.
func (s *archive) Samples(ctx context.Context, f store.SampleFilter) iter.Seq2[record.Sample, error] {
	return func(yield func(record.Sample, error) bool) {
		after := place{f.From, -1}
		for {
			var page []record.Sample
			err := s.Read(ctx, "reading samples in", func(ctx context.Context) (err error) {
				page, after, err = s.page(ctx, f, after)
				return err
			})
			if err != nil {
				yield(record.Sample{}, err)
				return
			}
			for _, x := range page {
				if !yield(x, nil) {
					return
				}
			}
			if len(page) < atATime {
				return
			}
		}
	}
}

// until returns the end of a filter's time; nil where it has none.
func until(f store.SampleFilter) any {
	if f.To.IsZero() {
		return nil
	}
	return f.To
}

// page returns the next samples after a place, and the place of the last one.
func (s *archive) page(ctx context.Context, f store.SampleFilter, after place) (all []record.Sample, last place, err error) {
	rows, err := s.DB.QueryContext(ctx, `SELECT begin_at, series, source, target, layer, sample FROM samples JOIN series ON n = series
		WHERE $1 IN ('', source) AND $2 IN ('', target) AND $3 IN ('', layer) AND (begin_at, series) > ($4, $5) AND ($6::timestamptz IS NULL OR begin_at < $6)
		ORDER BY begin_at, series LIMIT $7`, f.Pair.From, f.Pair.To, string(f.Layer), after.begin, after.series, until(f), atATime)
	if err != nil {
		return nil, after, err
	}
	defer rows.Close()
	for last = after; rows.Next(); {
		var x record.Sample
		var of record.Pair
		var layer record.Layer
		var text []byte
		if err := rows.Scan(&last.begin, &last.series, &of.From, &of.To, &layer, &text); err != nil {
			return nil, after, err
		}
		if err := json.Unmarshal(text, &x); err != nil {
			return nil, after, fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
		x.Pair, x.Layer, x.Begin = of, layer, last.begin
		x.ID = record.SampleID(of, layer, x.Begin)
		all = append(all, x)
	}
	return all, last, rows.Err()
}

// PruneSamples implements store.Watches.
func (s *archive) PruneSamples(ctx context.Context, now time.Time, raw, hours time.Duration) error {
	return s.Write(ctx, "pruning samples in", func(tx *sql.Tx) error {
		run := func(keep time.Duration, unit time.Duration, statements ...string) (err error) {
			for _, statement := range statements {
				if keep > 0 && err == nil {
					_, err = tx.ExecContext(ctx, statement, now.Add(-keep).UTC().Truncate(unit))
				}
			}
			return err
		}
		return errors.Join(
			run(raw, time.Hour, "INSERT INTO hours (series, begin_at, turns, ranges) SELECT * FROM sums WHERE begin_at < $1 ON CONFLICT DO NOTHING",
				"DELETE FROM samples WHERE begin_at < $1"),
			run(hours, 24*time.Hour, "DELETE FROM hours WHERE begin_at < $1"),
			run(hours, time.Millisecond, "DELETE FROM days WHERE begin_at < $1"))
	})
}

// PutDay implements store.Watches.
func (s *archive) PutDay(ctx context.Context, day record.Summary) error {
	text, err := jsonb(day)
	if err != nil {
		return fmt.Errorf("store: keeping a day: %w", err)
	}
	return s.Write(ctx, "keeping a day in", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO series (source, target, layer) VALUES ($1, $2, '') ON CONFLICT DO NOTHING", day.From, day.To); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO days (begin_at, series, day) SELECT $3, n, $4 FROM series WHERE key = series_key($1, $2, '')
			ON CONFLICT (begin_at, series) DO UPDATE SET day = excluded.day`, day.From, day.To, day.Begin, text)
		return err
	})
}

// Days implements store.Watches.
func (s *archive) Days(ctx context.Context, f store.SampleFilter) (all []record.Summary, err error) {
	err = s.Read(ctx, "reading days in", func(ctx context.Context) error {
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
	return all, err
}
