//go:build linux

package disk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"thru/internal/measure"
)

// TestPlaces: in sequential patterns the workers divide the file among them, each block once; in random patterns none goes beyond it.
func TestPlaces(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		c := &crew{job: job{pattern: measure.SequentialRead, block: 10, size: 243, workers: workers}}
		var all []int64
		for i := range int64(workers) {
			w := newWorker(c, i)
			for range w.many {
				all = append(all, w.place())
			}
			if first := w.first * 10; w.place() != first {
				t.Errorf("worker %d of %d does not wrap around", i, workers)
			}
		}
		slices.Sort(all)
		if whole := 24 / workers * workers; len(all) != whole || len(slices.Compact(all)) != whole || all[0] != 0 || all[len(all)-1]+10 > 243 {
			t.Errorf("%d workers: %v", workers, all)
		}
	}
	w := newWorker(&crew{job: job{pattern: measure.RandomRead, block: 10, size: 243, workers: 1}}, 0)
	seen := map[int64]bool{}
	for range 2000 {
		at := w.place()
		if at < 0 || at+10 > 243 || at%10 != 0 {
			t.Fatal(at)
		}
		seen[at] = true
	}
	if len(seen) != 24 {
		t.Errorf("%d of 24 blocks were read", len(seen))
	}
}

// TestBlocksDiffer: no file system can deduplicate the written data.
func TestBlocksDiffer(t *testing.T) {
	p := newPattern(3 * sectorBytes)
	var seen [][]byte
	for range 4 {
		p.stamp()
		for at := 0; at < len(p.bytes); at += sectorBytes {
			s := bytes.Clone(p.bytes[at : at+sectorBytes])
			if slices.ContainsFunc(seen, func(o []byte) bool { return bytes.Equal(o, s) }) {
				t.Fatal("a sector was written twice")
			}
			seen = append(seen, s)
		}
	}
}

func TestFigures(t *testing.T) {
	o := outcome{bytes: 300, ops: 30, elapsed: 3 * time.Second, bins: []bin{{150, 15, time.Second}, {50, 5, time.Second}}}
	if f := o.figure(func(b bin) int64 { return b.bytes }); f.Value != 100 || f.Low != 50 || f.High != 150 || f.Runs != 1 {
		t.Errorf("%+v", f)
	}
	o.bins = nil
	if f := o.figure(func(b bin) int64 { return b.ops }); f.Value != 10 || f.Low != 10 || f.High != 10 {
		t.Errorf("%+v", f)
	}
}

// TestReadError: a file that is too short gives one error for all workers.
func TestReadError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(name, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	j := job{pattern: measure.SequentialRead, file: f, block: 4096, size: 1 << 20, workers: 4, length: time.Minute}
	if _, err := (own{}).run(t.Context(), j, func(int64, int64) {}); err == nil {
		t.Error("reading beyond the end")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := (own{}).run(t.Context(), j, func(int64, int64) {}); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err = os.Open("/dev/zero"); err != nil {
		t.Skip(err)
	}
	defer f.Close()
	j.file = f
	if _, err := (own{}).run(ctx, j, func(int64, int64) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
