package probing

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"thru/internal/bus"
	"thru/internal/watch/record"
)

func sample(id string) record.Sample { return record.Sample{ID: id, State: record.Up} }

// fetchAll fetches all samples as a client does, and returns their ids.
func fetchAll(s *spool) (ids []string) {
	for {
		all, more := s.first()
		for _, x := range all {
			ids = append(ids, x.Sample.ID)
			s.drop(x.Number)
		}
		if !more {
			return ids
		}
	}
}

func open(t *testing.T, dir string) *spool {
	t.Helper()
	s, err := openSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// TestSpool: in memory and on the disk, samples come in order and stay until they are acknowledged.
func TestSpool(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		s := open(t, dir)
		for _, id := range []string{"a", "b", "c"} {
			s.add(sample(id))
		}
		first, more := s.first()
		if len(first) != 3 || more || first[0].Number >= first[1].Number {
			t.Fatalf("%+v, %v", first, more)
		}
		s.drop(first[0].Number)
		s.drop(first[2].Number + 1) // nobody has seen it
		s.add(sample("d"))
		if got := fetchAll(s); !slices.Equal(got, []string{"b", "c", "d"}) {
			t.Errorf("%q: %v", dir, got)
		}
		if rest, _ := s.first(); len(rest) != 0 {
			t.Errorf("%q: %+v is still there", dir, rest)
		}
	}
}

// TestPages: many samples come in pages, and a spool that is opened again, also after a crash, has what was not acknowledged.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var want []string
	for i := range 2*pageSamples + 10 {
		id := strings.Repeat("x", i%7) + string(rune('a'+i%26))
		want = append(want, id)
		s.add(sample(id))
	}
	first, more := s.first()
	if len(first) != pageSamples || !more {
		t.Fatalf("%d samples, more: %v", len(first), more)
	}
	s.drop(first[len(first)-1].Number)
	f, err := os.OpenFile(filepath.Join(dir, openPage), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"number":`) // the crash comes here
	f.Close()
	s = open(t, dir)
	s.add(sample("after"))
	got := fetchAll(s)
	if !slices.Equal(got, append(want[pageSamples:], "after")) {
		t.Errorf("%d samples", len(got))
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 1 {
		t.Errorf("%v", left)
	}
}

// TestBounds: the oldest samples go first, and they are counted.
func TestBounds(t *testing.T) {
	s := open(t, "")
	for range mostMemory + 5 {
		s.add(sample("x"))
	}
	if s.dropped != 5 || len(s.open) != mostMemory {
		t.Errorf("%d dropped, %d left", s.dropped, len(s.open))
	}
	dir := t.TempDir()
	s = open(t, dir)
	for range pageSamples {
		s.add(sample("x"))
	}
	s.pages[0].bytes = mostBytes // as if it were so large
	for range pageSamples {
		s.add(sample("y"))
	}
	if got := fetchAll(s); s.dropped != pageSamples || len(got) != pageSamples || got[0] != "y" {
		t.Errorf("%d dropped, %d left", s.dropped, len(got))
	}
}

// TestDamaged: a page that cannot be read is lost, and nothing else.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for range pageSamples {
		s.add(sample("x"))
	}
	s.add(sample("y"))
	if err := os.WriteFile(s.nameOf(s.pages[0]), []byte("noise"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if got := fetchAll(s); !slices.Equal(got, []string{"y"}) || s.dropped != pageSamples {
		t.Errorf("%v, %d dropped", got, s.dropped)
	}
}

func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"number":1,"sample":{"id":"a"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, x := range parsePage(b) {
			_ = bus.Numbered(x)
		}
	})
}
