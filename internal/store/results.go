package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"thru/internal/measure"
)

// Results is the part of a Store that is the same in each SQL database: documents with their entries and search keys, in the tables results,
// marks and documents.
type Results struct {
	DB      *sql.DB
	Engine  Engine
	Dialect Dialect
	zip     *zstd.Encoder
	unzip   *zstd.Decoder
}

// Engine is what databases do differently for Results.
type Engine interface {
	// Write runs a transaction, whole or not at all; doing is for its error.
	Write(ctx context.Context, doing string, do func(*sql.Tx) error) error
	// Read runs do, which changes nothing, within a time limit.
	Read(ctx context.Context, doing string, do func(context.Context) error) error
	// Explain adds to an error what it means, and a hint.
	Explain(doing string, err error) error
	// Digest stores what the database has in tables of the document of a new result, whose number is n.
	Digest(ctx context.Context, tx *sql.Tx, n int64, doc *measure.Document) error
	// Freed is called after results were removed.
	Freed(ctx context.Context)
}

// Dialect is the SQL that databases have in different words. Conditions have a question mark for each parameter.
type Dialect struct {
	Marked   string // condition: the result has a mark, by kind and value
	Contains string // condition: its words contain a text
	Used     string // selects the bytes that results use
	Size     string // selects Stats.Bytes
}

// Prepare makes what compresses documents; dictionaries are those of other content.
func (s *Results) Prepare(dictionaries ...zstd.DOption) (err error) {
	if s.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
		return err
	}
	s.unzip, err = zstd.NewReader(nil, append(dictionaries, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxDocument))...)
	return err
}

// Close ends what Prepare began.
func (s *Results) Close() {
	if s.unzip != nil {
		s.unzip.Close()
	}
}

// Put implements Store.
func (s *Results) Put(ctx context.Context, doc *measure.Document, title string) (string, error) {
	k, err := newKept(doc, title)
	if err != nil {
		return "", err
	}
	zipped := s.zip.EncodeAll(k.text, nil)
	id := ""
	err = s.Engine.Write(ctx, "keeping a result in", func(tx *sql.Tx) error {
		var there bool
		id, there, err = name(ctx, tx, k)
		switch {
		case err != nil:
			return err
		case there:
			return entitle(ctx, tx, id, k.Title)
		}
		k.ID = id
		return s.insert(ctx, tx, k, zipped)
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// name returns the id of a stored document, or a free one for a new document.
func name(ctx context.Context, tx *sql.Tx, k kept) (id string, there bool, err error) {
	err = tx.QueryRowContext(ctx, "SELECT id FROM results WHERE sha256 = $1", k.sum).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err == nil, err
	}
	for _, id = range ids(k.StartedAt, k.sum) {
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM results WHERE id = $1", id).Scan(&n); err != nil || n == 0 {
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
	e, err := scanEntry(tx.QueryRowContext(ctx, "SELECT id, entry FROM results WHERE id = $1", id))
	if err != nil || e.Title != "" {
		return err
	}
	e.Title = title
	entry, err := marshal(e)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE results SET entry = $1, words = $2 WHERE id = $3", string(entry), words(e), id)
	return err
}

// insert writes a document with its entry and search keys.
func (s *Results) insert(ctx context.Context, tx *sql.Tx, k kept, zipped []byte) error {
	entry, err := marshal(k.Entry)
	if err != nil {
		return err
	}
	text, n := words(k.Entry), int64(0)
	size := len(zipped) + len(entry) + len(text)
	err = tx.QueryRowContext(ctx, `INSERT INTO results (id, sha256, started, command, plan, verdict, failed, size, words, entry)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING n`,
		k.ID, k.sum, sortTime(k.StartedAt), k.Command, k.Plan, k.Verdict, k.Error != "", size, text, string(entry)).Scan(&n)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO documents (result, zstd) VALUES ($1, $2)", n, zipped); err != nil {
		return err
	}
	for some := range slices.Chunk(marksOf(k), marksAtATime) {
		var args []any
		for _, m := range some {
			args = append(args, m.key, m.value, n)
		}
		values := strings.Repeat(", (?, ?, ?)", len(some))[2:]
		if _, err := tx.ExecContext(ctx, numbered("INSERT INTO marks (kind, value, result) VALUES "+values, 0), args...); err != nil {
			return err
		}
	}
	return s.Engine.Digest(ctx, tx, n, k.doc)
}

// marksAtATime is how many search keys one statement stores: a mesh of 128 hosts has 16,256 pairs.
const marksAtATime = 500

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
func (s *Results) Get(ctx context.Context, id string) (*measure.Document, error) {
	var zipped []byte
	err := s.Engine.Read(ctx, "reading "+id+" in", func(ctx context.Context) error {
		return s.DB.QueryRowContext(ctx, "SELECT zstd FROM documents JOIN results ON n = result WHERE id = $1", id).Scan(&zipped)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, missing(id)
	}
	if err != nil {
		return nil, err
	}
	text, err := s.unzip.DecodeAll(zipped, nil)
	if err != nil {
		return nil, s.Engine.Explain("reading "+id+" in", fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	doc, err := measure.Decode(text)
	if err != nil {
		return nil, s.Engine.Explain("reading "+id+" in", err)
	}
	return doc, nil
}

// Entry implements Store.
func (s *Results) Entry(ctx context.Context, id string) (e Entry, err error) {
	err = s.Engine.Read(ctx, "reading "+id+" in", func(ctx context.Context) error {
		e, err = scanEntry(s.DB.QueryRowContext(ctx, "SELECT id, entry FROM results WHERE id = $1", id))
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
func (s *Results) Stats(ctx context.Context) (all Stats, err error) {
	err = s.Engine.Read(ctx, "counting in", func(ctx context.Context) error {
		if err := s.DB.QueryRowContext(ctx, "SELECT count(*), ("+s.Dialect.Size+") FROM results").Scan(&all.Count, &all.Bytes); err != nil || all.Count == 0 {
			return err
		}
		newest, err := scanEntry(s.DB.QueryRowContext(ctx, "SELECT id, entry FROM results ORDER BY started DESC LIMIT 1"))
		if err != nil {
			return err
		}
		oldest, err := scanEntry(s.DB.QueryRowContext(ctx, "SELECT id, entry FROM results ORDER BY started LIMIT 1"))
		all.Newest, all.Oldest = newest.StartedAt, oldest.StartedAt
		return err
	})
	return all, err
}
