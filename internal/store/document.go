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

// content is a document in its stored form.
type content struct {
	text []byte // JSON without spaces
	sum  string // SHA-256 of text in hexadecimal, the same for the same document
}

// encode returns the same form of a document, whether it was just measured or read
// from a file.
func encode(doc *measure.Document) (content, error) {
	text, err := marshal(measure.Complete(doc))
	if err == nil && bytes.Contains(text, []byte(`\ufffd`)) { // invalid UTF-8 is written differently after it was read once
		var again measure.Document
		if err = json.Unmarshal(text, &again); err == nil {
			text, err = marshal(&again)
		}
	}
	switch {
	case err != nil:
		return content{}, fmt.Errorf("encoding the result: %w", err)
	case len(text) > MaxDocument:
		return content{}, fault.Failf("write the result to a file: --json > FILE", "the result is larger than %d MiB", MaxDocument>>20)
	}
	sum := sha256.Sum256(text)
	return content{text, hex.EncodeToString(sum[:])}, nil
}

// marshal does not escape "<" and ">", as in the documents that thru prints.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// idTime is the layout of the part of an id by which it sorts.
const idTime = "20060102-150405"

// ids returns the possible ids of a document: the first that no other document has is
// used.
func ids(started time.Time, sum string) []string {
	base := started.UTC().Format(idTime) + "-"
	return []string{base + sum[:4], base + sum[:8], base + sum[:16], base + sum}
}

// checkTime rejects a time that ids and the order by time cannot hold.
func checkTime(t time.Time) error {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("its start time is in the year %d", year)
	}
	return nil
}

// sortTime formats a time as text that sorts by time.
func sortTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// kept is a document with its entry and search keys.
type kept struct {
	Entry
	content
	labels []label
	doc    *measure.Document
}

// newKept returns a document with its entry, without an id.
func newKept(doc *measure.Document, title string) (kept, error) {
	c, err := encode(doc)
	if err == nil {
		err = checkTime(doc.StartedAt)
	}
	if err != nil {
		return kept{}, failed("keeping a result", unfit{err})
	}
	k := kept{EntryOf(doc, title), c, labelsOf(doc), doc}
	k.Bytes, k.KeptAt = int64(len(c.text)), time.Now().UTC()
	return k, nil
}
