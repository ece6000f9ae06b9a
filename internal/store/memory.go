package store

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/measure"
)

// Memory returns a store that ends with the process, for tests.
func Memory() Store { return &memory{} }

type memory struct {
	mu   sync.Mutex
	kept []kept // the newest first
}

type kept struct {
	Entry
	content
	labels []label
}

// Put implements Store.
func (m *memory) Put(ctx context.Context, doc *measure.Document, title string) (string, error) {
	k, err := newKept(doc, title)
	if err != nil || ctx.Err() != nil {
		return "", cmp.Or(err, ctx.Err())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.kept, func(x kept) bool { return x.sum == k.sum }); i >= 0 {
		if known := &m.kept[i]; known.Title == "" {
			known.Title = k.Title
		}
		return m.kept[i].ID, nil
	}
	for _, k.ID = range ids(k.StartedAt, k.sum) {
		if m.index(k.ID) < 0 {
			break
		}
	}
	m.kept = append(m.kept, k)
	slices.SortFunc(m.kept, func(a, b kept) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), strings.Compare(b.ID, a.ID))
	})
	return k.ID, nil
}

// newKept is a document with its entry, still without an id.
func newKept(doc *measure.Document, title string) (kept, error) {
	c, err := encode(doc)
	if err == nil {
		err = checkTime(doc.StartedAt)
	}
	if err != nil {
		return kept{}, failed("keeping a result", unfit{err})
	}
	k := kept{EntryOf(doc, title), c, labelsOf(doc)}
	k.Bytes, k.KeptAt = int64(len(c.text)), time.Now().UTC()
	return k, nil
}

// index of an id, or -1.
func (m *memory) index(id string) int {
	return slices.IndexFunc(m.kept, func(k kept) bool { return k.ID == id })
}

// Get implements Store.
func (m *memory) Get(ctx context.Context, id string) (*measure.Document, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.index(id)
	if i < 0 || ctx.Err() != nil {
		return nil, cmp.Or(ctx.Err(), missing(id))
	}
	return measure.Decode(m.kept[i].text)
}

// Entry implements Store.
func (m *memory) Entry(ctx context.Context, id string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.index(id)
	if i < 0 || ctx.Err() != nil {
		return Entry{}, cmp.Or(ctx.Err(), missing(id))
	}
	return m.kept[i].copied(), nil
}

// copied shares nothing with the store.
func (k kept) copied() Entry {
	e := k.Entry
	e.Hosts, e.Pairs, e.Labels = slices.Clone(e.Hosts), slices.Clone(e.Pairs), maps.Clone(e.Labels)
	return e
}

// Find implements Store.
func (m *memory) Find(ctx context.Context, f Filter) (found []Entry, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := m.index(f.Before) + 1
	for _, k := range m.kept[from:] {
		switch {
		case from == 0 && f.Before != "" && k.ID >= f.Before || !k.matches(f):
		case len(found) == f.limit():
			return found, true, ctx.Err()
		default:
			found = append(found, k.copied())
		}
	}
	return found, false, ctx.Err()
}

// limit is how many entries are wanted at most.
func (f Filter) limit() int {
	switch {
	case f.Limit < 0:
		return math.MaxInt32
	case f.Limit == 0:
		return DefaultLimit
	}
	return f.Limit
}

// matches tells whether all holds that a filter gives, but for its page.
func (k kept) matches(f Filter) bool {
	for _, h := range f.Hosts {
		if !slices.Contains(k.Hosts, h) {
			return false
		}
	}
	for key, value := range f.Labels {
		if !slices.Contains(k.labels, label{key, value}) {
			return false
		}
	}
	return (f.Pair == "" || slices.Contains(k.Pairs, f.Pair)) &&
		(f.Plan == "" || f.Plan == k.Plan) &&
		(len(f.Commands) == 0 || slices.Contains(f.Commands, k.Command)) &&
		(f.Verdict == "" || f.Verdict == k.Verdict) &&
		(f.Since.IsZero() || !k.StartedAt.Before(f.Since)) &&
		(f.Until.IsZero() || k.StartedAt.Before(f.Until)) &&
		(f.Failed == nil || *f.Failed == (k.Error != "")) &&
		strings.HasPrefix(k.ID, f.Prefix) &&
		strings.Contains(words(k.Entry), strings.ToLower(f.Text))
}

// Delete implements Store.
func (m *memory) Delete(ctx context.Context, ids ...string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.kept)
	if ctx.Err() == nil {
		m.kept = slices.DeleteFunc(m.kept, func(k kept) bool { return slices.Contains(ids, k.ID) })
	}
	return before - len(m.kept), ctx.Err()
}

// Prune implements Store.
func (m *memory) Prune(ctx context.Context, r Retention) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	stay := m.staying(r)
	gone := len(m.kept) - len(stay)
	if !r.DryRun {
		m.kept = stay
	}
	return gone, nil
}

// staying is what a retention leaves, the newest first.
func (m *memory) staying(r Retention) (stay []kept) {
	others := func(k kept) bool { return r.Command != "" && k.Command != r.Command }
	bytes := int64(0)
	for _, k := range m.kept {
		if others(k) {
			bytes += k.Bytes
		}
	}
	oldest, n := time.Now().Add(-r.Age), 0
	for _, k := range m.kept {
		if others(k) {
			stay = append(stay, k)
			continue
		}
		bytes += k.Bytes
		if r.Age > 0 && k.StartedAt.Before(oldest) || r.Count > 0 && n >= r.Count || r.Bytes > 0 && bytes > r.Bytes && n > 0 {
			continue // and so do all that are older
		}
		stay = append(stay, k)
		n++
	}
	return stay
}

// Stats implements Store.
func (m *memory) Stats(ctx context.Context) (Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Stats{Count: len(m.kept)}
	for _, k := range m.kept {
		s.Bytes += k.Bytes
	}
	if s.Count > 0 {
		s.Newest, s.Oldest = m.kept[0].StartedAt, m.kept[s.Count-1].StartedAt
	}
	return s, ctx.Err()
}

// Close implements Store.
func (m *memory) Close() error { return nil }
