//go:build linux || darwin || freebsd || windows

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/watch/record"
)

// file opens a store with one connection, so that its settings persist.
func file(t testing.TB) *database {
	t.Helper()
	s, err := open(filepath.Join(t.TempDir(), "results.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.DB.SetMaxOpenConns(1)
	return s
}

func (s *database) set(t testing.TB, pragma string) (value string) {
	t.Helper()
	if err := s.DB.QueryRow("PRAGMA " + pragma).Scan(&value); err != nil && !strings.Contains(err.Error(), "no rows") {
		t.Fatalf("PRAGMA %s: %v", pragma, err)
	}
	return value
}

func TestSettings(t *testing.T) {
	s := file(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "3", "foreign_keys": "1", "auto_vacuum": "2", "application_id": fmt.Sprint(0x74687275), "user_version": fmt.Sprint(len(steps))} {
		if got := s.set(t, pragma); got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

// On a network file system the file has the rollback journal; moved to a local disk it has
// the write-ahead log again.
func TestJournal(t *testing.T) {
	s := file(t)
	ctx := context.Background()
	for i, c := range []struct {
		shared bool
		want   string
	}{{true, "delete"}, {true, "delete"}, {false, "wal"}, {true, "delete"}} {
		if err := s.journal(ctx, c.shared); err != nil {
			t.Fatal(err)
		}
		if got := s.set(t, "journal_mode"); got != c.want {
			t.Errorf("%d: journal %s, want %s", i, got, c.want)
		}
		id, err := s.Put(ctx, noisy(uint64(i), 50_000), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, id); err != nil {
			t.Error(err)
		}
		if n, err := s.Prune(ctx, Retention{Count: 1}); err != nil || n != min(i, 1) {
			t.Errorf("%d: %d pruned, %v", i, n, err)
		}
	}
}

// A failed step leaves the store at its version.
func TestMigrate(t *testing.T) {
	s := file(t)
	ctx := context.Background()
	if _, err := s.Put(ctx, &measure.Document{}, "before"); err != nil {
		t.Fatal(err)
	}
	next := append(steps[:len(steps):len(steps)], "ALTER TABLE results ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'")
	bad := append(next[:len(next):len(next)], "CREATE TABLE more (a); INSERT INTO nowhere VALUES (1)")
	if err := migrate(ctx, s.DB, bad); err == nil {
		t.Fatal("no error")
	}
	if got := s.set(t, "user_version"); got != fmt.Sprint(len(steps)) {
		t.Errorf("version %s after a step that failed", got)
	}
	var n int
	if err := s.DB.QueryRow("SELECT count(*) FROM pragma_table_info('results') WHERE name = 'colour'").Scan(&n); err != nil || n != 0 {
		t.Errorf("a step before it was taken: %d, %v", n, err)
	}
	for range 2 { // the second time there is nothing to do
		if err := migrate(ctx, s.DB, next); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DB.QueryRow("SELECT count(*) FROM results WHERE colour = 'grey'").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d results, %v", n, err)
	}
}

// A store of an earlier version is read as it is, and brought to this one when something is written.
func TestEarlierVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	ctx := context.Background()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(migrate(ctx, db, steps[:1]), db.Close()); err != nil {
		t.Fatal(err)
	}
	x := record.Sample{Pair: record.Pair{From: "a", To: "b"}, Layer: record.Probe, Begin: time.Unix(1_780_000_000, 0), State: record.Up}
	for _, o := range []Options{{ReadOnly: true}, {}, {ReadOnly: true}} {
		s, err := open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		had := s.version
		if _, _, err := s.Find(ctx, Filter{}); err != nil {
			t.Errorf("version %d: %v", had, err)
		}
		n := 0
		for _, err := range s.Samples(ctx, SampleFilter{}) {
			n++
			if err != nil {
				t.Errorf("version %d: %v", had, err)
			}
		}
		if days, err := s.Days(ctx, SampleFilter{}); days != nil || err != nil {
			t.Errorf("version %d has days: %v, %v", had, days, err)
		}
		if err := s.PutSamples(ctx, []record.Sample{x}); (err == nil) == o.ReadOnly || had == 1 && n != 0 {
			t.Errorf("version %d, %d samples, %+v: %v", had, n, o, err)
		}
		if got := s.set(t, "user_version"); got != fmt.Sprint(had) {
			t.Errorf("version %s, opened as %d", got, had)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A pack of foreign origin is what newPack makes, or the store is damaged.
func TestStrangePack(t *testing.T) {
	for _, text := range []string{
		`{"which":[0],"rest":[{}]}`, `{"which":[1],"rest":[{}],"values":{"begin_ms":[1]}}`, `{"which":[-1],"rest":[{}],"values":{"begin_ms":[1]}}`,
		`{"which":[0],"rest":[7],"values":{"begin_ms":[1]}}`, `{"which":[0],"rest":[{}],"values":{"begin_ms":[1],"x":[]}}`, `{"values":{"begin_ms":[1e30]}}`, `[]`,
	} {
		s := file(t)
		if _, err := s.unpack(s.zipPack.EncodeAll([]byte(text), nil), series{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A read of a file ends, whatever its content.
func TestEndless(t *testing.T) {
	s := file(t)
	s.readTime = 50 * time.Millisecond
	if _, err := s.Put(context.Background(), noisy(1, 100), ""); err != nil {
		t.Fatal(err)
	}
	s.set(t, "foreign_keys=off") // the document stays
	if _, err := s.DB.Exec("DROP TABLE results; CREATE VIEW results AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT n, n || '' AS id, '' AS entry, '' AS started, '' AS sha256 FROM r WHERE n < 0"); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	_, _, find := s.Find(ctx, Filter{})
	_, entry := s.Entry(ctx, "x")
	_, get := s.Get(ctx, "x")
	_, stats := s.Stats(ctx)
	for name, err := range map[string]error{"Find": find, "Entry": entry, "Get": get, "Stats": stats} {
		if !errors.Is(err, errSlow) || fault.Hint(err) == "" {
			t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := s.Find(cancelled, Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Find without time: %v", err)
	}
}

// On a full disk the stored results stay, and writing works again when there is space.
func TestFull(t *testing.T) {
	s := file(t)
	ctx := context.Background()
	if _, err := s.Put(ctx, noisy(1, 1000), ""); err != nil {
		t.Fatal(err)
	}
	x := record.Sample{Pair: record.Pair{From: "a", To: "b"}, Layer: record.Probe, Begin: time.Unix(1_780_000_000, 0), State: record.Up}
	if err := s.PutSamples(ctx, []record.Sample{x}); err != nil {
		t.Fatal(err)
	}
	s.set(t, "max_page_count=30")
	big := x
	big.Begin, big.Error = x.Begin.Add(2*time.Hour), fmt.Sprint(noisy(9, 1_000_000).Arguments)
	if err := s.PutSamples(ctx, []record.Sample{big}); err == nil || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(fault.Hint(err), "free space") {
		t.Errorf("PutSamples: error %v, hint %q", err, fault.Hint(err))
	}
	kept := 0
	for range s.Samples(ctx, SampleFilter{}) {
		kept++
	}
	if kept != 1 {
		t.Errorf("%d samples are kept", kept)
	}
	_, err := s.Put(ctx, noisy(2, 1_000_000), "")
	if err == nil || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(fault.Hint(err), "free space") {
		t.Errorf("error %v, hint %q", err, fault.Hint(err))
	}
	if all, err := s.Stats(ctx); err != nil || all.Count != 1 {
		t.Errorf("kept: %+v, %v", all, err)
	}
	s.set(t, "max_page_count=100000")
	if _, err := s.Put(ctx, noisy(2, 1_000_000), ""); err != nil {
		t.Error(err)
	}
}

// A file that cannot be written can still be read.
func TestUnwritable(t *testing.T) {
	s := file(t)
	ctx := context.Background()
	id, err := s.Put(ctx, noisy(1, 1000), "")
	if err != nil {
		t.Fatal(err)
	}
	s.set(t, "query_only=1")
	if _, err = s.Put(ctx, noisy(2, 1000), ""); err == nil || !strings.Contains(err.Error(), "cannot be written") || !strings.Contains(fault.Hint(err), "--no-store") {
		t.Errorf("error %v, hint %q", err, fault.Hint(err))
	}
	if _, err := s.Get(ctx, id); err != nil {
		t.Error(err)
	}
}

// Errors that a test cannot cause: the codes are SQLite's for a failing disk or network
// file system (sqlite.org/rescode.html).
func TestTroubles(t *testing.T) {
	for _, c := range []struct {
		code       int
		says, hint string
	}{
		{sqlite3.SQLITE_IOERR_LOCK, "file locks", "on a local disk"}, // NFS without its lock service
		{sqlite3.SQLITE_IOERR_RDLOCK, "file locks", "on a local disk"},
		{sqlite3.SQLITE_PROTOCOL, "file locks", "on a local disk"},
		{sqlite3.SQLITE_IOERR_SHMMAP, "file locks", "on a local disk"},
		{sqlite3.SQLITE_IOERR_SHMSIZE, "disk is full", "free space"},
		{sqlite3.SQLITE_IOERR_FSYNC, "the disk or its file system fails", "dmesg"},
		{sqlite3.SQLITE_BUSY_SNAPSHOT, "another process", "end that process"},
		{sqlite3.SQLITE_READONLY_DBMOVED, "cannot be written", "--no-store"},
		{sqlite3.SQLITE_CORRUPT_INDEX, "damaged", "history import"},
		{0, "", ""},
	} {
		if got := troubleOfCode(c.code); !strings.Contains(got.says, c.says) || !strings.Contains(got.hint, c.hint) || (c.says == "") != (got.says == "") {
			t.Errorf("%d: %+v, want %q and %q", c.code, got, c.says, c.hint)
		}
	}
}

// noisy returns a document of about that compressed size.
func noisy(seed uint64, bytes int) *measure.Document {
	r := rand.New(rand.NewPCG(3, seed))
	doc := &measure.Document{Command: "test", StartedAt: time.Date(2026, 1, 1, 0, 0, int(seed), 0, time.UTC)}
	for size := 0; size < bytes; size += 12 {
		doc.Arguments = append(doc.Arguments, fmt.Sprintf("%x", r.Uint64()))
	}
	return doc
}

// searched returns a store of 10,000 results, made without waiting for the disk.
func searched(b *testing.B) *database {
	s := file(b)
	s.set(b, "synchronous=off")
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 10_000 {
		name, value := fmt.Sprintf("host-%03d.example.org", i%400), float64(i)*1e6
		doc := noisy(uint64(i), 2000)
		doc.StartedAt = begin.Add(time.Duration(i) * time.Minute)
		doc.Labels = map[string]string{"ticket": fmt.Sprint(i % 1000), "rack": fmt.Sprint(i % 50)}
		doc.EndPoints = []measure.EndPoint{{Name: "local", Facts: &measure.Facts{Hostname: &name}}, {Name: fmt.Sprintf("db%d", i%60)}}
		doc.Cells = []measure.Cell{
			{From: "local", To: doc.EndPoints[1].Name, Goodput: &measure.Figure{Value: value}},
			{From: doc.EndPoints[1].Name, To: "local", Goodput: &measure.Figure{Value: value}},
		}
		if _, err := s.Put(context.Background(), doc, fmt.Sprintf("%d Mb/s local -> db%d, 4 streams, %d Mb/s back: the path carries no more", i, i%60, i)); err != nil {
			b.Fatal(err)
		}
	}
	s.set(b, "synchronous=extra")
	return s
}

// Searches among 10,000 results (the promise of docs/store.md: under 100 ms).
func BenchmarkFind(b *testing.B) {
	s := searched(b)
	for _, c := range []struct {
		name string
		f    Filter
	}{
		{"newest", Filter{}},
		{"text of one", Filter{Text: "9 mb/s local -> db17"}},
		{"text of none", Filter{Text: "nobody has said this"}},
		{"host", Filter{Hosts: []string{"host-123.example.org"}}},
		{"host that all have", Filter{Hosts: []string{"local"}, Text: "nobody has said this"}},
		{"label and pair", Filter{Labels: map[string]string{"rack": "7"}, Pair: "local -> db17"}},
		{"verdict of none", Filter{Verdict: Fail}},
		{"prefix", Filter{Prefix: "20260103-0405"}},
		{"all", Filter{Limit: 10_000}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := s.Find(context.Background(), c.f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The work of a command: open a store of 10,000 results, search, close.
func BenchmarkOpen(b *testing.B) {
	s := searched(b)
	s.Close()
	for b.Loop() {
		s, err := open(s.path, Options{ReadOnly: true})
		if err == nil {
			_, _, err = s.Find(context.Background(), Filter{Text: "nobody has said this"})
		}
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// Storing a result of 100 KB, on the disk.
func BenchmarkPut(b *testing.B) {
	s, seed := file(b), uint64(0)
	for b.Loop() {
		seed++
		if _, err := s.Put(context.Background(), noisy(seed, 100_000), ""); err != nil {
			b.Fatal(err)
		}
	}
}
