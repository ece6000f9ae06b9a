package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
	"thru/internal/store"
)

// limit bounds each step of a test; no test asserts speed.
const limit = time.Minute

// contract describes the store under test.
type contract struct {
	// Open opens a store that is empty when its test begins; Again opens the same
	// one a second time at the same time, where that is possible.
	Open  func(t *testing.T) store.Store
	Again func(t *testing.T) store.Store
	// Hours returns the stored summaries, in order.
	Hours func(testing.TB, store.Store) []store.Hour
}

// run tests the contract that every store must fulfil.
func (x contract) run(t *testing.T) {
	t.Run("round trip", x.roundTrip)
	t.Run("ids", x.ids)
	t.Run("the same again", x.again)
	t.Run("entry", x.entry)
	t.Run("filters", x.filters)
	t.Run("pages", x.pages)
	t.Run("delete", x.deletes)
	t.Run("prune", x.prunes)
	t.Run("prune a command", x.prunesCommand)
	t.Run("not there", x.notThere)
	t.Run("unfit", x.unfit)
	t.Run("hostile", x.hostile)
	t.Run("cancelled", x.cancelled)
	t.Run("writers", x.writers)
	t.Run("samples", x.samples)
	t.Run("samples again", x.samplesAgain)
	t.Run("samples pruned", x.samplesPruned)
	t.Run("unfit samples", x.unfitSamples)
	t.Run("export and import", x.exported)
	t.Run("hostile lines", x.hostileLines)
}

// begin returns the start time of document(0).
func begin() time.Time { return time.Date(2026, 11, 22, 20, 15, 30, 0, time.UTC) }

// document returns a different result for each number, a minute after the one before: of
// a -> b, with host names, labels and figures that the tests search for.
func document(i int) *measure.Document {
	hostname, value := fmt.Sprintf("Machine-%d", i%7), float64(i)*1e6+0.5
	doc := &measure.Document{
		Schema: measure.Schema, Thru: "1.2.3", Command: []string{"test", "ladder", "check"}[i%3],
		StartedAt: begin().Add(time.Duration(i) * time.Minute), ElapsedNs: int64(i),
		Labels: map[string]string{"ticket": fmt.Sprint(i % 5)},
		EndPoints: []measure.EndPoint{
			{Name: "local", Facts: &measure.Facts{Hostname: &hostname}},
			{Name: fmt.Sprintf("db%d", i%10), Labels: map[string]string{"role": []string{"db", "web"}[i%2]}},
		},
		Cells: []measure.Cell{{
			From: "local", To: fmt.Sprintf("db%d", i%10), Streams: 4, Goodput: &measure.Figure{Value: value, Runs: 1},
			Runs: []measure.Run{{Flows: []measure.Flow{{From: "local", Receiver: &measure.Evidence{Bytes: int64(i)}}}}},
		}},
	}
	switch i % 4 {
	case 0:
		doc.Verdict = &measure.Verdict{Pass: true}
	case 1:
		doc.Verdict = &measure.Verdict{}
	case 2:
		doc.Error = &measure.Error{Message: "interrupted", ExitCode: 1}
	}
	if i%6 == 0 {
		doc.Plan = &measure.Planned{Name: "nightly"}
	}
	return doc
}

// putMany stores the documents of the numbers below n, and returns their ids.
func putMany(t testing.TB, s store.Store, n int) []string {
	t.Helper()
	all := make([]string, n)
	for i := range all {
		all[i] = put(t, s, document(i), fmt.Sprintf("%d Mb/s, Number %d", i, i))
	}
	return all
}

// put stores a document.
func put(t testing.TB, s store.Store, doc *measure.Document, title string) string {
	t.Helper()
	id, err := s.Put(within(t), doc, title)
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return id
}

// same fails where two documents differ as JSON.
func same(t testing.TB, got, want *measure.Document) {
	t.Helper()
	if d := cmp.Diff(text(t, want), text(t, got)); d != "" {
		t.Fatalf("a document is not what was kept (-kept +read):\n%s", d)
	}
}

func text(t testing.TB, doc *measure.Document) string {
	t.Helper()
	b, err := json.MarshalIndent(measure.Complete(doc), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// within returns a context with a time limit.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func get(t testing.TB, s store.Store, id string) *measure.Document {
	t.Helper()
	doc, err := s.Get(within(t), id)
	if err != nil {
		t.Fatalf("Get %s: %v", id, err)
	}
	return doc
}

// find returns the ids that a filter finds.
func find(t testing.TB, s store.Store, f store.Filter) (ids []string, more bool) {
	t.Helper()
	found, more, err := s.Find(within(t), f)
	if err != nil {
		t.Fatalf("Find %+v: %v", f, err)
	}
	for _, e := range found {
		ids = append(ids, e.ID)
	}
	return ids, more
}

func (x contract) roundTrip(t *testing.T) {
	s := x.Open(t)
	for i := range 8 {
		doc := document(i)
		if i == 3 {
			doc.EndPoints, doc.Cells = nil, nil
		}
		same(t, get(t, s, put(t, s, doc, "")), doc)
	}
}

func (x contract) ids(t *testing.T) {
	s := x.Open(t)
	id := put(t, s, document(0), "")
	if !strings.HasPrefix(id, "20261122-201530-") || len(id) != len("20261122-201530-a3f9") {
		t.Errorf("id %q", id)
	}
	// 700 results of one second: some of them share the four digits (65,536 values).
	seen := map[string]bool{id: true}
	longer := 0
	for i := 1; i <= 700; i++ {
		doc := document(0)
		doc.ElapsedNs = int64(i)
		one := put(t, s, doc, "")
		if seen[one] {
			t.Fatalf("%s is the id of two results", one)
		}
		seen[one] = true
		if len(one) > len(id) {
			longer++
		}
		if got := get(t, s, one); got.ElapsedNs != int64(i) {
			t.Fatalf("%s is number %d, want %d", one, got.ElapsedNs, i)
		}
	}
	if longer == 0 {
		t.Error("no id is longer: nothing collided, or it was not seen")
	}
}

func (x contract) again(t *testing.T) {
	s := x.Open(t)
	doc := document(1)
	id := put(t, s, doc, "first")
	if again := put(t, s, get(t, s, id), "second"); again != id {
		t.Errorf("the same document has the ids %s and %s", id, again)
	}
	if ids, _ := find(t, s, store.Filter{}); len(ids) != 1 {
		t.Errorf("it is kept %d times", len(ids))
	}
	if e, err := s.Entry(within(t), id); err != nil || e.Title != "first" {
		t.Errorf("entry %+v, %v: want the first title", e, err)
	}
	untitled := put(t, s, document(2), "")
	put(t, s, document(2), "")
	put(t, s, document(2), "Said later")
	if e, err := s.Entry(within(t), untitled); err != nil || e.Title != "Said later" {
		t.Errorf("entry %+v, %v: want the title that it had not", e, err)
	}
	if ids, _ := find(t, s, store.Filter{Text: "said LATER"}); !slices.Equal(ids, []string{untitled}) {
		t.Errorf("found by it: %v", ids)
	}
}

func (x contract) entry(t *testing.T) {
	s := x.Open(t)
	id := put(t, s, document(5), "5 Mb/s\x1b[31m\nforged")
	got, err := s.Entry(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	value := 5e6 + 0.5
	want := store.Entry{
		ID: id, StartedAt: begin().Add(5 * time.Minute), ElapsedNs: 5, Command: "check", Title: "5 Mb/s?[31m?forged",
		Hosts: []string{"local", "Machine-5", "db5"}, Pairs: []string{"local -> db5"},
		Labels: map[string]string{"ticket": "0", "role": "web"}, Verdict: store.Fail, Goodput: &value, Thru: "1.2.3",
		Bytes: got.Bytes, KeptAt: got.KeptAt,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("entry (-want +got):\n%s", d)
	}
	if age := time.Since(got.KeptAt); got.Bytes < 100 || age < -limit || age > limit {
		t.Errorf("%d bytes, kept at %v", got.Bytes, got.KeptAt)
	}
	found, _, err := s.Find(within(t), store.Filter{})
	if err != nil || len(found) != 1 {
		t.Fatalf("Find: %v, %v", found, err)
	}
	if d := cmp.Diff(got, found[0]); d != "" {
		t.Errorf("Find has another entry than Entry:\n%s", d)
	}
}

func (x contract) filters(t *testing.T) {
	const n = 60
	s := x.Open(t)
	all := putMany(t, s, n)
	yes, no := true, false
	cases := []struct {
		name string
		f    store.Filter
		want func(i int) bool
	}{
		{"all", store.Filter{}, func(int) bool { return true }},
		{"end point", store.Filter{Hosts: []string{"db3"}}, func(i int) bool { return i%10 == 3 }},
		{"machine", store.Filter{Hosts: []string{"Machine-2"}}, func(i int) bool { return i%7 == 2 }},
		{"both", store.Filter{Hosts: []string{"Machine-2", "db3"}}, func(i int) bool { return i%7 == 2 && i%10 == 3 }},
		{"pair", store.Filter{Pair: "local -> db3"}, func(i int) bool { return i%10 == 3 }},
		{"pair, back", store.Filter{Pair: "db3 -> local"}, func(i int) bool { return false }},
		{"plan", store.Filter{Plan: "nightly"}, func(i int) bool { return i%6 == 0 }},
		{"commands", store.Filter{Commands: []string{"ladder", "check"}}, func(i int) bool { return i%3 != 0 }},
		{"label", store.Filter{Labels: map[string]string{"ticket": "4"}}, func(i int) bool { return i%5 == 4 }},
		{"label of an end point", store.Filter{Labels: map[string]string{"ticket": "4", "role": "db"}}, func(i int) bool { return i%5 == 4 && i%2 == 0 }},
		{"no such label", store.Filter{Labels: map[string]string{"role": "4"}}, func(i int) bool { return false }},
		{"pass", store.Filter{Verdict: store.Pass}, func(i int) bool { return i%4 == 0 }},
		{"fail", store.Filter{Verdict: store.Fail}, func(i int) bool { return i%4 == 1 }},
		{"none", store.Filter{Verdict: store.NoVerdict}, func(i int) bool { return i%4 >= 2 }},
		{"failed", store.Filter{Failed: &yes}, func(i int) bool { return i%4 == 2 }},
		{"not failed", store.Filter{Failed: &no}, func(i int) bool { return i%4 != 2 }},
		{"since", store.Filter{Since: begin().Add(40 * time.Minute).In(time.FixedZone("", 3600))}, func(i int) bool { return i >= 40 }},
		{"until", store.Filter{Until: begin().Add(40 * time.Minute)}, func(i int) bool { return i < 40 }},
		{"since, a little later", store.Filter{Since: begin().Add(40*time.Minute + 1)}, func(i int) bool { return i > 40 }},
		{"title", store.Filter{Text: "nUMBER 7"}, func(i int) bool { return i == 7 }},
		{"machine by a part", store.Filter{Text: "machine-6"}, func(i int) bool { return i%7 == 6 }},
		{"plan by a part", store.Filter{Text: "NIGHT"}, func(i int) bool { return i%6 == 0 }},
		{"label by text", store.Filter{Text: "role=web"}, func(i int) bool { return i%2 == 1 }},
		{"no wildcards", store.Filter{Text: "%"}, func(i int) bool { return false }},
		{"no wildcard", store.Filter{Text: "d_3"}, func(i int) bool { return false }},
		{"quotes", store.Filter{Text: `'"; DROP TABLE results --`, Plan: "'", Hosts: []string{"'"}}, func(i int) bool { return false }},
		{"prefix", store.Filter{Prefix: "20261122-2020"}, func(i int) bool { return i == 5 }},
		{"prefix of an hour", store.Filter{Prefix: "20261122-20"}, func(i int) bool { return i < 45 }},
		{"whole id", store.Filter{Prefix: all[9]}, func(i int) bool { return i == 9 }},
		{"prefix of none", store.Filter{Prefix: "2026%"}, func(i int) bool { return false }},
		{"all of it", store.Filter{Hosts: []string{"db4"}, Commands: []string{"check"}, Verdict: store.Pass, Text: "number"}, func(i int) bool { return i%10 == 4 && i%3 == 2 && i%4 == 0 }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for i, id := range slices.Backward(all) {
				if c.want(i) {
					want = append(want, id)
				}
			}
			if got, more := find(t, s, c.f); !slices.Equal(got, want) || more {
				t.Errorf("found %v, more %v\nwant  %v", got, more, want)
			}
		})
	}
}

func (x contract) pages(t *testing.T) {
	s := x.Open(t)
	want := putMany(t, s, 7)
	for i := range 4 { // began in the same second, as their ids show
		doc := document(6)
		doc.StartedAt = doc.StartedAt.Add(time.Duration(i+1) * time.Millisecond)
		want = append(want, put(t, s, doc, ""))
	}
	slices.Reverse(want)
	for _, size := range []int{1, 2, 3, 11, 20} {
		var got []string
		f := store.Filter{Limit: size}
		for {
			ids, more := find(t, s, f)
			got = append(got, ids...)
			if !more {
				break
			}
			if len(ids) != size {
				t.Fatalf("a page of %d has %d, and there are more", size, len(ids))
			}
			f.Before = ids[size-1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v\nwant %v", size, got, want)
		}
	}
	for i := range store.DefaultLimit {
		want = slices.Insert(want, 0, put(t, s, document(7+i), ""))
	}
	if got, more := find(t, s, store.Filter{}); !slices.Equal(got, want[:store.DefaultLimit]) || !more {
		t.Errorf("a page that is not bounded has %d, more %v", len(got), more)
	}
	if got, more := find(t, s, store.Filter{Limit: -1}); !slices.Equal(got, want) || more {
		t.Errorf("all are %d, more %v; want %d", len(got), more, len(want))
	}
	if got, _ := find(t, s, store.Filter{Before: "20261122-201630"}); !slices.Equal(got, want[len(want)-1:]) {
		t.Errorf("before an id that is not there: %v", got)
	}
}

func (x contract) deletes(t *testing.T) {
	s := x.Open(t)
	ids := putMany(t, s, 6)
	if n, err := s.Delete(within(t), ids[1], "no such id", ids[4], ids[1]); n != 2 || err != nil {
		t.Fatalf("Delete: %d, %v", n, err)
	}
	if n, err := s.Delete(within(t)); n != 0 || err != nil {
		t.Fatalf("Delete of nothing: %d, %v", n, err)
	}
	if got, _ := find(t, s, store.Filter{}); !slices.Equal(got, []string{ids[5], ids[3], ids[2], ids[0]}) {
		t.Errorf("left: %v", got)
	}
	if _, err := s.Get(within(t), ids[1]); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a deleted one: %v", err)
	}
	if got, _ := find(t, s, store.Filter{Hosts: []string{"db1"}}); len(got) != 0 {
		t.Errorf("a deleted one is found by its host: %v", got)
	}
	if id := put(t, s, document(1), ""); id != ids[1] {
		t.Errorf("kept again as %s, was %s", id, ids[1])
	}
}

func (x contract) prunes(t *testing.T) {
	s := x.Open(t)
	now := time.Now().UTC()
	var ids []string
	for i := range 30 { // the newest first: now, an hour ago...
		doc := document(i)
		doc.StartedAt = now.Add(-time.Duration(i) * time.Hour)
		doc.Arguments = []string{noise(i, 20_000)}
		ids = append(ids, put(t, s, doc, ""))
	}
	step := func(r store.Retention, gone int) {
		t.Helper()
		dry := r
		dry.DryRun = true
		for _, r := range []store.Retention{dry, r} {
			if n, err := s.Prune(within(t), r); n != gone || err != nil {
				t.Fatalf("Prune %+v: %d, %v; want %d", r, n, err, gone)
			}
		}
		ids = ids[:len(ids)-gone]
		if got, _ := find(t, s, store.Filter{}); !slices.Equal(got, ids) {
			t.Fatalf("after %+v: %v\nwant %v", r, got, ids)
		}
	}
	step(store.Retention{}, 0)
	step(store.Retention{Age: 365 * 24 * time.Hour, Count: 30, Bytes: 1 << 40}, 0)
	step(store.Retention{Age: 20*time.Hour + 30*time.Minute}, 9)
	step(store.Retention{Count: 15}, 6)
	step(store.Retention{Age: 12*time.Hour + 30*time.Minute, Count: 14}, 2)
	before, err := s.Stats(within(t))
	if err != nil || before.Count != 13 || !before.Newest.Equal(now) || !before.Oldest.Equal(now.Add(-12*time.Hour)) {
		t.Fatalf("Stats: %+v, %v", before, err)
	}
	most := before.Bytes * 3 / 4
	n, err := s.Prune(within(t), store.Retention{Bytes: most})
	if err != nil || n == 0 || n >= 12 {
		t.Fatalf("Prune to %d of %d bytes: %d gone of 13, %v", most, before.Bytes, n, err)
	}
	if after, err := s.Stats(within(t)); err != nil || after.Bytes > most {
		t.Errorf("it takes %d bytes, want %d at most: %v", after.Bytes, most, err)
	}
	ids = ids[:len(ids)-n]
	step(store.Retention{Bytes: 1}, len(ids)-1)
}

func (x contract) prunesCommand(t *testing.T) {
	s := x.Open(t)
	putMany(t, s, 12) // a third each of test, ladder and check, the oldest in 2026
	count := func(command string, want int) {
		t.Helper()
		if got, _ := find(t, s, store.Filter{Commands: []string{command}}); len(got) != want {
			t.Fatalf("%d of %s, want %d", len(got), command, want)
		}
	}
	for _, c := range []struct {
		r            store.Retention
		gone, ladder int
	}{
		{store.Retention{Command: "none", Count: 1, Age: 1, Bytes: 1}, 0, 4},
		{store.Retention{Command: "ladder", Count: 4, Bytes: 1 << 40}, 0, 4},
		{store.Retention{Command: "ladder", Count: 3}, 1, 3},
		{store.Retention{Command: "ladder", Bytes: 1}, 2, 1},
	} {
		dry := c.r
		dry.DryRun = true
		for _, r := range []store.Retention{dry, c.r} {
			if n, err := s.Prune(within(t), r); n != c.gone || err != nil {
				t.Fatalf("Prune %+v: %d, %v; want %d", r, n, err, c.gone)
			}
		}
		count("test", 4)
		count("ladder", c.ladder)
		count("check", 4)
	}
	old := document(1)
	old.StartedAt, old.ElapsedNs = time.Now().AddDate(-1, 0, 0), 99
	put(t, s, old, "")
	other := document(0)
	other.StartedAt = old.StartedAt
	put(t, s, other, "")
	if n, err := s.Prune(within(t), store.Retention{Command: "ladder", Age: 300 * 24 * time.Hour}); n != 1 || err != nil {
		t.Fatalf("Prune by age: %d, %v", n, err)
	}
	count("test", 5)
}

// noise returns text that hardly compresses.
func noise(seed, bytes int) string {
	var b strings.Builder
	for r := rand.New(rand.NewPCG(1, uint64(seed))); b.Len() < bytes; {
		fmt.Fprintf(&b, "%x", r.Uint64())
	}
	return b.String()
}

func (x contract) notThere(t *testing.T) {
	s := x.Open(t)
	if got, more := find(t, s, store.Filter{Limit: 1}); len(got) != 0 || more {
		t.Errorf("an empty store has %v", got)
	}
	if all, err := s.Stats(within(t)); err != nil || all.Count != 0 || !all.Oldest.IsZero() {
		t.Errorf("Stats of an empty store: %+v, %v", all, err)
	}
	for _, id := range []string{"", "20261122-201530-a3f9", "' OR 1=1 --", "\x00", strings.Repeat("x", 1<<16)} {
		if _, err := s.Get(within(t), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get %.20q: %v", id, err)
		}
		if _, err := s.Entry(within(t), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Entry %.20q: %v", id, err)
		}
	}
}

func (x contract) unfit(t *testing.T) {
	s := x.Open(t)
	nan := document(1)
	nan.Cells[0].Goodput.Value = math.NaN()
	late := document(2)
	late.StartedAt = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, doc := range map[string]*measure.Document{"NaN": nan, "year": late} {
		if id, err := s.Put(within(t), doc, ""); err == nil || id != "" {
			t.Errorf("%s: kept as %q", name, id)
		}
	}
	if got, _ := find(t, s, store.Filter{}); len(got) != 0 {
		t.Errorf("kept: %v", got)
	}
}

func (x contract) hostile(t *testing.T) {
	s := x.Open(t)
	name := "</script>\x00'\";\xff\u202e\n" + strings.Repeat("ä", 1000)
	doc := document(0)
	doc.EndPoints[0].Name, doc.EndPoints[0].Labels = name, map[string]string{name: name, "": ""}
	doc.Cells[0].From, doc.Cells[0].Goodput.Value = name, 1e308
	doc.Plan = &measure.Planned{Name: name}
	doc.StartedAt = time.Time{}
	id := put(t, s, doc, name)
	got := get(t, s, id)
	clean := strings.ToValidUTF8(name, "\ufffd")
	if got.EndPoints[0].Name != clean || got.Cells[0].Goodput.Value != 1e308 {
		t.Errorf("read: %.40q, %v", got.EndPoints[0].Name, got.Cells[0].Goodput)
	}
	if again := put(t, s, got, name); again != id {
		t.Errorf("read and kept again as %s, was %s", again, id)
	}
	for _, f := range []store.Filter{{Hosts: []string{"db0"}}, {Text: "ÄÄ"}, {Verdict: store.Pass}, {Labels: map[string]string{"": ""}}} {
		if got, _ := find(t, s, f); !slices.Equal(got, []string{id}) {
			t.Errorf("%+v finds %v", f, got)
		}
	}
}

func (x contract) cancelled(t *testing.T) {
	s := x.Open(t)
	id := put(t, s, document(0), "")
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	_, put := s.Put(ctx, document(1), "")
	_, got := s.Get(ctx, id)
	_, _, found := s.Find(ctx, store.Filter{})
	_, deleted := s.Delete(ctx, id)
	_, pruned := s.Prune(ctx, store.Retention{Count: 1})
	for name, err := range map[string]error{"Put": put, "Get": got, "Find": found, "Delete": deleted, "Prune": pruned} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _ := find(t, s, store.Filter{}); !slices.Equal(got, []string{id}) {
		t.Errorf("kept: %v", got)
	}
}

func (x contract) writers(t *testing.T) {
	const writers, each = 8, 12
	first := x.Open(t)
	stores := []store.Store{first}
	if x.Again != nil {
		stores = append(stores, x.Again(t), x.Again(t))
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			s := stores[w%len(stores)]
			for i := range each {
				doc := document(w*each + i)
				id, err := s.Put(within(t), doc, "")
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				if _, err := s.Get(within(t), id); err != nil {
					t.Errorf("writer %d reads its own: %v", w, err)
				}
				if _, _, err := s.Find(within(t), store.Filter{Text: "db"}); err != nil {
					t.Errorf("writer %d searches: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		if got, _ := find(t, s, store.Filter{Limit: 1000}); len(got) != writers*each {
			t.Errorf("%d are kept, want %d", len(got), writers*each)
		}
	}
}
