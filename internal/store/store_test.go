//go:build linux || darwin || freebsd || windows

package store_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/fault"
	"thru/internal/store"
)

// TestMain also runs the child process of a test.
func TestMain(m *testing.M) {
	if path := os.Getenv(childOf); path != "" {
		os.Exit(child(path))
	}
	goleak.VerifyTestMain(m)
}

// Results of earlier versions can be stored unchanged.
func TestRecorded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "results.db"))
	for _, name := range []string{"first", "first-loopback", "datagrams", "iperf", "gates"} {
		text, err := os.ReadFile("../cause/testdata/versions/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		done, err := store.Import(context.Background(), strings.NewReader(strings.ReplaceAll(string(text), "\n", " ")), s, nil)
		if err != nil || done.Kept != 1 {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
	}
	found, _, err := s.Find(context.Background(), store.Filter{})
	if err != nil || len(found) != 5 {
		t.Fatalf("%d found, %v", len(found), err)
	}
	for _, e := range found {
		doc, err := s.Get(context.Background(), e.ID)
		if err != nil {
			t.Fatal(err)
		}
		if id := put(t, s, doc, ""); id != e.ID {
			t.Errorf("%s kept again is %s", e.ID, id)
		}
		if len(e.Hosts) == 0 || len(e.Pairs) == 0 || e.Thru == "" {
			t.Errorf("entry %+v", e)
		}
	}
}

// Whatever a file holds, what is imported from it is exported unchanged.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"schema":"thru.result/1","started_at":"2026-11-22T20:15:30+01:00","labels":{"a":"b"},"cells":[{"from":"a","to":"b","goodput_bps":{"value":-0}}]}`))
	f.Add([]byte("{\"title\":\"x\\n\xff\",\"document\":{\"schema\":\"thru.result/1\",\"error\":{\"message\":\"\\ud800\"},\"end_points\":[{\"name\":\"\xff\"}]}}\n\n[1,2]\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ctx, dir := context.Background(), t.TempDir()
		first, second := open(t, filepath.Join(dir, "first.db")), open(t, filepath.Join(dir, "second.db"))
		done, err := store.Import(ctx, bytes.NewReader(text), first, nil)
		if all, _ := first.Stats(ctx); fault.Hint(err) != "" && all.Count == 0 && done.Kept == 0 {
			return // no JSON lines
		}
		if err != nil {
			t.Fatal(err)
		}
		var out, again bytes.Buffer
		n, err := store.Export(ctx, &out, first, store.Filter{})
		if err != nil || n > done.Kept || (n == 0) != (done.Kept == 0) {
			t.Fatalf("%d lines of %+v: %v", n, done, err)
		}
		if done, err := store.Import(ctx, bytes.NewReader(out.Bytes()), second, nil); err != nil || done.Kept != n || done.Bad != 0 {
			t.Fatalf("%+v of %d lines: %v", done, n, err)
		}
		if _, err := store.Export(ctx, &again, second, store.Filter{}); err != nil {
			t.Fatal(err)
		}
		if a, b := timeless(out.String()), timeless(again.String()); a != b {
			t.Fatalf("exported:\n%s\nexported, imported, exported:\n%s", a, b)
		}
	})
}

// timeless removes the times at which a store received its results.
func timeless(lines string) string {
	var b strings.Builder
	for l := range strings.Lines(lines) {
		head, rest, _ := strings.Cut(l, `,"kept_at":"`)
		_, rest, _ = strings.Cut(rest, `"`)
		b.WriteString(head + rest)
	}
	return b.String()
}
