//go:build linux || darwin || freebsd || windows

package store_test

import (
	"path/filepath"
	"testing"

	"thru/internal/store"
	"thru/internal/store/storetest"
)

// open opens a store and closes it with the test.
func open(t testing.TB, path string) store.Store {
	t.Helper()
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSQLite(t *testing.T) {
	file := func(t *testing.T) string { return filepath.Join(t.TempDir(), "a?b#c%20 d", "results.db") }
	t.Run("", func(t *testing.T) {
		path := ""
		storetest.Run(t, storetest.Suite{
			Open:  func(t *testing.T) store.Store { path = file(t); return open(t, path) },
			Again: func(t *testing.T) store.Store { return open(t, path) },
		})
	})
}
