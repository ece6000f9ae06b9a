//go:build linux || darwin || freebsd || windows

package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"thru/internal/watch/record"
)

// late is how long after its end an hour is packed, for samples that come late. Later ones cost a new pack.
const late = 5 * time.Minute

// hourOf and dayOf count from 1970.
func hourOf(t time.Time) int64 { return t.Unix() / 3600 }
func dayOf(t time.Time) int64  { return t.Unix() / 86400 }

// shift makes room for a series in a key: hour<<shift + series.
const shift = 32

// PutSamples implements Watches.
func (s *database) PutSamples(ctx context.Context, samples []record.Sample) error {
	var fit []record.Sample
	var troubles []error
	var newest time.Time
	for _, x := range samples {
		x, err := stored(x)
		if err != nil {
			troubles = append(troubles, failed("keeping a sample", unfit{err}))
			continue
		}
		fit = append(fit, x)
		if x.Begin.After(newest) {
			newest = x.Begin
		}
	}
	if len(fit) == 0 {
		return partly(troubles)
	}
	if now := time.Now(); newest.After(now) {
		newest = now // the clock of a host may be wrong
	}
	open, due := hourOf(newest.Add(-late)), false
	err := s.write(ctx, "keeping samples in", func(tx *sql.Tx) error {
		if err := s.insertSamples(ctx, tx, fit); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM samples WHERE hour < ?)", open).Scan(&due)
	})
	if err != nil {
		return err
	}
	if due { // in another transaction: trouble with other hours does not keep new samples out
		var damage error
		err := s.write(ctx, "packing samples in", func(tx *sql.Tx) (err error) {
			damage, err = s.packHours(ctx, tx, open)
			return err
		})
		if err = cmp.Or(err, explain("packing samples in", s.path, damage)); err != nil {
			troubles = append(troubles, err)
		}
	}
	return partly(troubles)
}

// partly returns the error of troubles beside which all samples were stored.
func partly(troubles []error) error {
	if len(troubles) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", errors.Join(troubles...), ErrPartly)
}

func (s *database) insertSamples(ctx context.Context, tx *sql.Tx, samples []record.Sample) error {
	add, err := tx.PrepareContext(ctx, "INSERT OR IGNORE INTO samples (hour, series, begin_ms, zstd) VALUES (?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer add.Close()
	of, err := s.named(ctx, tx, SampleFilter{})
	if err != nil {
		return err
	}
	numbers := make(map[series]int64, len(of.of))
	for n, x := range of.of {
		numbers[x] = n
	}
	for _, x := range samples {
		key := series{x.Pair, x.Layer}
		n, known := numbers[key]
		if !known {
			if n, err = numberOf(ctx, tx, key); err != nil {
				return err
			}
			numbers[key] = n
		}
		zipped, err := s.pack(x)
		if err == nil {
			_, err = add.ExecContext(ctx, hourOf(x.Begin), n, x.Begin.UnixMilli(), zipped)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// numberOf returns the number of a series, which may be new.
func numberOf(ctx context.Context, tx *sql.Tx, of series) (n int64, err error) {
	const known = "SELECT n FROM series WHERE source = ? AND target = ? AND layer = ?"
	err = tx.QueryRowContext(ctx, known, of.From, of.To, string(of.Layer)).Scan(&n)
	if !errors.Is(err, sql.ErrNoRows) {
		return n, err
	}
	r, err := tx.ExecContext(ctx, "INSERT INTO series (source, target, layer) VALUES (?, ?, ?)", of.From, of.To, string(of.Layer))
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// packHours packs the samples of all hours before one, and sums them up. It passes over what cannot be read, which the damage names.
func (s *database) packHours(ctx context.Context, tx *sql.Tx, before int64) (damage, err error) {
	of, err := s.named(ctx, tx, SampleFilter{})
	if err != nil {
		return nil, err
	}
	hours, err := column(ctx, tx, "SELECT DISTINCT hour FROM samples WHERE hour < ? ORDER BY 1", before)
	if err != nil {
		return nil, err
	}
	for _, hour := range hours {
		due, err := column(ctx, tx, "SELECT DISTINCT series FROM samples WHERE hour = ?", hour)
		if err != nil {
			return nil, err
		}
		for _, n := range due {
			err := s.packHour(ctx, tx, hour, n, of.of[n])
			if err != nil && !errors.Is(err, ErrDamaged) {
				return nil, err
			}
			damage = cmp.Or(damage, err)
		}
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM samples WHERE hour < ?", before)
	return damage, err
}

// packHour adds samples to the pack of an hour. The summary of an hour whose pack was removed, or is damaged, is final. With ErrDamaged it has
// packed what can be read.
func (s *database) packHour(ctx context.Context, tx *sql.Tx, hour, n int64, of series) error {
	all, packed, damage := s.hour(ctx, tx, hour, names{map[int64]series{n: of}, only([]int64{n})})
	if damage != nil && !errors.Is(damage, ErrDamaged) || len(all) == 0 {
		return damage
	}
	day := hour / 24
	sums, err := s.packed(ctx, tx, "hours", day<<shift+n, of)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	damage = cmp.Or(damage, err)
	sum, before := asSample(record.SumUp(all)), -1
	for i, x := range sums {
		if x.Begin.Equal(sum.Begin) {
			before = i
		}
	}
	switch {
	case before < 0:
		sums = inOrder(append(sums, sum))
	case !packed:
		return damage
	default:
		sums[before] = sum
	}
	if err := s.putPack(ctx, tx, "packs", hour<<shift+n, n, all); err != nil {
		return err
	}
	return cmp.Or(s.putPack(ctx, tx, "hours", day<<shift+n, n, sums), damage)
}

// packed returns the samples of a pack; none where there is none.
func (s *database) packed(ctx context.Context, q querier, table string, key int64, of series) ([]record.Sample, error) {
	var zipped []byte
	err := q.QueryRowContext(ctx, "SELECT zstd FROM "+table+" WHERE n = ?", key).Scan(&zipped)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.unpack(zipped, of)
}

func (s *database) putPack(ctx context.Context, tx *sql.Tx, table string, key, n int64, samples []record.Sample) error {
	zipped, err := s.pack(samples...)
	if err == nil {
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO "+table+" (n, series, zstd) VALUES (?, ?, ?)", key, n, zipped)
	}
	return err
}

func (s *database) pack(samples ...record.Sample) ([]byte, error) {
	p, err := newPack(samples)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	return s.zipPack.EncodeAll(text, nil), err
}

// PruneSamples implements Watches.
func (s *database) PruneSamples(ctx context.Context, now time.Time, raw, hours time.Duration) error {
	var damage error
	err := s.write(ctx, "pruning samples in", func(tx *sql.Tx) (err error) {
		if raw > 0 {
			before := hourOf(now.Add(-raw))
			if damage, err = s.packHours(ctx, tx, before); err != nil { // so that they are summed up
				return err
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM packs WHERE n < ?", before<<shift); err != nil {
				return err
			}
		}
		if hours <= 0 {
			return nil
		}
		end := now.Add(-hours)
		if _, err := tx.ExecContext(ctx, "DELETE FROM hours WHERE n < ?", dayOf(end)<<shift); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM days WHERE begin_ms < ?", end.UnixMilli())
		return err
	})
	return cmp.Or(err, explain("pruning samples in", s.path, damage))
}

// PutDay implements Watches.
func (s *database) PutDay(ctx context.Context, day record.Summary) error {
	text, err := marshal(day)
	if err != nil {
		return failed("keeping a day", unfit{err})
	}
	return s.write(ctx, "keeping a day in", func(tx *sql.Tx) error {
		n, err := numberOf(ctx, tx, series{Pair: day.Pair})
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO days (begin_ms, series, zstd) VALUES (?, ?, ?)", day.Begin.UnixMilli(), n, s.zip.EncodeAll(text, nil))
		return err
	})
}

// PutWatchState implements Watches.
func (s *database) PutWatchState(ctx context.Context, watch string, state []byte) error {
	return s.write(ctx, "keeping the state of a watch in", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO watches (name, zstd) VALUES (?, ?)", watch, s.zip.EncodeAll(state, nil))
		return err
	})
}
