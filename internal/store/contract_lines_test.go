package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/internal/store"
)

func (x contract) exported(t *testing.T) {
	from, n := x.Open(t), store.DefaultLimit+20 // more than a page
	ids := putMany(t, from, n)
	var out bytes.Buffer
	if written, err := store.Export(within(t), &out, from, store.Filter{}); written != n || err != nil {
		t.Fatalf("Export: %d, %v", written, err)
	}
	to := x.Open(t)
	for range 2 { // the second time all of them are stored already
		done, err := store.Import(within(t), bytes.NewReader(out.Bytes()), to, nil)
		if err != nil || done.Kept != n || done.Bad != 0 {
			t.Fatalf("Import: %+v, %v", done, err)
		}
	}
	for i, id := range ids {
		same(t, get(t, to, id), document(i))
		if e, err := to.Entry(within(t), id); err != nil || e.Title != fmt.Sprintf("%d Mb/s, Number %d", i, i) {
			t.Errorf("entry %+v, %v", e, err)
		}
	}
	for _, limit := range []int{1, store.DefaultLimit, store.DefaultLimit + 7} {
		if written, err := store.Export(within(t), &out, from, store.Filter{Limit: limit}); written != limit || err != nil {
			t.Errorf("Export of %d: %d, %v", limit, written, err)
		}
	}
	if written, err := store.Export(within(t), &out, from, store.Filter{Plan: "nightly"}); written != n/6 || err != nil {
		t.Errorf("Export of a plan: %d, %v", written, err)
	}
}

func (x contract) hostileLines(t *testing.T) {
	s := x.Open(t)
	lines := []string{
		text1(t, document(0)), // a document as it is
		"",
		`{"title":"x"}`,
		`{"title":"x","document":{"schema":"thru.result/9"}}`,
		`{"title":"x","document":` + text1(t, document(1)) + `}`,
		"not JSON",
		`{"title":1,"document":` + text1(t, document(2)) + `}`,
		`{"document":{"schema":"thru.result/1","started_at":"9999-12-31T23:59:59-12:00"}}`,
		strings.Repeat("[", 100_000),
		`{"schema":"thru.result/1","cells":[{}` + strings.Repeat(",{}", 100_000) + "]}",
		"null", "[]", "\x00\xff",
		`{"document":` + text1(t, document(3)) + "}\r",
	}
	done, err := store.Import(within(t), strings.NewReader(strings.Join(lines, "\n")), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var bad []int
	for _, l := range done.Left {
		bad = append(bad, l.Line)
	}
	if want := []int{3, 4, 6, 7, 8, 9, 10, 11, 12, 13}; done.Kept != 3 || done.Bad != len(want) || !slices.Equal(bad, want) {
		t.Errorf("%+v", done)
	}
	if got, _ := find(t, s, store.Filter{}); len(got) != 3 {
		t.Errorf("kept: %v", got)
	}
}

// text1 returns a document in one line.
func text1(t testing.TB, doc *measure.Document) string {
	t.Helper()
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
