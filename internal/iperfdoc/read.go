package iperfdoc

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"thru/internal/fault"
	"thru/internal/measure"
)

// MaxFile limits the input of Read, in bytes.
const MaxFile = 64 << 20

// maxDocuments limits the documents of one file.
const maxDocuments = 1000

// maxIntervals limits the intervals of a document: more than a day of seconds.
const maxIntervals = 100_000

const splitIt = "split the file: each document is a separate result"

const notIperf3 = "give a file that `iperf3 -J`, `iperf3 --json-stream` or `thru ... --json` wrote"

// Read reads the output of iperf3 3.1 to 3.21 with -J or --json-stream: one document or several, with any other text between them. Each becomes an ordinary
// result whose figures stat.Summarise fills in.
//
// A truncated document is kept as far as it goes, with a warning in it; Read returns the warnings about the whole file. An error, with a hint, means that the
// file holds no iperf3 document, or exceeds a limit.
func Read(r io.Reader) (docs []*measure.Document, warnings []string, err error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, nil, fmt.Errorf("iperfdoc: reading: %w", err)
	}
	if len(raw) > MaxFile {
		return nil, nil, fault.Usagef(splitIt, "iperfdoc: reading: more than %d MiB", MaxFile>>20)
	}
	all, err := scan(decoded(raw))
	if errors.Is(err, errValues) {
		return nil, nil, fault.Usagef(splitIt, "iperfdoc: reading: %w", err)
	}
	if err != nil {
		return nil, nil, fault.Usagef(notIperf3, "iperfdoc: reading: %w", err)
	}
	all, twice := unique(all)
	if len(all) == 0 {
		return nil, nil, fault.Usagef(notIperf3, "iperfdoc: reading: the file has no result of thru or iperf3")
	}
	if twice > 0 {
		warnings = append(warnings, fmt.Sprintf("thru ignored repeated documents of the file (documents: %d)", twice))
	}
	if len(all) > maxDocuments {
		warnings = append(warnings, fmt.Sprintf("the file has %d documents: thru uses the first %d", len(all), maxDocuments))
		all = all[:maxDocuments]
	}
	for _, f := range all {
		doc, err := convert(f)
		if err != nil {
			return nil, nil, fault.Usagef(notIperf3, "iperfdoc: reading: %w", err)
		}
		docs = append(docs, doc)
	}
	return docs, warnings, nil
}

// decoded returns the text without byte order mark. PowerShell redirects in UTF-16.
func decoded(raw []byte) string {
	var low int
	switch text := string(raw); {
	case strings.HasPrefix(text, "\xef\xbb\xbf"):
		return text[3:]
	case strings.HasPrefix(text, "\xff\xfe"):
		low = 0
	case strings.HasPrefix(text, "\xfe\xff"):
		low = 1
	default:
		return text
	}
	var units []uint16
	for i := 2; i+1 < len(raw); i += 2 {
		units = append(units, uint16(raw[i+low])|uint16(raw[i+1-low])<<8)
	}
	return string(utf16.Decode(units))
}

// found is a document as it is in the file.
type found struct {
	root node
	cut  error // why it is truncated
}

// scan finds the documents in a text, and assembles those that are split into lines. It skips everything else.
func scan(text string) ([]found, error) {
	values := maxValues
	var lines assembler
	var all []found
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			break
		}
		at += i
		p := lenient{text: text, at: at, values: &values}
		root, err := p.value(0)
		// iperf3 indents the content: a brace in the first column is the next document.
		if next := strings.Index(text[at:p.at], "\n{"); err != nil && next >= 0 {
			p = lenient{text: text[:at+next], at: at, values: &values}
			root, err = p.value(0)
			p.at = at + next
		}
		if errors.Is(err, errDepth) || errors.Is(err, errValues) {
			return nil, err
		}
		switch f := (found{root, err}); {
		case root.get("event").kind == kindText:
			all = append(all, lines.add(f)...)
		case f.isDocument():
			all = append(all, f)
		}
		at = max(p.at, at+1)
	}
	return append(all, lines.flush(nil)...), nil
}

// isDocument distinguishes a document from other JSON. Rows of figures have the same keys, but with numbers.
func (f found) isDocument() bool {
	r := f.root
	return r.get("start").kind == kindObject || r.get("intervals").kind == kindList && r.get("end").kind == kindObject
}

// assembler assembles the lines of --json-stream.
type assembler struct {
	root  node
	begun bool
}

// add adds one line, and returns the documents that this line completes or ends.
func (a *assembler) add(f found) []found {
	name, data := f.root.get("event").str(), f.root.get("data")
	if f.cut != nil {
		return a.flush(f.cut)
	}
	var done []found
	if name == "start" || !a.begun {
		done = a.flush(errCut)
		a.begun = true
		a.root = node{kind: kindObject, items: []member{{"intervals", node{kind: kindList}}}}
	}
	if name == "interval" {
		list := &a.root.items[0].value
		list.items = append(list.items, member{value: data})
		return done
	}
	a.root.items = append(a.root.items, member{name, data})
	if name == "end" {
		done = append(done, found{a.root, nil})
		*a = assembler{}
	}
	return done
}

// flush ends a document that has no end.
func (a *assembler) flush(cut error) []found {
	f := found{a.root, cut}
	if cut == nil {
		f.cut = errCut
	}
	begun := a.begun
	*a = assembler{}
	if !begun || !f.isDocument() {
		return nil
	}
	return []found{f}
}

// unique drops duplicate documents of a test: some versions print a document twice, and --json-stream may be followed by the whole document. It keeps the
// complete one.
func unique(all []found) (kept []found, twice int) {
	at := map[string]int{}
	for _, f := range all {
		start := f.root.get("start")
		name := start.get("cookie").str()
		if name == "" {
			kept = append(kept, f)
			continue
		}
		if start.has("accepted_connection") { // the file may hold both a client's and a server's document
			name += " server"
		}
		i, known := at[name]
		switch {
		case !known:
			at[name] = len(kept)
			kept = append(kept, f)
		case kept[i].cut != nil && f.cut == nil:
			kept[i] = f
			fallthrough
		default:
			twice++
		}
	}
	return kept, twice
}
