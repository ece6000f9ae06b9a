// Package library stores and finds results: in the store, in folders, in files of thru or iperf3, and
// by words (last, a span of time, a run). It signs reports and verifies signatures, and keeps the facts
// that earlier commands found about hosts and paths.
package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"thru/internal/cause"
	"thru/internal/fault"
	"thru/internal/iperfdoc"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Reader reads the results and captures that a user names: files, stdin, and stored ones.
type Reader struct {
	In      io.Reader
	Version string       // of thru
	Line    func(string) // receives warnings
	Archive Archive
}

// Result is a result with a name that distinguishes it from others.
type Result struct {
	Name string
	Doc  *measure.Document
}

// Results reads the results in a file: one of thru, or one or more of iperf3. It
// diagnoses them with this version's rules.
func (r *Reader) Results(ctx context.Context, from *Source, link stat.Link) ([]Result, error) {
	text, err := fault.Until(ctx, from.Name, func() ([]byte, error) { return r.read(from) })
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return nil, notOpened(from.Name, errors.New("the file is empty"))
	}
	if isCapture(text) {
		return nil, fault.Usagef("thru explain "+from.Name+" explains it", "%s is a packet capture, not a result", from.Name)
	}
	if isResult(text) || isPage(text) {
		read := report.ReadJSON
		if isPage(text) {
			read = report.Embedded
			if v := Verify(from.Name, text, "", ""); v.Signed && !v.Valid {
				r.Line("warning: " + from.Name + ": " + v.Reason + "; thru shows the result in the page")
			}
		}
		doc, err := read(bytes.NewReader(text))
		if err != nil {
			return nil, fault.New(fault.Usage, fault.Hint(err), "%s: %w", fault.Named(from.Name), err)
		}
		rediagnose(doc, link)
		return []Result{{from.Name, doc}}, nil
	}
	docs, warnings, err := iperfdoc.Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fault.Named(from.Name), err)
	}
	for _, w := range warnings {
		r.Line("warning: " + from.Name + ": " + w)
	}
	var all []Result
	for i, doc := range docs {
		doc.Thru = r.Version
		Summarise(doc, link)
		name := from.Name
		if len(docs) > 1 {
			name = fmt.Sprintf("%s, test %d of %d", from.Name, i+1, len(docs))
		}
		all = append(all, Result{name, doc})
	}
	return all, nil
}

// read reads all of a source, up to the largest size of a result.
func (r *Reader) read(s *Source) ([]byte, error) {
	if s.Size > iperfdoc.MaxFile {
		return nil, fault.Usagef("split the file: each document is a separate result", "%s has %s; a result has at most %s", s.Name, unit.Size(s.Size), unit.Size(iperfdoc.MaxFile))
	}
	text, err := io.ReadAll(io.LimitReader(s, iperfdoc.MaxFile+1))
	if err != nil {
		return nil, notOpened(s.Name, err)
	}
	return text, nil
}

// isResult distinguishes thru's documents from iperf3's.
func isResult(text []byte) bool {
	var head struct {
		Schema *string `json:"schema"`
	}
	return json.Unmarshal(text, &head) == nil && head.Schema != nil
}

// isPage recognizes an HTML page written by thru.
func isPage(text []byte) bool { return bytes.HasPrefix(text, []byte("<!DOCTYPE html>")) }

// isCapture recognizes pcap files, of either byte order and with times in
// microseconds or nanoseconds, and pcapng (draft-ietf-opsawg-pcap, -pcapng).
func isCapture(text []byte) bool {
	for _, magic := range []string{"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1", "\xa1\xb2\xcd\x34", "\x34\xcd\xb2\xa1", "\x0a\x0d\x0d\x0a"} {
		if bytes.HasPrefix(text, []byte(magic)) {
			return true
		}
	}
	return false
}

// rediagnose renews the findings of a stored document, and with a stated link rate
// the figures that depend on it.
func rediagnose(doc *measure.Document, link stat.Link) {
	if link.RateBps > 0 {
		Summarise(doc, link)
		return
	}
	together(doc)
	cause.Diagnose(doc)
	cause.Rungs([]*measure.Document{doc})
}

// together judges the runs at the same time in a document that was stored while its
// plan was running.
func together(doc *measure.Document) {
	if doc.Plan != nil && doc.Groups == nil {
		stat.Groups(doc)
		stat.Compare(doc)
	}
}

// Summarise computes the figures from the evidence in a document.
func Summarise(doc *measure.Document, link stat.Link) {
	facts := map[string]*measure.Facts{}
	for _, p := range doc.EndPoints {
		facts[p.Name] = p.Facts
	}
	for i := range doc.Cells {
		stat.Summarise(&doc.Cells[i], facts, link)
	}
	before := doc.Verdict
	doc.Verdict = stat.Verdict(doc.Cells)
	if doc.Plan != nil {
		stat.Groups(doc)
		stat.Ladder(doc, func(string) stat.Link { return link })
		stat.Compare(doc)
	}
	if len(doc.Targets) > 0 { // the targets of the run still decide
		doc.Verdict = before
	}
	cause.Diagnose(doc)
	cause.Rungs([]*measure.Document{doc})
}

// WholeFile reads a file, or stdin, up to the largest size of a report.
func (r *Reader) WholeFile(path string) ([]byte, error) {
	s, err := r.openOne(context.Background(), path)
	if err != nil {
		return nil, err
	}
	defer CloseSources([]*Source{s})
	return r.read(s)
}
