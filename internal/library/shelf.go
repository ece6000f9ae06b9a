package library

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/runs"
	"thru/internal/stat"
	"thru/internal/store"
	"thru/internal/unit"
)

// mostOfSpan bounds how many results one word may select.
const mostOfSpan = 500

// idBegin is an id of the store, or its first 6 or more characters.
var idBegin = unit.Pattern(`^[0-9]{6,8}(-[0-9]{0,6}(-[0-9a-f]*)?)?$`)

// lastWord selects the newest result, or the n-th before it.
var lastWord = unit.Pattern(`^last(~([0-9]{1,6}))?$`)

// wholeID is an id of the store.
var wholeID = unit.Pattern(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{4,}$`)

// IsStored reports whether a word can only mean a result of the store: its id, last,
// or last~2. A file of that name comes first.
func (r *Reader) IsStored(word string) bool {
	if !wholeID().MatchString(word) && !lastWord().MatchString(word) {
		return false
	}
	_, err := os.Stat(word)
	return err != nil
}

// Shelf looks up results by words: in files, stored runs, and the store, which it
// opens only when a word needs it.
type Shelf struct {
	*Reader
	link   stat.Link
	opened store.Store
	now    time.Time
}

// Shelf returns a Shelf, with the link rate that the user states.
func (r *Reader) Shelf(link stat.Link) *Shelf {
	return &Shelf{Reader: r, link: link, now: time.Now()}
}

// Close closes the store.
func (l *Shelf) Close() error {
	if l.opened == nil {
		return nil
	}
	return l.opened.Close()
}

// store opens the store; a missing one is empty.
func (l *Shelf) store() (store.Store, error) {
	if l.opened != nil {
		return l.opened, nil
	}
	s, err := l.Archive.Open(store.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Usagef("run a test first: each test stores its result, except with --no-store; list them with thru history", "no result is stored yet")
	}
	if err != nil {
		return nil, err
	}
	l.opened = s
	return s, nil
}

// Find returns the results that a word selects: a file with one or more results, -
// for stdin, an id or its beginning, last, last~2, a run, or a span of time. For a
// span it returns those that match the filter, the oldest first.
func (l *Shelf) Find(ctx context.Context, word string, f store.Filter) ([]Result, error) {
	switch {
	case word == "":
		return nil, fault.Usagef("list the results with thru history", "the name of a result is empty")
	case l.isFile(word):
		return l.file(ctx, word)
	case lastWord().MatchString(word), idBegin().MatchString(word):
		return l.one(ctx, word, f)
	case isSpan(word):
		return l.span(ctx, word, f)
	}
	if doc, err := l.run(word); doc != nil || err != nil {
		return []Result{{word, doc}}, err
	}
	return nil, fault.Usagef("give an id of thru history, last, last~1, a stored run, a period such as last-week, or a file", "no result and no file has the name %q", fault.Short(word))
}

// isFile reports whether a word means a file: it has a slash, or the file exists.
func (l *Shelf) isFile(word string) bool {
	if word == "-" || strings.ContainsAny(word, `/\`) || strings.HasSuffix(word, ".json") {
		return true
	}
	_, err := os.Stat(word)
	return err == nil
}

func (l *Shelf) file(ctx context.Context, path string) ([]Result, error) {
	sources, err := l.Open(ctx, []string{path})
	if err != nil {
		return nil, err
	}
	defer CloseSources(sources)
	return l.Results(ctx, sources[0], l.link)
}

// one returns the single result that a word selects.
func (l *Shelf) one(ctx context.Context, word string, f store.Filter) ([]Result, error) {
	s, err := l.store()
	if err != nil {
		return nil, err
	}
	x, err := EntryOf(ctx, s, word, f)
	if err != nil {
		return nil, err
	}
	return l.get(ctx, []store.Entry{x})
}

// EntryOf looks up an id, or a unique beginning of one, or counts back from the newest
// result that matches the filter.
func EntryOf(ctx context.Context, s store.Store, word string, f store.Filter) (store.Entry, error) {
	if m := lastWord().FindStringSubmatch(word); m != nil {
		back, _ := strconv.Atoi(m[2])
		f.Limit = back + 1
		found, _, err := s.Find(ctx, f)
		if err == nil && len(found) <= back {
			err = fault.Usagef("list the results with thru history", "%s: only %s exist", fault.Named(word), unit.Plural(len(found), "result"))
		}
		if err != nil {
			return store.Entry{}, err
		}
		return found[back], nil
	}
	if !idBegin().MatchString(word) {
		return store.Entry{}, fault.Usagef("list the results with thru history", "%q is not an id", fault.Short(word))
	}
	found, more, err := s.Find(ctx, store.Filter{Prefix: word, Limit: 4})
	if err != nil {
		return store.Entry{}, err
	}
	if i := slices.IndexFunc(found, func(e store.Entry) bool { return e.ID == word }); i >= 0 {
		return found[i], nil
	}
	switch len(found) {
	case 0:
		return store.Entry{}, fault.Usagef("list the results with thru history", "no result has the id %s", word)
	case 1:
		return found[0], nil
	}
	ids := unit.Mapped(found, func(e store.Entry) string { return e.ID })
	if more {
		ids = append(ids, "...")
	}
	return store.Entry{}, fault.Usagef("give more digits of the id; for all results of a day, give a period: 2026-11-20..2026-11-20", "%s is ambiguous: %s", word, strings.Join(ids, ", "))
}

func (l *Shelf) span(ctx context.Context, word string, f store.Filter) ([]Result, error) {
	when, err := ReadSpan(word, l.now)
	if err != nil {
		return nil, err
	}
	s, err := l.store()
	if err != nil {
		return nil, err
	}
	f.Since, f.Until, f.Limit = when.Since, when.Until, mostOfSpan
	found, more, err := s.Find(ctx, f)
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, fault.Usagef("list all stored results with thru history", "%s: no result in this period", fault.Named(word))
	case more:
		return nil, fault.Usagef("give a shorter period, or one pair", "%s: more than %d results", fault.Named(word), mostOfSpan)
	}
	slices.Reverse(found)
	return l.get(ctx, found)
}

// get reads documents. It diagnoses them with this version's rules.
func (l *Shelf) get(ctx context.Context, entries []store.Entry) ([]Result, error) {
	var all []Result
	for _, x := range entries {
		doc, err := l.opened.Get(ctx, x.ID)
		if errors.Is(err, store.ErrNotFound) && len(entries) > 1 {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("library: reading the result %s: %w", x.ID, err)
		}
		rediagnose(doc, l.link)
		all = append(all, Result{x.ID, doc})
	}
	return all, nil
}

// text returns the stored JSON of a result; its reader diagnoses it.
func (l *Shelf) text(ctx context.Context, word string) (text []byte, err error) {
	s, err := l.store()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	x, err := EntryOf(ctx, s, word, store.Filter{})
	if err != nil {
		return nil, err
	}
	doc, err := s.Get(ctx, x.ID)
	if err != nil {
		return nil, fmt.Errorf("library: reading the result %s: %w", x.ID, err)
	}
	var b bytes.Buffer
	err = report.JSON(&b, doc)
	return b.Bytes(), err
}

// run reads the document of a run in the state folder; nil where there is none of that
// name.
func (l *Shelf) run(word string) (*measure.Document, error) {
	kept, err := runs.Folder()
	if err != nil || !filepath.IsLocal(word) {
		return nil, nil
	}
	dir := filepath.Join(kept, word)
	if _, err := os.Stat(filepath.Join(dir, runs.HeadName)); err != nil {
		return nil, nil
	}
	doc, err := runs.ReadDocument(filepath.Join(dir, runs.DocumentName))
	if err != nil {
		return nil, fmt.Errorf("library: reading the run %s: %w", word, err)
	}
	if doc == nil {
		return nil, fault.Failf("thru run --resume="+word+" continues the run", "library: the run %s has measured nothing yet", word)
	}
	rediagnose(doc, l.link)
	return doc, nil
}
