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
	"time"

	"thru/internal/watch/record"
)

// mostPruned bounds the packs of one PruneSamples, so that it takes a second at most; the next one goes on.
const mostPruned = 1000

// hourOf counts from 1970.
func hourOf(t time.Time) int64 { return t.Unix() / 3600 }

// shift makes room for a series in a key: hour<<shift + series, day<<shift + series.
const shift = 32

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachRow calls take for each row.
func eachRow(ctx context.Context, q querier, take func(*sql.Rows) error, text string, args ...any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// column returns the numbers of a column.
func column(ctx context.Context, q querier, text string, args ...any) (all []int64, err error) {
	err = eachRow(ctx, q, func(r *sql.Rows) error {
		var n int64
		err := r.Scan(&n)
		all = append(all, n)
		return err
	}, text, args...)
	return all, err
}

// PutSamples implements Watches.
func (s *database) PutSamples(ctx context.Context, samples []record.Sample) error {
	type hour struct {
		series
		n int64
	}
	hours := map[hour][]record.Sample{}
	var troubles []error
	for _, x := range samples {
		x, err := stored(x)
		if err != nil {
			troubles = append(troubles, failed("keeping a sample", unfit{err}))
			continue
		}
		at := hour{series{x.Pair, x.Layer}, hourOf(x.Begin)}
		hours[at] = append(hours[at], x)
	}
	if len(hours) > 0 {
		var damage error
		err := s.Write(ctx, "keeping samples in", func(tx *sql.Tx) error {
			damage = nil
			for at, some := range hours {
				n, err := numberOf(ctx, tx, at.series)
				if err == nil {
					err = s.addTo(ctx, tx, "packs", at.n<<shift+n, at.series, some)
				}
				if err != nil && !errors.Is(err, ErrDamaged) {
					return err
				}
				damage = cmp.Or(damage, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if damage != nil {
			troubles = append(troubles, explain("keeping samples in", s.path, damage))
		}
	}
	if len(troubles) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", errors.Join(troubles...), ErrPartly)
}

// numberOf returns the number of a series, which may be new.
func numberOf(ctx context.Context, tx *sql.Tx, of series) (n int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT n FROM series WHERE source = ? AND target = ? AND layer = ?", of.From, of.To, string(of.Layer)).Scan(&n)
	if !errors.Is(err, sql.ErrNoRows) {
		return n, err
	}
	r, err := tx.ExecContext(ctx, "INSERT INTO series (source, target, layer) VALUES (?, ?, ?)", of.From, of.To, string(of.Layer))
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// addTo adds samples to the pack with a key, but those that it has. A damaged pack is lost: with ErrDamaged it has only the new ones.
func (s *database) addTo(ctx context.Context, tx *sql.Tx, table string, key int64, of series, some []record.Sample) error {
	var old []record.Sample
	var zipped []byte
	err := tx.QueryRowContext(ctx, "SELECT zstd FROM "+table+" WHERE n = ?", key).Scan(&zipped)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var damage error
	if err == nil {
		old, damage = s.unpack(zipped, of)
	}
	all := inOrder(append(old, some...))
	if damage == nil && len(all) == len(old) {
		return nil
	}
	p, err := newPack(all)
	if err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO "+table+" (n, series, zstd) VALUES (?, ?, ?)", key, key&(1<<shift-1), s.zipPack.EncodeAll(text, nil))
	return cmp.Or(err, damage)
}

// unpack returns the samples of a pack, which may be of foreign origin.
func (s *database) unpack(zipped []byte, of series) (all []record.Sample, err error) {
	var p pack
	if err = s.decode(zipped, &p); err == nil {
		all, err = p.samples(of)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return all, nil
}

// decode reads compressed JSON.
func (s *database) decode(zipped []byte, to any) error {
	text, err := s.unzip.DecodeAll(zipped, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// inOrder sorts samples by time, and keeps the first of those that are one.
func inOrder(all []record.Sample) []record.Sample {
	compare := func(a, b record.Sample) int {
		return cmp.Or(a.Begin.Compare(b.Begin), a.Pair.Compare(b.Pair), cmp.Compare(a.Layer, b.Layer))
	}
	slices.SortStableFunc(all, compare)
	return slices.CompactFunc(all, func(a, b record.Sample) bool { return compare(a, b) == 0 })
}

// ofSeries selects the series of a filter.
const ofSeries = " ?1 IN ('', source) AND ?2 IN ('', target) AND ?3 IN ('', layer)"

// ofHours selects their packs from one key to another. The index has no samples in it, so it is quick to search.
const ofHours = " FROM series AS s CROSS JOIN packs AS p INDEXED BY packs_by_series ON p.series = s.n WHERE p.n >= ?4 AND p.n < ?5 AND" + ofSeries

// Samples implements Watches.
func (s *database) Samples(ctx context.Context, f SampleFilter) iter.Seq2[record.Sample, error] {
	return func(yield func(record.Sample, error) bool) {
		if s.version < watchVersion {
			return
		}
		from, to := max(0, hourOf(f.From)), int64(math.MaxInt32)
		if !f.To.IsZero() {
			to = hourOf(f.To) + 1
		}
		var hours []int64
		err := s.Read(ctx, "searching in", func(ctx context.Context) (err error) {
			hours, err = column(ctx, s.DB, "SELECT DISTINCT p.n >> 32"+ofHours+" ORDER BY 1", f.Pair.From, f.Pair.To, string(f.Layer), from<<shift, to<<shift)
			return err
		})
		if err != nil {
			yield(record.Sample{}, err)
			return
		}
		for _, hour := range hours { // one after the other, so that no lock is held between them
			var all []record.Sample
			err := s.Read(ctx, "reading samples in", func(ctx context.Context) (err error) {
				all, err = s.hour(ctx, f, hour)
				return err
			})
			if err != nil && (!yield(record.Sample{}, err) || !errors.Is(err, ErrDamaged)) {
				return
			}
			for _, x := range all {
				if f.within(x.Begin) && !yield(x, nil) {
					return
				}
			}
		}
	}
}

// hour returns the samples of an hour. With ErrDamaged it returns those that can be read.
func (s *database) hour(ctx context.Context, f SampleFilter, hour int64) (all []record.Sample, err error) {
	var damage error
	err = eachRow(ctx, s.DB, func(r *sql.Rows) error {
		var of series
		var zipped []byte
		if err := r.Scan(&of.From, &of.To, &of.Layer, &zipped); err != nil {
			return err
		}
		some, err := s.unpack(zipped, of)
		all, damage = append(all, some...), cmp.Or(damage, err)
		return nil
	}, "SELECT source, target, layer, zstd"+ofHours, f.Pair.From, f.Pair.To, string(f.Layer), hour<<shift, (hour+1)<<shift)
	return inOrder(all), cmp.Or(err, damage)
}

// PruneSamples implements Watches.
func (s *database) PruneSamples(ctx context.Context, now time.Time, raw, hours time.Duration) error {
	var damage error
	err := s.Write(ctx, "pruning samples in", func(tx *sql.Tx) (err error) {
		if raw > 0 {
			if damage, err = s.sumUp(ctx, tx, hourOf(now.Add(-raw))<<shift); err != nil {
				return err
			}
		}
		if hours <= 0 {
			return nil
		}
		end := now.Add(-hours)
		if _, err := tx.ExecContext(ctx, "DELETE FROM hours WHERE n < ?", hourOf(end)/24<<shift); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM days WHERE begin_ms < ?", end.UnixMilli())
		return err
	})
	return cmp.Or(err, explain("pruning samples in", s.path, damage))
}

// sumUp puts summaries in place of the oldest packs below a key. It passes over what cannot be read, which the damage names.
func (s *database) sumUp(ctx context.Context, tx *sql.Tx, before int64) (damage, err error) {
	keys, err := column(ctx, tx, "SELECT n FROM packs WHERE n < ? ORDER BY n LIMIT ?", before, mostPruned)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		var of series
		var zipped []byte
		err := tx.QueryRowContext(ctx, "SELECT source, target, layer, zstd FROM packs AS p JOIN series AS s ON s.n = p.series WHERE p.n = ?", key).Scan(&of.From, &of.To, &of.Layer, &zipped)
		if err != nil {
			return nil, err
		}
		all, broken := s.unpack(zipped, of)
		if len(all) > 0 {
			number := key & (1<<shift - 1)
			broken = s.addTo(ctx, tx, "hours", hourOf(all[0].Begin)/24<<shift+number, of, []record.Sample{sumOf(all)})
		}
		if broken != nil && !errors.Is(broken, ErrDamaged) {
			return nil, broken
		}
		damage = cmp.Or(damage, broken)
		if _, err := tx.ExecContext(ctx, "DELETE FROM packs WHERE n = ?", key); err != nil {
			return nil, err
		}
	}
	return damage, nil
}

// PutDay implements Watches.
func (s *database) PutDay(ctx context.Context, day record.Summary) error {
	text, err := marshal(day)
	if err != nil {
		return failed("keeping a day", unfit{err})
	}
	return s.Write(ctx, "keeping a day in", func(tx *sql.Tx) error {
		n, err := numberOf(ctx, tx, series{Pair: day.Pair})
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO days (begin_ms, series, zstd) VALUES (?, ?, ?)", day.Begin.UnixMilli(), n, s.zip.EncodeAll(text, nil))
		return err
	})
}

// Days implements Watches.
func (s *database) Days(ctx context.Context, f SampleFilter) (all []record.Summary, err error) {
	if s.version < watchVersion {
		return nil, nil
	}
	from, to := f.From.UnixMilli(), int64(math.MaxInt64)
	if !f.To.IsZero() {
		to = f.To.UnixMilli()
	}
	var damage error
	err = s.Read(ctx, "reading days in", func(ctx context.Context) error {
		all, damage = nil, nil
		return eachRow(ctx, s.DB, func(r *sql.Rows) error {
			var zipped []byte
			if err := r.Scan(&zipped); err != nil {
				return err
			}
			var day record.Summary
			if err := s.decode(zipped, &day); err != nil {
				damage = fmt.Errorf("%w: %w", ErrDamaged, err)
				return nil
			}
			all = append(all, day)
			return nil
		}, "SELECT zstd FROM days JOIN series AS s ON s.n = series WHERE begin_ms >= ?4 AND begin_ms < ?5 AND"+ofSeries+" ORDER BY begin_ms, s.n", f.Pair.From, f.Pair.To, "", from, to)
	})
	return all, cmp.Or(err, explain("reading days in", s.path, damage))
}
