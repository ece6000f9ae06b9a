package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
)

// content is a document as it is kept.
type content struct {
	text []byte // JSON without spaces
	sum  string // SHA-256 of text in hexadecimal: the same document has the same
}

// encode makes one form of a document, whether it was measured just now or read
// from a file.
func encode(doc *measure.Document) (content, error) {
	text, err := marshal(measure.Complete(doc))
	if err == nil && bytes.Contains(text, []byte(`\ufffd`)) { // bytes that are no UTF-8 are written otherwise once they were read
		var again measure.Document
		if err = json.Unmarshal(text, &again); err == nil {
			text, err = marshal(&again)
		}
	}
	switch {
	case err != nil:
		return content{}, fmt.Errorf("encoding the result: %w", err)
	case len(text) > MaxDocument:
		return content{}, fault.Failf("write it to a file: --json > FILE", "the result is larger than %d MiB", MaxDocument>>20)
	}
	sum := sha256.Sum256(text)
	return content{text, hex.EncodeToString(sum[:])}, nil
}

// marshal leaves "<" and ">" as they are, as thru prints documents.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// idTime is the part of an id by which it sorts.
const idTime = "20060102-150405"

// ids are the names that a document can have: the first that no other one has
// is taken.
func ids(started time.Time, sum string) []string {
	base := started.UTC().Format(idTime) + "-"
	return []string{base + sum[:4], base + sum[:8], base + sum[:16], base + sum}
}

// checkTime refuses what ids and the order by time cannot hold.
func checkTime(t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("it began in the year %d", year)
	}
	return nil
}

// sortTime is a moment as text that sorts by time.
func sortTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// kept is a document with its entry, and all that it is found by.
type kept struct {
	Entry
	content
	labels []label
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
