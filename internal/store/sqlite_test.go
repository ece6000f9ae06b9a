//go:build linux || darwin || freebsd || windows

package store_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
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

// raw opens the file as a database, without the store.
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
	contract{
		Hours: store.Hours,
		Open: func(t *testing.T) store.Store {
			path = filepath.Join(t.TempDir(), "a#b%20 c", "results.db")
			return open(t, path)
		},
		Again: func(t *testing.T) store.Store { return open(t, path) },
	}.run(t)
}

// Stored results are there when the file is opened again, and no other file remains.
func TestAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "share", "thru", "results.db")
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ids := putMany(t, s, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("other files: %v, %v", files, err)
	}
	if runtime.GOOS != "windows" { // which has no file modes
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
			same(t, doc, document(i))
		}
		if _, err := s.Put(context.Background(), document(99), ""); (err != nil) != o.ReadOnly {
			t.Errorf("Put with %+v: %v", o, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMakesNothing(t *testing.T) {
	for _, o := range []store.Options{{ReadOnly: true}, {Existing: true}} {
		dir := filepath.Join(t.TempDir(), "thru")
		if _, err := store.Open(filepath.Join(dir, "results.db"), o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: the folder: %v", o, err)
		}
		empty := filepath.Join(t.TempDir(), "results.db")
		write(t, empty, "")
		if _, err := store.Open(empty, o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v of an empty file: %v", o, err)
		}
	}
	path := filepath.Join(t.TempDir(), "results.db")
	fill(t, path, 3)
	s, err := store.Open(path, store.Options{Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Prune(context.Background(), store.Retention{Count: 1}); n != 2 || err != nil {
		t.Errorf("Prune of what is there: %d, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A database of another program with the log of a crash: neither file changes.
func TestForeignLog(t *testing.T) {
	for _, statement := range []string{"CREATE TABLE bookmarks (url TEXT)", "PRAGMA application_id=7", "PRAGMA user_version=3"} {
		dir := t.TempDir()
		db := raw(t, filepath.Join(dir, "its.db"))
		db.SetMaxOpenConns(1)
		execute(t, db, "PRAGMA journal_mode=wal")
		execute(t, db, statement)
		path := filepath.Join(dir, "left.db")
		before := map[string][32]byte{}
		for _, end := range []string{"", "-wal"} { // copied while the database is open
			b, err := os.ReadFile(filepath.Join(dir, "its.db"+end))
			if err != nil || len(b) == 0 {
				t.Fatalf("%s: %d bytes, %v", end, len(b), err)
			}
			write(t, path+end, string(b))
			before[end] = sum(t, path+end)
		}
		for _, o := range []store.Options{{}, {ReadOnly: true}, {Existing: true}} {
			if s, err := store.Open(path, o); err == nil {
				s.Close()
				t.Errorf("%s: opened with %+v", statement, o)
			} else if !strings.Contains(err.Error(), "of another program") {
				t.Errorf("%s: %v", statement, err)
			}
			for end, want := range before {
				if sum(t, path+end) != want {
					t.Errorf("%s: %q was changed with %+v", statement, end, o)
				}
			}
		}
	}
}

// A process that ended while it created a store leaves an empty database: the next one creates the store.
func TestHalfMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	execute(t, raw(t, path), "PRAGMA auto_vacuum=incremental")
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Fatalf("%v, %v: want a page", info, err)
	}
	fill(t, path, 2)
	check(t, path, 2)
}

// A store with the log of a crash opens as usual.
func TestOwnLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "its.db"))
	putMany(t, s, 3)
	path := filepath.Join(dir, "left.db")
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, "its.db"+end))
		if err != nil {
			t.Fatal(err)
		}
		write(t, path+end, string(b))
	}
	if all, err := open(t, path).Stats(context.Background()); err != nil || all.Count != 3 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A store of foreign origin: objects in place of its tables are not read.
func TestStrangeTables(t *testing.T) {
	const endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT n, 'x' AS id, '{}' AS entry FROM r WHERE n < 0"
	for name, statements := range map[string][]string{
		"a view":         {"DROP TABLE results", "CREATE VIEW results AS " + endless},
		"a view beside":  {"CREATE VIEW more AS " + endless},
		"a trigger":      {"CREATE TRIGGER more AFTER INSERT ON results BEGIN DELETE FROM results; END"},
		"a column":       {"ALTER TABLE results ADD COLUMN more"},
		"no marks":       {"DROP TABLE marks"},
		"another index":  {"DROP INDEX results_by_plan", "CREATE INDEX results_by_plan ON results (words)"},
		"an index more":  {"CREATE INDEX more ON results (words)"},
		"nothing at all": {"DROP TABLE marks", "DROP TABLE documents", "DROP TABLE results"},
	} {
		path := filepath.Join(t.TempDir(), "results.db")
		fill(t, path, 1)
		for _, x := range statements {
			execute(t, raw(t, path), x)
		}
		for _, o := range []store.Options{{}, {ReadOnly: true}} {
			if s, err := store.Open(path, o); err == nil {
				s.Close()
				t.Errorf("%s: opened with %+v", name, o)
			} else if !strings.Contains(err.Error(), "not a store of thru") || fault.Hint(err) == "" {
				t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
			}
		}
	}
	path := filepath.Join(t.TempDir(), "results.db")
	fill(t, path, 1)
	execute(t, raw(t, path), "CREATE TABLE notes (a)")
	execute(t, raw(t, path), "ANALYZE")
	check(t, path, 1)
	open(t, path)
}

// An entry is what Put makes, or the store is damaged.
func TestForgedEntries(t *testing.T) {
	for name, c := range map[string]struct{ set, says string }{
		"id":            {`id = 'x' || char(27) || '[31m'`, "is not an id"},
		"another id":    {`entry = json_set(entry, '$.id', '20261122-201530-ffff')`, "the entry of"},
		"verdict":       {`entry = json_set(entry, '$.verdict', 'pass' || char(10))`, "the verdict of"},
		"year":          {`entry = json_set(entry, '$.started_at', '9999-12-31T23:59:59-12:00')`, "year 10000"},
		"no time":       {`entry = json_set(entry, '$.started_at', 'x')`, "damaged"},
		"escape, 1 MB":  {`entry = json_set(entry, '$.title', char(27) || printf('%1000000s', 'x'), '$.plan', char(27), '$.error', char(27), '$.thru_version', char(27), '$.command', char(27))`, ""},
		"labels, hosts": {`entry = json_set(entry, '$.labels', json_object(char(27), char(27)), '$.hosts', json_array(char(27)), '$.pairs', json_array(char(27)))`, ""},
	} {
		path := filepath.Join(t.TempDir(), "results.db")
		fill(t, path, 1)
		execute(t, raw(t, path), "UPDATE results SET "+c.set)
		s := open(t, path)
		found, _, err := s.Find(context.Background(), store.Filter{})
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.ContainsAny(err.Error(), "\x1b\n") || fault.Hint(err) == "" {
				t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
			}
			if n, err := store.Export(context.Background(), io.Discard, s, store.Filter{Limit: -1}); err == nil {
				t.Errorf("%s: %d exported", name, n)
			}
			continue
		}
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", name, found, err)
		}
		if text := fmt.Sprint(found); strings.Contains(text, "\x1b") || len(text) > 5000 {
			t.Errorf("%s: %d bytes, %.80q", name, len(text), text)
		}
	}
}

// Files that are not a store, or one of another version: the error says so with a hint,
// and the files do not change.
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
		{"text", "not a store of thru", "--store", nil, func(t *testing.T, path string) {
			write(t, path, strings.Repeat("these are somebody's notes\n", 300))
		}},
		{"short text", "not a store of thru", "--store", nil, func(t *testing.T, path string) { write(t, path, "notes") }},
		{"another database", "of another program", "--store", nil, func(t *testing.T, path string) {
			execute(t, raw(t, path), "CREATE TABLE bookmarks (url TEXT)")
		}},
		{"another application", "of another program", "--store", nil, func(t *testing.T, path string) {
			execute(t, raw(t, path), "PRAGMA application_id=7")
		}},
		{"damaged head", "not a store of thru", "--store", nil, func(t *testing.T, path string) {
			fill(t, path, 3)
			overwrite(t, path, 0, 64)
		}},
		{"damaged", "is damaged", "move the file away", nil, func(t *testing.T, path string) {
			fill(t, path, 3)
			overwrite(t, path, 100, 1<<20)
		}},
		{"cut off", "is damaged", "move the file away", nil, func(t *testing.T, path string) {
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

// Damaged documents in an otherwise intact file.
func TestDamagedDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	ids := fill(t, path, 3)
	execute(t, raw(t, path), "UPDATE documents SET zstd = x'00112233' WHERE result = 1")
	execute(t, raw(t, path), "UPDATE results SET entry = '{' WHERE n = 2")
	s := open(t, path)
	if _, err := s.Get(context.Background(), ids[0]); err == nil || !strings.Contains(fault.Hint(err), "move the file away") {
		t.Errorf("Get: %v, hint %q", err, fault.Hint(err))
	}
	if _, err := s.Entry(context.Background(), ids[1]); err == nil || !strings.Contains(fault.Hint(err), "move the file away") {
		t.Errorf("Entry: %v, hint %q", err, fault.Hint(err))
	}
	if _, err := s.Get(context.Background(), ids[2]); err != nil {
		t.Errorf("the next document: %v", err)
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

// Many processes open a store at once that does not exist yet.
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
			if _, err := s.Put(context.Background(), document(i), ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check(t, path, 12)
}

// While another process locks the file, a write waits for it, up to its limit.
func TestHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	holder := raw(t, path)
	holder.SetMaxOpenConns(1)
	execute(t, holder, "BEGIN IMMEDIATE")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, document(1), ""); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fault.Hint(err), "end that process") {
		t.Errorf("Put while it is held: %v, hint %q", err, fault.Hint(err))
	}
	if _, _, err := s.Find(context.Background(), store.Filter{}); err != nil {
		t.Errorf("Find while it is held: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := s.Put(context.Background(), document(2), "")
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
	return putMany(t, s, n)
}

// check fails where a file is damaged, or has not n results (-1: any number).
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

// overwrite overwrites a part of a file, at most to its end.
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
