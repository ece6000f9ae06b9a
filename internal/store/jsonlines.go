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

	"thru/internal/fault"
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

// mostNoJSON is after how many lines a text that began with no JSON is given up.
const mostNoJSON = 3

// errNoLines is the error of a text that is something else.
var errNoLines = errors.New("it holds neither JSON lines nor a result")

// Import keeps the results of JSON lines, those of Export or documents as they are,
// or of one document of several lines as --json prints it. Title makes a title of a
// document where its line has none. Lines that hold no result are left out and named.
// The error is that of reading r, of the store, or of a text that is no JSON at all;
// what was kept until then is in the store.
func Import(ctx context.Context, r io.Reader, s Store, title func(*measure.Document) string) (Imported, error) {
	return importLines(ctx, r, &importer{store: s, title: title, most: mostLine})
}

// importer is an import under way.
type importer struct {
	store Store
	title func(*measure.Document) string
	most  int // bytes of a line

	lines  int // read, but for empty ones
	noJSON int // of these
	done   Imported
}

func importLines(ctx context.Context, r io.Reader, i *importer) (Imported, error) {
	in := bufio.NewReaderSize(&jsonText{in: r}, 64<<10)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" { // as editors of Windows begin a text
		_, _ = in.Discard(3)
	}
	for number := 1; ctx.Err() == nil; number++ {
		text, long, err := readLine(in, i.most)
		if errors.Is(err, io.EOF) && len(text) == 0 && !long {
			if i.lines > 0 && i.noJSON == i.lines {
				err = i.givenUp()
				return i.done, err
			}
			return i.done, nil
		}
		if err == nil && i.lines == 0 && string(bytes.TrimSpace(text)) == "{" {
			text, long, err = readRest(in, text, i.most)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return i.done, failed("importing", err)
		}
		if text = bytes.TrimSpace(text); len(text) == 0 && !long {
			continue
		}
		if err := i.take(ctx, number, text, long); err != nil {
			return i.done, err
		}
	}
	return i.done, ctx.Err()
}

// take keeps the result of a line, or names what is wrong with it. The error ends
// the import.
func (i *importer) take(ctx context.Context, number int, text []byte, long bool) error {
	why, err := fmt.Errorf("it is longer than %d bytes", i.most), error(nil)
	if !long {
		why, err = i.keepLine(ctx, text)
	}
	if err != nil {
		return err
	}
	i.lines++
	if why == nil {
		i.done.Kept++
		return nil
	}
	if i.done.Bad++; i.done.Bad <= mostNamed {
		i.done.Left = append(i.done.Left, BadLine{number, why.Error()})
	}
	if !long && !json.Valid(text) {
		i.noJSON++
	}
	if i.lines == mostNoJSON && i.noJSON == i.lines || i.lines == mostNamed && i.done.Kept == 0 {
		return i.givenUp()
	}
	return nil
}

// givenUp is the error of a text of which no line was a result; they are not named each.
func (i *importer) givenUp() error {
	first := i.done.Left[0]
	i.done = Imported{}
	return fault.Failf("import what thru history export or --json has written; of a page with its data, thru report PAGE --json > FILE makes such a file",
		"store: importing: %w: line %d: %s", errNoLines, first.Line, first.Why)
}

// keepLine keeps the result of a line. Why is of a line that holds none; err is
// of the store.
func (i *importer) keepLine(ctx context.Context, text []byte) (why, err error) {
	doc, title, why := readResult(text)
	if why != nil {
		return why, nil
	}
	if title == "" && i.title != nil {
		title = i.title(doc)
	}
	_, err = i.store.Put(ctx, doc, title)
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

// readRest reads all that follows the first line of a document; nothing is kept of
// more than most bytes, and mostPassed are passed over.
func readRest(in *bufio.Reader, begin []byte, most int) (text []byte, long bool, err error) {
	rest, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if len(begin)+len(rest) <= most {
		return append(begin, rest...), false, err
	}
	if err == nil {
		if _, err = io.CopyN(io.Discard, in, mostPassed); err == nil {
			err = errEndless
		}
	}
	return nil, true, err
}

// Bounds in bytes of what is no result.
const (
	mostPassed = 64 << 20 // passed over of a line that is too long
	mostElse   = 64 << 10 // kept of a line that does not begin as an object
	mostBlanks = 1 << 20  // in a row
)

// jsonText reads text, up to what no JSON holds.
type jsonText struct {
	in     io.Reader
	blanks int // in a row
}

// Read implements io.Reader.
func (j *jsonText) Read(p []byte) (int, error) {
	n, err := j.in.Read(p)
	for i, b := range p[:n] {
		if j.blanks++; b > ' ' { // zeros of a device or a sparse file are blanks too
			j.blanks = 0
		}
		if j.blanks > mostBlanks {
			return i, fmt.Errorf("%w: more than %d blanks or zeros in a row", errNoText, mostBlanks)
		}
	}
	return n, err
}

// errNoText is of what no program writes as JSON.
var errNoText = errors.New("it holds what no result holds")

// errEndless is of a line or a document without an end in sight.
var errEndless = errors.New("it is longer than a result can be, and was not read to its end")

// readLine reads up to the end of a line; of one that is longer than most bytes
// nothing is kept, and it is passed over only for mostPassed bytes.
func readLine(in *bufio.Reader, most int) (text []byte, long bool, err error) {
	for size := 0; ; {
		part, err := in.ReadSlice('\n')
		if size == 0 && !bytes.HasPrefix(bytes.TrimLeft(part, " \t\r\n"), []byte("{")) {
			most = min(most, mostElse)
		}
		if size += len(part); size > most+mostPassed {
			return nil, true, errEndless
		}
		if long = size > most; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, long, err
		}
	}
}
