//go:build linux || darwin || freebsd || windows

package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/unit"
	"thru/internal/watch/record"
)

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// names has series by their numbers, and a condition that selects them: empty for all.
type names struct {
	of   map[int64]series
	only string
}

// named returns the series of a filter.
func (s *database) named(ctx context.Context, q querier, f SampleFilter) (names, error) {
	all := names{of: map[int64]series{}}
	if s.version < watchVersion {
		return all, nil
	}
	rows, err := q.QueryContext(ctx, "SELECT n, source, target, layer FROM series WHERE ?1 IN ('', source) AND ?2 IN ('', target) AND ?3 IN ('', layer)",
		f.Pair.From, f.Pair.To, string(f.Layer))
	if err != nil {
		return all, err
	}
	defer rows.Close()
	var numbers []int64
	for rows.Next() {
		var n int64
		var x series
		if err := rows.Scan(&n, &x.From, &x.To, &x.Layer); err != nil {
			return all, err
		}
		all.of[n] = x
		numbers = append(numbers, n)
	}
	if f.Pair != (record.Pair{}) || f.Layer != "" {
		all.only = only(numbers)
	}
	return all, rows.Err()
}

// only returns the condition that a series has one of these numbers.
func only(numbers []int64) string {
	return " AND series IN (" + strings.Join(unit.Mapped(numbers, func(n int64) string { return strconv.FormatInt(n, 10) }), ", ") + ")"
}

// hours lists, in order, the hours in which a filter may find something, and the series of the filter.
func (s *database) hours(ctx context.Context, f SampleFilter) (of names, hours []int64, err error) {
	err = s.read(ctx, "searching in", func(ctx context.Context) error {
		if of, err = s.named(ctx, s.db, f); err != nil || len(of.of) == 0 {
			return err
		}
		from, to := max(0, hourOf(f.From)), int64(math.MaxInt32)
		if !f.To.IsZero() {
			to = hourOf(f.To) + 1
		}
		// The index has no samples in it, so it is quick to read.
		query := fmt.Sprintf(`SELECT n >> 32 FROM packs INDEXED BY packs_by_series WHERE n >= ? AND n < ?%[1]s
			UNION SELECT hour FROM samples WHERE hour >= ? AND hour < ?%[1]s ORDER BY 1`, of.only)
		hours, err = column(ctx, s.db, query, from<<shift, to<<shift, from, to)
		return err
	})
	return of, hours, err
}

// column returns the numbers of a column.
func column(ctx context.Context, q querier, query string, args ...any) (all []int64, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, rows.Err()
}

// each yields what a filter selects of spans. It reads one after the other, so that no lock is held between them.
func each[T any](f SampleFilter, spans []int64, read func(span int64) ([]T, error), begin func(T) time.Time, yield func(T, error) bool) {
	left := f.Limit
	for _, span := range spans {
		all, err := read(span)
		var none T
		if err != nil && (!yield(none, err) || !errors.Is(err, ErrDamaged)) {
			return
		}
		for _, x := range all {
			if !f.within(begin(x)) {
				continue
			}
			if left--; !yield(x, nil) || left == 0 {
				return
			}
		}
	}
}

// Samples implements Watches.
func (s *database) Samples(ctx context.Context, f SampleFilter) iter.Seq2[record.Sample, error] {
	return func(yield func(record.Sample, error) bool) {
		of, hours, err := s.hours(ctx, f)
		if err != nil {
			yield(record.Sample{}, err)
			return
		}
		each(f, hours, func(hour int64) (all []record.Sample, err error) {
			err = s.read(ctx, "reading samples in", func(ctx context.Context) error {
				all, _, err = s.hour(ctx, s.db, hour, of)
				return err
			})
			return all, err
		}, func(x record.Sample) time.Time { return x.Begin }, yield)
	}
}

// hour returns the samples of an hour, each once, and whether some are packed. With ErrDamaged it returns those that can be read.
func (s *database) hour(ctx context.Context, q querier, hour int64, of names) (all []record.Sample, packed bool, err error) {
	rows, err := q.QueryContext(ctx, "SELECT series, zstd, 1 AS packed FROM packs WHERE n >= ? AND n < ?"+of.only+
		" UNION ALL SELECT series, zstd, 0 FROM samples WHERE hour = ?"+of.only+" ORDER BY packed DESC", hour<<shift, (hour+1)<<shift, hour)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var data []byte
		var isPack bool
		if err := rows.Scan(&n, &data, &isPack); err != nil {
			return nil, false, err
		}
		x, known := of.of[n]
		if !known {
			continue // it began after the search
		}
		more, broken := s.unpack(data, x)
		if broken != nil {
			err = broken
			continue
		}
		all, packed = append(all, more...), packed || isPack
	}
	return inOrder(all), packed, cmp.Or(rows.Err(), err)
}

// unpack returns the samples of a pack, which may be of foreign origin.
func (s *database) unpack(zipped []byte, of series) ([]record.Sample, error) {
	text, err := s.unzip.DecodeAll(zipped, nil)
	var p pack
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	var all []record.Sample
	if err == nil {
		all, err = p.samples(of)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return all, nil
}

// inOrder sorts samples by time, and keeps the first of those that are one.
func inOrder(all []record.Sample) []record.Sample {
	compare := func(a, b record.Sample) int {
		return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Layer, b.Layer))
	}
	slices.SortStableFunc(all, compare)
	return slices.CompactFunc(all, func(a, b record.Sample) bool { return compare(a, b) == 0 })
}

// Days implements Watches.
func (s *database) Days(ctx context.Context, f SampleFilter) iter.Seq2[record.Summary, error] {
	return func(yield func(record.Summary, error) bool) {
		var of names
		var begins []int64
		err := s.read(ctx, "searching in", func(ctx context.Context) (err error) {
			if of, err = s.named(ctx, s.db, SampleFilter{Pair: f.Pair}); err == nil && len(of.of) > 0 {
				begins, err = column(ctx, s.db, "SELECT DISTINCT begin_ms FROM days WHERE TRUE"+of.only+" ORDER BY 1")
			}
			return err
		})
		if err != nil {
			yield(record.Summary{}, err)
			return
		}
		begins = unit.Filtered(begins, func(ms int64) bool { return f.within(time.UnixMilli(ms)) })
		each(f, begins, func(ms int64) (all []record.Summary, err error) {
			err = s.read(ctx, "reading days in", func(ctx context.Context) error {
				all, err = s.daysOf(ctx, ms, of)
				return err
			})
			return all, err
		}, func(x record.Summary) time.Time { return x.Begin }, yield)
	}
}

// daysOf returns the summaries of days that began at a time.
func (s *database) daysOf(ctx context.Context, ms int64, of names) (all []record.Summary, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT zstd FROM days WHERE begin_ms = ?"+of.only+" ORDER BY series", ms)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var zipped []byte
		if err := rows.Scan(&zipped); err != nil {
			return nil, err
		}
		var day record.Summary
		text, err := s.unzip.DecodeAll(zipped, nil)
		if err == nil {
			err = json.Unmarshal(text, &day)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		all = append(all, day)
	}
	return all, rows.Err()
}

// WatchState implements Watches.
func (s *database) WatchState(ctx context.Context, watch string) (state []byte, err error) {
	if s.version < watchVersion {
		return nil, nil
	}
	err = s.read(ctx, "reading the state of a watch in", func(ctx context.Context) error {
		var zipped []byte
		if err := s.db.QueryRowContext(ctx, "SELECT zstd FROM watches WHERE name = ?", watch).Scan(&zipped); err != nil {
			return err
		}
		if state, err = s.unzip.DecodeAll(zipped, nil); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return state, err
}
