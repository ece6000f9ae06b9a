package library

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"thru/internal/store"
	"thru/internal/watch/record"
)

// What a watch stores is there for its next run.
func TestWatchLog(t *testing.T) {
	a := Archive{Path: filepath.Join(t.TempDir(), "results.db")}
	pair := record.Pair{From: "a", To: "b"}
	now := time.Now().UTC().Truncate(time.Millisecond)
	sample := func(age time.Duration) record.Sample {
		return record.Sample{Pair: pair, Layer: record.Probe, Begin: now.Add(-age), State: record.Up}
	}
	count := func(l *WatchLog) (n int) {
		for _, err := range l.Past(t.Context(), store.SampleFilter{Pair: pair}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	for run := range 2 {
		l, err := a.WatchLog()
		if err != nil {
			t.Fatal(err)
		}
		if got := count(l); got != 2*run {
			t.Errorf("run %d: %d samples", run, got)
		}
		day := record.Summary{Pair: pair, Begin: now}
		for _, err := range []error{
			l.Keep([]record.Sample{sample(0), sample(time.Minute), sample(30 * 24 * time.Hour)}), // the last is too old
			l.Take(record.Event{Kind: record.DayOver, Day: &day}), l.Take(record.Event{Kind: record.OutageBegan}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		bad := sample(0)
		bad.Begin = time.Time{}
		if err := l.Keep([]record.Sample{bad}); err == nil {
			t.Error("a sample of the year 1 is no error")
		}
		if err := l.Keep(nil); err != nil {
			t.Errorf("after a sample that cannot be stored: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// With --no-store a watch runs all the same.
func TestWatchLogOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	l, err := Archive{Path: path, Off: true}.WatchLog()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Keep([]record.Sample{{}}); err != nil {
		t.Error(err)
	}
	for range l.Past(t.Context(), store.SampleFilter{}) {
		t.Error("a sample")
	}
	if err = l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made")
	}
}

// failing is a store that fails.
type failing struct {
	store.Store
	err    error
	got    [][]record.Sample
	prune  error
	pruned int
}

func (f *failing) PruneSamples(context.Context, time.Time, time.Duration, time.Duration) error {
	f.pruned++
	return f.prune
}

func (f *failing) PutSamples(_ context.Context, samples []record.Sample) error {
	f.got = append(f.got, samples)
	return f.err
}

// Samples that were not stored are stored later.
func TestWatchLogLate(t *testing.T) {
	f := &failing{err: store.ErrNewer}
	l := &WatchLog{store: f, pruned: time.Now()}
	if err := l.Keep(make([]record.Sample, mostLate)); !errors.Is(err, store.ErrNewer) {
		t.Fatal(err)
	}
	_ = l.Keep(make([]record.Sample, 2))
	f.err = store.ErrPartly
	if err := l.Keep(make([]record.Sample, 1)); !errors.Is(err, store.ErrPartly) {
		t.Fatal(err)
	}
	f.err = nil
	if err := l.Keep(make([]record.Sample, 3)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{mostLate, mostLate + 2, mostLate + 1, 3} {
		if len(f.got[i]) != want {
			t.Errorf("call %d stored %d samples, want %d", i, len(f.got[i]), want)
		}
	}
}

// Old samples are removed beside samples that cannot be stored, and soon again if that fails.
func TestWatchLogPrune(t *testing.T) {
	f := &failing{err: store.ErrPartly, prune: store.ErrDamaged}
	l := &WatchLog{store: f}
	for i, want := range []int{1, 2, 2} {
		if err := l.Keep(nil); !errors.Is(err, store.ErrPartly) || errors.Is(err, f.prune) != (i == 0) {
			t.Errorf("call %d: %v", i, err)
		}
		if f.pruned != want {
			t.Errorf("call %d: pruned %d times, want %d", i, f.pruned, want)
		}
		f.prune = nil
	}
}
