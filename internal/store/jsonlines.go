package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"thru/internal/measure"
)

// line is one result of an export.
type line struct {
	ID       string          `json:"id"`
	Title    string          `json:"title"`
	KeptAt   time.Time       `json:"kept_at"`
	Document json.RawMessage `json:"document"`
}

// Export writes results as JSON lines, the newest first, and returns how many.
// Filter.Limit binds only where it is given.
func Export(ctx context.Context, w io.Writer, s Store, f Filter) (written int, err error) {
	left := f.Limit
	for {
		f.Limit = DefaultLimit
		if left > 0 {
			f.Limit = min(left-written, DefaultLimit)
		}
		found, more, err := s.Find(ctx, f)
		if err != nil {
			return written, err
		}
		for _, e := range found {
			if err := exportOne(ctx, w, s, e); err != nil {
				return written, err
			}
			written++
			f.Before = e.ID
		}
		if !more || written == left {
			return written, nil
		}
	}
}

// exportOne writes one line. A result that was deleted meanwhile is passed over.
func exportOne(ctx context.Context, w io.Writer, s Store, e Entry) error {
	doc, err := s.Get(ctx, e.ID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := encode(doc)
	if err != nil {
		return failed("exporting "+e.ID, err)
	}
	text, err := marshal(line{e.ID, e.Title, e.KeptAt, c.text})
	if err != nil {
		return failed("exporting "+e.ID, err)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return failed("exporting", err)
	}
	return nil
}

// BadLine is one that Import has left out.
type BadLine struct {
	Line int    `json:"line"` // from 1
	Why  string `json:"why"`
}

// Imported is what Import has done.
type Imported struct {
	Kept int       `json:"kept"` // lines whose result is in the store now, or was already
	Bad  int       `json:"bad"`  // lines that were left out
	Left []BadLine `json:"left_out,omitempty"`
}

const (
	mostNamed = 100                 // lines left out that are named
	mostLine  = MaxDocument + 1<<20 // bytes of one, with what stands beside the document
)

// Import keeps the results of JSON lines: those of Export, or documents as they
// are. Lines that hold no result are left out and named. The error is that of
// reading r or of the store; what was kept until then is in the store.
func Import(ctx context.Context, r io.Reader, s Store) (done Imported, err error) {
	return importLines(ctx, r, s, mostLine)
}

// importLines leaves out lines of more than so many bytes.
func importLines(ctx context.Context, r io.Reader, s Store, most int) (done Imported, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		text, long, err := readLine(in, most)
		if errors.Is(err, io.EOF) && len(text) == 0 && !long {
			return done, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return done, failed("importing", err)
		}
		if text = bytes.TrimSpace(text); len(text) == 0 && !long {
			continue
		}
		why := error(nil)
		if long {
			why = fmt.Errorf("it is longer than %d bytes", most)
		} else if why, err = keepLine(ctx, s, text); err != nil {
			return done, err
		}
		if why == nil {
			done.Kept++
			continue
		}
		if done.Bad++; done.Bad <= mostNamed {
			done.Left = append(done.Left, BadLine{number, why.Error()})
		}
	}
}

// keepLine keeps the result of a line. Why is of a line that holds none; err is
// of the store.
func keepLine(ctx context.Context, s Store, text []byte) (why, err error) {
	doc, title, why := readResult(text)
	if why != nil {
		return why, nil
	}
	_, err = s.Put(ctx, doc, title)
	var bad unfit
	if errors.As(err, &bad) {
		return bad, nil
	}
	return nil, err
}

// readResult reads a line: what Export writes, or a document.
func readResult(text []byte) (doc *measure.Document, title string, why error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, "", err
	}
	if l.Document != nil {
		text = l.Document
	}
	doc, why = measure.Decode(text)
	return doc, l.Title, why
}

// readLine reads up to the end of a line; of one that is longer than most bytes
// nothing is kept.
func readLine(in *bufio.Reader, most int) (text []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(text)+len(part) > most; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, long, err
		}
	}
}
