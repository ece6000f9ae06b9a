//go:build linux || darwin || freebsd || windows

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"thru/internal/measure"
)

// database stores results in one file: documents, with their entries and search keys.
type database struct {
	db       *sql.DB
	path     string
	readOnly bool
	isThere  bool          // the file existed before it was opened
	version  int           // of its tables: with readOnly it may be an earlier one
	patience time.Duration // wait for other processes when it is opened
	readTime time.Duration // time limit of each read
	writing  chan struct{} // held by the one goroutine of this process that writes: SQLite has one writer at a time
	zip      *zstd.Encoder
	zipPack  *zstd.Encoder // with the dictionary of packs
	unzip    *zstd.Decoder
}

// write runs a transaction, whole or not at all.
func (s *database) write(ctx context.Context, doing string, do func(*sql.Tx) error) error {
	if s.readOnly {
		return explain(doing, s.path, errReadOnly)
	}
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return explain(doing, s.path, ctx.Err())
	}
	return explain(doing, s.path, patiently(ctx, func() error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	}))
}

// readTime bounds each read of a file, which may be of foreign origin: well above the wait
// for processes that lock it.
const readTime = 2 * patience

// read runs do, which changes nothing, within readTime.
func (s *database) read(ctx context.Context, doing string, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.readTime)
	defer cancel()
	err := patiently(limited, func() error { return do(limited) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errSlow
	}
	return explain(doing, s.path, err)
}

// Put implements Store.
func (s *database) Put(ctx context.Context, doc *measure.Document, title string) (string, error) {
	k, err := newKept(doc, title)
	if err != nil {
		return "", err
	}
	zipped := s.zip.EncodeAll(k.text, nil)
	id := ""
	err = s.write(ctx, "keeping a result in", func(tx *sql.Tx) error {
		var there bool
		id, there, err = name(ctx, tx, k)
		switch {
		case err != nil:
			return err
		case there:
			return entitle(ctx, tx, id, k.Title)
		}
		k.ID = id
		return insert(ctx, tx, k, zipped)
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// name returns the id of a stored document, or a free one for a new document.
func name(ctx context.Context, tx *sql.Tx, k kept) (id string, there bool, err error) {
	err = tx.QueryRowContext(ctx, "SELECT id FROM results WHERE sha256 = ?", k.sum).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err == nil, err
	}
	for _, id = range ids(k.StartedAt, k.sum) {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM results WHERE id = ?", id).Scan(&n); err != nil || n == 0 {
			return id, false, err
		}
	}
	return id, false, fmt.Errorf("the id %s belongs to another result", id)
}

// entitle sets the title of a stored result that has none.
func entitle(ctx context.Context, tx *sql.Tx, id, title string) error {
	if title == "" {
		return nil
	}
	e, err := scanEntry(tx.QueryRowContext(ctx, "SELECT id, entry FROM results WHERE id = ?", id))
	if err != nil || e.Title != "" {
		return err
	}
	e.Title = title
	entry, err := marshal(e)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE results SET entry = ?, words = ? WHERE id = ?", string(entry), words(e), id)
	return err
}

// insert writes a document with its entry and search keys.
func insert(ctx context.Context, tx *sql.Tx, k kept, zipped []byte) error {
	entry, err := marshal(k.Entry)
	if err != nil {
		return err
	}
	text := words(k.Entry)
	size := len(zipped) + len(entry) + len(text)
	r, err := tx.ExecContext(ctx, `INSERT INTO results (id, sha256, started, command, plan, verdict, failed, size, words, entry)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		k.ID, k.sum, sortTime(k.StartedAt), k.Command, k.Plan, k.Verdict, k.Error != "", size, text, string(entry))
	if err != nil {
		return err
	}
	n, err := r.LastInsertId()
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO documents (result, zstd) VALUES (?, ?)", n, zipped); err != nil {
		return err
	}
	add, err := tx.PrepareContext(ctx, "INSERT INTO marks (kind, value, result) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer add.Close()
	for _, m := range marksOf(k) {
		if _, err := add.ExecContext(ctx, m.key, m.value, n); err != nil {
			return err
		}
	}
	return nil
}

// Kinds of marks (search keys).
const (
	hostMark  = "host"
	pairMark  = "pair"
	labelMark = "label " // followed by its key
)

// marksOf returns all names by which a result is found, each with its kind.
func marksOf(k kept) []label {
	var all []label
	for _, h := range k.Hosts {
		all = append(all, label{hostMark, h})
	}
	for _, p := range k.Pairs {
		all = append(all, label{pairMark, p})
	}
	for _, l := range k.labels {
		all = append(all, label{labelMark + l.key, l.value})
	}
	return all
}

// Get implements Store.
func (s *database) Get(ctx context.Context, id string) (*measure.Document, error) {
	var zipped []byte
	err := s.read(ctx, "reading "+id+" in", func(ctx context.Context) error {
		return s.db.QueryRowContext(ctx, "SELECT zstd FROM documents JOIN results ON n = result WHERE id = ?", id).Scan(&zipped)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing(id)
	}
	if err != nil {
		return nil, err
	}
	text, err := s.unzip.DecodeAll(zipped, nil)
	if err != nil {
		return nil, explain("reading "+id+" in", s.path, fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	doc, err := measure.Decode(text)
	if err != nil {
		return nil, explain("reading "+id+" in", s.path, err)
	}
	return doc, nil
}

// Entry implements Store.
func (s *database) Entry(ctx context.Context, id string) (e Entry, err error) {
	err = s.read(ctx, "reading "+id+" in", func(ctx context.Context) error {
		e, err = scanEntry(s.db.QueryRowContext(ctx, "SELECT id, entry FROM results WHERE id = ?", id))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Entry{}, missing(id)
	}
	return e, err
}

// scanEntry reads an id and its entry, which may be of foreign origin: it returns what
// EntryOf could make, or an error.
func scanEntry(row interface{ Scan(...any) error }) (e Entry, err error) {
	var id string
	var text []byte
	if err := row.Scan(&id, &text); err != nil {
		return Entry{}, err
	}
	if err = json.Unmarshal(text, &e); err == nil {
		err = e.check(id)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e.bounded(), nil
}

// Stats implements Store.
func (s *database) Stats(ctx context.Context) (all Stats, err error) {
	err = s.read(ctx, "counting in", func(ctx context.Context) error {
		const size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
		if err := s.db.QueryRowContext(ctx, "SELECT count(*), ("+size+") FROM results").Scan(&all.Count, &all.Bytes); err != nil || all.Count == 0 {
			return err
		}
		newest, err := scanEntry(s.db.QueryRowContext(ctx, "SELECT id, entry FROM results ORDER BY started DESC LIMIT 1"))
		if err != nil {
			return err
		}
		oldest, err := scanEntry(s.db.QueryRowContext(ctx, "SELECT id, entry FROM results ORDER BY started LIMIT 1"))
		all.Newest, all.Oldest = newest.StartedAt, oldest.StartedAt
		return err
	})
	return all, err
}

// Close implements Store.
func (s *database) Close() error {
	s.unzip.Close()
	if s.db == nil {
		return nil
	}
	if err := s.db.Close(); err != nil {
		return explain("closing", s.path, err)
	}
	return nil
}
