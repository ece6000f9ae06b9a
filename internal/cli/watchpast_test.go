//go:build linux || darwin || freebsd || windows

package cli

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"thru/internal/library"
	"thru/internal/store"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// A watch begins with what can be read of its samples.
func TestPastDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	pair := record.Pair{From: "a", To: "b"}
	archive := library.Archive{Path: path}
	log, err := archive.WatchLog()
	if err != nil {
		t.Fatal(err)
	}
	var all []record.Sample
	for i := range 24 {
		all = append(all, record.Sample{Pair: pair, Layer: record.Probe, Begin: time.Now().Add(time.Duration(i-24) * time.Hour), State: record.Up})
	}
	if err := log.Keep(all); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE packs SET zstd = x'00' WHERE n = (SELECT min(n) FROM packs)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	read, warned := 0, 0
	for _, err := range past(t.Context(), log, []schedule.Path{{Pair: pair}}, func(err error) {
		if !errors.Is(err, store.ErrDamaged) {
			t.Error(err)
		}
		warned++
	}) {
		if err != nil {
			t.Fatal(err)
		}
		read++
	}
	if read != 23 || warned != 1 {
		t.Errorf("%d samples and %d warnings", read, warned)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}
