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
// Filter.Limit applies only if it is set.
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

// exportOne writes one line. It skips a result that was deleted meanwhile.
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

// BadLine is a line that Import has skipped.
type BadLine struct {
	Line int    `json:"line"` // from 1
	Why  string `json:"why"`
}

// Imported is the result of Import.
type Imported struct {
	Kept int       `json:"kept"` // lines whose result is now in the store, or was already
	Bad  int       `json:"bad"`  // skipped lines
	Left []BadLine `json:"left_out,omitempty"`
}

const (
	mostNamed = 100                 // skipped lines that are listed
	mostLine  = MaxDocument + 1<<20 // bytes of a line, with the fields around the document
)

// mostNoJSON is the number of leading lines without JSON after which a text is given up.
const mostNoJSON = 3

// errNoLines is the error of a text in another format.
var errNoLines = errors.New("the file has neither JSON lines nor a result")

// Import stores the results of JSON lines, from Export or documents as they are, or of
// one document of several lines as --json prints it. title makes a title for a document
// whose line has none. Lines without a result are skipped and listed. The error is that
// of reading r, of the store, or of a text without any JSON; the results before it are
// in the store.
func Import(ctx context.Context, r io.Reader, s Store, title func(*measure.Document) string) (Imported, error) {
	return importLines(ctx, r, &importer{store: s, title: title, most: mostLine})
}

// importer is the state of one import.
type importer struct {
	store Store
	title func(*measure.Document) string
	most  int // bytes of a line

	lines  int // lines read, except empty ones
	noJSON int // lines without JSON
	done   Imported
}

func importLines(ctx context.Context, r io.Reader, i *importer) (Imported, error) {
	in := bufio.NewReaderSize(&jsonText{in: r}, 64<<10)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" { // written by editors on Windows
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

// take stores the result of a line, or lists what is wrong with it. The error ends the
// import.
func (i *importer) take(ctx context.Context, number int, text []byte, long bool) error {
	why, err := fmt.Errorf("the line is longer than %d bytes", i.most), error(nil)
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

// givenUp returns the error of a text without any result; its lines are not listed.
func (i *importer) givenUp() error {
	first := i.done.Left[0]
	i.done = Imported{}
	return fault.Failf("import a file that thru history export or --json wrote; extract the result of a page with thru report PAGE --json > FILE",
		"store: importing: %w: line %d: %s", errNoLines, first.Line, first.Why)
}

// keepLine stores the result of a line. why is the fault of a line without a result; err
// is that of the store.
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

// readResult parses a line: from Export, or a document.
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

// readRest reads all that follows the first line of a document; beyond most bytes it
// keeps nothing, and reads on for at most mostPassed bytes.
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

// Bounds of input that is not a result, in bytes.
const (
	mostPassed = 64 << 20 // read and dropped of a line that is too long
	mostElse   = 64 << 10 // kept of a line that does not begin as an object
	mostBlanks = 1 << 20  // in a row
)

// jsonText reads text, up to a byte that JSON cannot contain.
type jsonText struct {
	in     io.Reader
	blanks int // in a row
}

// Read implements io.Reader.
func (j *jsonText) Read(p []byte) (int, error) {
	n, err := j.in.Read(p)
	blanks := j.blanks
	for i, b := range p[:n] {
		if blanks++; b > ' ' { // zeros of a device or a sparse file are blanks too
			blanks = 0
		}
		if blanks > mostBlanks {
			return i, fmt.Errorf("%w: more than %d blanks or zeros in a row", errNoText, mostBlanks)
		}
	}
	j.blanks = blanks
	return n, err
}

// errNoText is the error of a text with bytes that JSON cannot contain.
var errNoText = errors.New("the line is not a result")

// errEndless is the error of a line or a document that is too long to read to its end.
var errEndless = errors.New("the line is longer than a result can be, and was not fully read")

// readLine reads up to the end of a line; of a line longer than most bytes it keeps
// nothing, and reads on for at most mostPassed bytes.
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
