//go:build linux || darwin || freebsd || windows

package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/store"
	"thru/internal/watch/record"
)

// used returns how many bytes of a file are in use.
func used(t testing.TB, path string) (bytes int) {
	t.Helper()
	const pages = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
	if err := raw(t, path).QueryRow(pages).Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// An hour of a pair takes at most 1 kB, with all layers, its summary, and the tables and indexes of the file.
func TestSampleSize(t *testing.T) {
	const pairs, of = 8, 24
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	empty := used(t, path)
	for h := range of {
		for p := range pairs {
			var all []record.Sample
			for m := range 60 {
				all = append(all, sampled(p, h*60+m)...)
			}
			putSamples(t, s, all...)
		}
	}
	open := used(t, path)
	putSamples(t, s, sampled(0, of*60+10)...)
	packed := used(t, path)
	if err := s.PruneSamples(within(t), midnight().Add((of+1)*time.Hour), 1, 0); err != nil {
		t.Fatal(err)
	}
	hourly := used(t, path)
	per := (packed - empty) / pairs / of
	t.Logf("bytes for each pair and hour: %d, of them %d for years; %d more for each pair whose hour is open", per, (hourly-empty)/pairs/of, (open-packed)/pairs)
	if per > 1000 {
		t.Errorf("%d bytes for each pair and hour, want 1000 at most", per)
	}
}

// Samples and their indexes count neither for the size that results may have, nor are they pruned with them.
func TestPruneBesideSamples(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "results.db"))
	putMany(t, s, 5)
	results, err := s.Stats(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for p := range 40 {
		putMinutes(t, s, p, 0, 10)
	}
	for i := range 20 { // the index has the names too
		x := sampled(1, i)[0]
		x.From, x.Error = noise(i, 5_000), noise(i, 50_000)
		putSamples(t, s, x)
	}
	if n, err := s.Prune(within(t), store.Retention{Bytes: results.Bytes + 10_000}); n != 0 || err != nil {
		t.Errorf("%d results are removed for the size of samples, %v", n, err)
	}
	if got := samples(t, s, store.SampleFilter{Layer: record.Probe}); len(got) != 420 {
		t.Errorf("%d samples are left", len(got))
	}
}

// Samples that cannot be read do not keep others out.
func TestDamagedPack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	putMinutes(t, s, 1, 0, 200)
	execute(t, raw(t, path), "UPDATE packs SET zstd = x'00112233' WHERE n = (SELECT min(p.n) FROM packs AS p JOIN series AS s ON s.n = series WHERE layer = 'probe')")
	failed, read := 0, 0
	for _, err := range s.Samples(within(t), store.SampleFilter{}) {
		if err == nil {
			read++
		} else {
			failed++
			if !strings.Contains(err.Error(), "damaged") || fault.Hint(err) == "" {
				t.Errorf("error %v, hint %q", err, fault.Hint(err))
			}
		}
	}
	if failed != 1 || read < 140 {
		t.Errorf("%d errors beside %d samples", failed, read)
	}
	if got := samples(t, s, store.SampleFilter{From: midnight().Add(time.Hour)}); len(got) == 0 {
		t.Error("later hours have no samples")
	}
	late := sampled(1, 5)[0]
	if err := s.PutSamples(within(t), append(sampled(1, 200), late)); !errors.Is(err, store.ErrPartly) || fault.Hint(err) == "" {
		t.Errorf("a late sample of that hour: %v", err)
	}
	if got := samples(t, s, store.SampleFilter{Layer: record.Probe, To: midnight().Add(time.Hour)}); len(got) != 1 {
		t.Errorf("the damaged hour has %d samples", len(got))
	}
	putMinutes(t, s, 1, 201, 430)
	damage := func(table string) {
		execute(t, raw(t, path), "UPDATE "+table+" SET zstd = x'00112233' WHERE n = (SELECT min(n) FROM "+table+")")
	}
	prune := func(age time.Duration) error {
		return s.PruneSamples(within(t), midnight().Add(8*time.Hour), age, 0)
	}
	damage("packs")
	if err := prune(6 * time.Hour); !errors.Is(err, store.ErrDamaged) || fault.Hint(err) == "" {
		t.Errorf("pruning a damaged pack: %v", err)
	}
	if n := len(store.Hours(t, s)); n == 0 {
		t.Error("beside a damaged pack nothing is summed up")
	}
	damage("hours")
	if err := prune(5 * time.Hour); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("damaged hours: %v", err)
	}
	if err := prune(time.Hour); err != nil {
		t.Error(err)
	}
	if got := samples(t, s, store.SampleFilter{Layer: record.Probe}); len(got) != 10 {
		t.Errorf("%d samples are left", len(got))
	}
}

// While another process locks the file, samples can be read.
func TestSamplesHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	putMinutes(t, s, 1, 0, 100)
	holder := raw(t, path)
	holder.SetMaxOpenConns(1)
	execute(t, holder, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.PutSamples(ctx, sampled(1, 100)); err == nil || !strings.Contains(fault.Hint(err), "end that process") {
		t.Errorf("PutSamples: %v, hint %q", err, fault.Hint(err))
	}
	if got := samples(t, s, store.SampleFilter{Layer: record.Probe}); len(got) != 100 {
		t.Errorf("%d samples", len(got))
	}
	execute(t, holder, "COMMIT")
	putSamples(t, s, sampled(1, 100)...)
}

// 500 pairs with a sample a minute, as a watch stores them.
func BenchmarkPutSamples(b *testing.B) {
	const pairs = 500
	s := open(b, filepath.Join(b.TempDir(), "results.db"))
	m := 0
	for b.Loop() {
		var all []record.Sample
		for p := range pairs {
			all = append(all, sampled(p, m)...)
		}
		putSamples(b, s, all...)
		m++
	}
}
