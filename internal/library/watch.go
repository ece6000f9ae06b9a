package library

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"thru/internal/store"
	"thru/internal/watch/record"
)

// How long a store keeps samples of watches, and their hours and days.
const (
	keepSamples = 14 * 24 * time.Hour
	keepHours   = 5 * 365 * 24 * time.Hour
	pruneEvery  = time.Minute
)

// keepTime bounds how long a watch waits for its store: meanwhile it measures nothing.
const keepTime = 5 * time.Second

// mostLate bounds the samples that wait in memory for a store that fails: a day of 50 pairs.
const mostLate = 72_000

// WatchLog is the store of a watch, open as long as it runs. Its methods may run at the same time.
type WatchLog struct {
	store store.Store // nil: nothing is stored

	mu     sync.Mutex
	late   []record.Sample // not stored yet
	pruned time.Time
}

// WatchLog opens the store for a watch. With Off nothing is stored.
func (a Archive) WatchLog() (*WatchLog, error) {
	if a.Off {
		return new(WatchLog), nil
	}
	s, err := a.Open(store.Options{})
	if err != nil {
		return nil, err
	}
	return &WatchLog{store: s}, nil
}

// within calls do with a store and a time limit.
func (l *WatchLog) within(do func(context.Context) error) error {
	if l.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), keepTime)
	defer cancel()
	return do(ctx)
}

// Keep stores samples. After an error the next call tries again; the oldest are given up when too many wait.
func (l *WatchLog) Keep(samples []record.Sample) error {
	return l.within(func(ctx context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.late = append(l.late, samples...)
		err := l.store.PutSamples(ctx, l.late)
		if err != nil && !errors.Is(err, store.ErrPartly) {
			l.late = l.late[max(0, len(l.late)-mostLate):]
			return err
		}
		l.late = nil
		now := time.Now()
		if now.Sub(l.pruned).Abs() < pruneEvery {
			return err
		}
		failed := l.store.PruneSamples(ctx, now, keepSamples, keepHours)
		if failed == nil {
			l.pruned = now
		}
		return errors.Join(err, failed)
	})
}

// Take stores what an event leaves: the summary of a day that is over.
func (l *WatchLog) Take(e record.Event) error {
	if e.Kind != record.DayOver || e.Day == nil {
		return nil
	}
	return l.within(func(ctx context.Context) error { return l.store.PutDay(ctx, *e.Day) })
}

// Past returns the stored samples of a filter in order.
func (l *WatchLog) Past(ctx context.Context, f store.SampleFilter) iter.Seq2[record.Sample, error] {
	if l.store == nil {
		return func(func(record.Sample, error) bool) {}
	}
	return l.store.Samples(ctx, f)
}

// Close stores what waits, and closes the store.
func (l *WatchLog) Close() error {
	if l.store == nil {
		return nil
	}
	return errors.Join(l.Keep(nil), l.store.Close())
}
