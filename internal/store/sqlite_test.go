//go:build linux || darwin || freebsd || windows

package store_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/fault"
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

// raw opens the file as a database, past the store.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestSQLite(t *testing.T) {
	path := ""
	storetest.Run(t, storetest.Suite{
		Open: func(t *testing.T) store.Store {
			path = filepath.Join(t.TempDir(), "a#b%20 c", "results.db")
			return open(t, path)
		},
		Again: func(t *testing.T) store.Store { return open(t, path) },
	})
}

// What was kept is there when it is opened again, and nothing lies beside it.
func TestAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "share", "thru", "results.db")
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids := storetest.Fill(t, s, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("beside it: %v, %v", files, err)
	}
	if runtime.GOOS != "windows" { // which has no such modes
		for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
			}
		}
	}
	for _, o := range []store.Options{{}, {ReadOnly: true}} {
		s, err := store.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			doc, err := s.Get(context.Background(), id)
			if err != nil {
				t.Fatal(err)
			}
			storetest.Same(t, doc, storetest.Document(i))
		}
		if _, err := s.Put(context.Background(), storetest.Document(99), ""); (err != nil) != o.ReadOnly {
			t.Errorf("Put with %+v: %v", o, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReadOnlyMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "thru")
	if _, err := store.Open(filepath.Join(dir, "results.db"), store.Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

// Files that are no store, or not this version's: the error says so with a hint,
// and not a byte of them changes.
func TestRefused(t *testing.T) {
	cases := []struct {
		name, says, hint string
		is               error
		make             func(t *testing.T, path string)
	}{
		{"newer", "its version is 99", "newer thru", store.ErrNewer, func(t *testing.T, path string) {
			fill(t, path, 3)
			execute(t, raw(t, path), "PRAGMA user_version=99")
		}},
		{"text", "no store of thru", "--store", nil, func(t *testing.T, path string) {
			write(t, path, strings.Repeat("these are somebody's notes\n", 300))
		}},
		{"short text", "no store of thru", "--store", nil, func(t *testing.T, path string) { write(t, path, "notes") }},
		{"another database", "of another program", "--store", nil, func(t *testing.T, path string) {
			execute(t, raw(t, path), "CREATE TABLE bookmarks (url TEXT)")
		}},
		{"another application", "of another program", "--store", nil, func(t *testing.T, path string) {
			execute(t, raw(t, path), "PRAGMA application_id=7")
		}},
		{"damaged head", "no store of thru", "--store", nil, func(t *testing.T, path string) {
			fill(t, path, 3)
			overwrite(t, path, 0, 64)
		}},
		{"damaged", "is damaged", "move it away", nil, func(t *testing.T, path string) {
			fill(t, path, 3)
			overwrite(t, path, 100, 1<<20)
		}},
		{"cut off", "is damaged", "move it away", nil, func(t *testing.T, path string) {
			fill(t, path, 30)
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results.db")
			c.make(t, path)
			before := sum(t, path)
			s, err := store.Open(path, store.Options{})
			if err == nil {
				_, _, err = s.Find(context.Background(), store.Filter{Text: "x"})
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) || !strings.Contains(fault.Hint(err), c.hint) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v\nhint %s", err, fault.Hint(err))
			}
			if sum(t, path) != before {
				t.Error("the file was changed")
			}
		})
	}
}

// Documents that are damaged in a file that is whole otherwise.
func TestDamagedDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	ids := fill(t, path, 3)
	execute(t, raw(t, path), "UPDATE documents SET zstd = x'00112233' WHERE result = 1")
	execute(t, raw(t, path), "UPDATE results SET entry = '{' WHERE n = 2")
	s := open(t, path)
	if _, err := s.Get(context.Background(), ids[0]); err == nil || !strings.Contains(fault.Hint(err), "move it away") {
		t.Errorf("Get: %v, hint %q", err, fault.Hint(err))
	}
	if _, err := s.Entry(context.Background(), ids[1]); err == nil || !strings.Contains(fault.Hint(err), "move it away") {
		t.Errorf("Entry: %v, hint %q", err, fault.Hint(err))
	}
	if _, err := s.Get(context.Background(), ids[2]); err != nil {
		t.Errorf("the one beside it: %v", err)
	}
}

func TestNoPlace(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	for _, path := range []string{dir, filepath.Join(dir, "file", "results.db"), filepath.Join(dir, "nul\x00")} {
		if s, err := store.Open(path, store.Options{}); err == nil {
			s.Close()
			t.Errorf("%q was opened", path)
		} else if fault.Hint(err) == "" {
			t.Errorf("%q: no hint with: %v", path, err)
		}
	}
}

// Many open a store at once that is not there yet.
func TestFirstAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			s, err := store.Open(path, store.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := s.Put(context.Background(), storetest.Document(i), ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check(t, path, 12)
}

// Another process holds the file: writing waits for it, and no longer than it may.
func TestHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	holder := raw(t, path)
	holder.SetMaxOpenConns(1)
	execute(t, holder, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, storetest.Document(1), ""); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fault.Hint(err), "end that process") {
		t.Errorf("Put while it is held: %v, hint %q", err, fault.Hint(err))
	}
	if _, _, err := s.Find(context.Background(), store.Filter{}); err != nil {
		t.Errorf("Find while it is held: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := s.Put(context.Background(), storetest.Document(2), "")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("Put has not waited: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	execute(t, holder, "COMMIT")
	if err := <-done; err != nil {
		t.Error(err)
	}
	check(t, path, 1)
}

// fill makes a store of n results, and returns their ids.
func fill(t *testing.T, path string, n int) []string {
	t.Helper()
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return storetest.Fill(t, s, n)
}

// check fails where a file is not whole, or has not n results (-1: any number).
func check(t testing.TB, path string, n int) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	one := func(question string) (answer string) {
		t.Helper()
		if err := db.QueryRow(question).Scan(&answer); err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		return answer
	}
	if got := one("PRAGMA integrity_check"); got != "ok" {
		t.Errorf("integrity: %s", got)
	}
	half := one("SELECT (SELECT count(*) FROM results WHERE n NOT IN (SELECT result FROM documents)) || (SELECT count(*) FROM results WHERE n NOT IN (SELECT result FROM marks))" +
		" || (SELECT count(*) FROM documents WHERE result NOT IN (SELECT n FROM results)) || (SELECT count(*) FROM marks WHERE result NOT IN (SELECT n FROM results))")
	if half != "0000" {
		t.Errorf("results without a document, without marks, documents without a result, marks without: %s", half)
	}
	var got int
	if err := db.QueryRow("SELECT count(*) FROM results").Scan(&got); err != nil || n >= 0 && got != n {
		t.Errorf("%d results, want %d: %v", got, n, err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// overwrite spoils a part of a file, to its end at most.
func overwrite(t *testing.T, path string, from, to int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < min(to, len(b)); i++ {
		b[i] = byte(i*7 + 3)
	}
	write(t, path, string(b))
}

func sum(t *testing.T, path string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}
