package probing

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"thru/internal/bus"
	"thru/internal/watch/record"
)

func sample(id string) record.Sample { return record.Sample{ID: id, State: record.Up} }

// fill adds n samples of an id.
func (s *spool) fill(n int, id string) {
	for range n {
		s.add(sample(id))
	}
}

// fetchAll fetches all samples as a client does, and returns their ids.
func fetchAll(t *testing.T, s *spool) (ids []string) {
	for range 1000 {
		all, more := s.first()
		for _, x := range all {
			ids = append(ids, x.Sample.ID)
			s.drop(x.Number)
		}
		if !more {
			return ids
		}
	}
	t.Fatal("there are more samples for ever")
	return nil
}

// TestSpool: in memory and on the disk, samples come in order and stay until they are acknowledged.
func TestSpool(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		s := openSpool(dir)
		for _, id := range []string{"a", "b", "c"} {
			s.add(sample(id))
		}
		s.save()
		first, more := s.first()
		if len(first) != 3 || more || first[0].Number >= first[1].Number {
			t.Fatalf("%+v, %v", first, more)
		}
		s.drop(first[0].Number)
		s.drop(first[2].Number + 1) // nobody has seen it
		s.save()
		if dir != "" {
			s = openSpool(dir)
		}
		s.add(sample("d"))
		if got := fetchAll(t, s); !slices.Equal(got, []string{"b", "c", "d"}) {
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
	s := openSpool(dir)
	var want []string
	for i := range 2*pageSamples + 10 {
		id := strings.Repeat("x", i%7) + string(rune('a'+i%26))
		want = append(want, id)
		if s.add(sample(id)); i%150 == 0 {
			s.save()
		}
	}
	s.save()
	first, more := s.first()
	if len(first) != pageSamples || !more {
		t.Fatalf("%d samples, more: %v", len(first), more)
	}
	s.drop(first[len(first)-1].Number)
	s = openSpool(dir) // without an end of the one before
	s.add(sample("after"))
	if _, err := writePage(filepath.Join(dir, openPage), append(readPage(s.nameOf(s.pages[0])), s.open...)); err != nil { // as if a crash came after the page
		t.Fatal(err)
	}
	s = openSpool(dir)
	got := fetchAll(t, s)
	if !slices.Equal(got, append(want[pageSamples:], "after")) {
		t.Errorf("%d samples", len(got))
	}
	s.save()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v", left)
	}
}

// TestAcknowledged: the folder does not grow while a client fetches, though there always is a sample that it has not.
func TestAcknowledged(t *testing.T) {
	s := openSpool(t.TempDir())
	for range 3 * pageSamples {
		s.add(sample("x"))
		all, _ := s.first()
		s.add(sample("x"))
		s.drop(all[len(all)-1].Number)
	}
	s.save()
	if left := readPage(filepath.Join(s.dir, openPage)); len(left) != 1 || len(s.pages) > 0 {
		t.Errorf("%d samples and %d pages", len(left), len(s.pages))
	}
}

// TestBounds: the oldest samples go first, and they are counted.
func TestBounds(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "is", "not", "there")} {
		s := openSpool(dir)
		s.fill(mostMemory+5, "x")
		s.save()
		if s.dropped != 5 || len(s.open) != mostMemory {
			t.Errorf("%q: %d dropped, %d left", dir, s.dropped, len(s.open))
		}
	}
	s := openSpool(t.TempDir())
	s.fill(pageSamples, "x")
	s.save()
	s.pages[0].bytes = mostBytes // as if it were so large
	s.fill(pageSamples, "y")
	s.save()
	if got := fetchAll(t, s); s.dropped != pageSamples || len(got) != pageSamples || got[0] != "y" {
		t.Errorf("%d dropped, %d left", s.dropped, len(got))
	}
}

// TestDamaged: a page that cannot be read, has nothing, or has not what its name says is lost, and nothing else.
func TestDamaged(t *testing.T) {
	zip := func(text string) []byte {
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return z.EncodeAll([]byte(text), nil)
	}
	for content, want := range map[string][]string{"noise": {"x"}, string(zip("[]")): {"x"}, string(zip(`[{"number":1}]`)): {"", "x"}} {
		dir := t.TempDir()
		s := openSpool(dir)
		s.fill(pageSamples+1, "x")
		s.save()
		if err := os.WriteFile(s.nameOf(s.pages[0]), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s = openSpool(dir)
		if got := fetchAll(t, s); !slices.Equal(got, want) || s.dropped != pageSamples {
			t.Errorf("%q: %v, %d dropped", content, got, s.dropped)
		}
	}
}

// FuzzPage: whatever is in a page, what is read of it can be written, and is then read again.
func FuzzPage(f *testing.F) {
	dir := f.TempDir()
	name := filepath.Join(dir, openPage)
	if _, err := writePage(name, []bus.Numbered{{Number: 1, Sample: sample("a")}, {Number: 2, Sample: sample("b")}}); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-5])
	f.Fuzz(func(t *testing.T, b []byte) {
		all := unzip(b)
		if len(all) == 0 {
			return
		}
		if _, err := writePage(name, all); err != nil {
			t.Fatal(err)
		}
		one, _ := json.Marshal(all)
		if again, _ := json.Marshal(readPage(name)); !bytes.Equal(again, one) {
			t.Errorf("%s, then %s", one, again)
		}
	})
}
