package iperfdoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"thru/internal/measure"
)

// Report is a whole test in iperf3's terms.
type Report struct {
	Test      Test
	Intervals []Interval
	End       End
	Error     string // why the test failed, if it did
}

// Write prints the document that `iperf3 -J` would print: the first main cell of doc, with the other direction where both ran at once. See FromDocument.
func Write(w io.Writer, doc *measure.Document) error { return FromDocument(doc).Write(w) }

// Write prints the report as one JSON document. As in iperf3, a test that never began has empty parts and an error.
func (r Report) Write(w io.Writer) error {
	out := jsonDoc{Start: r.Test.head(), Intervals: []jsonInterval{}, End: struct{}{}, Title: r.Test.Title, Extra: r.Test.Extra, Error: r.Error}
	if r.Test.Protocol != "" {
		out.Start = r.Test.json()
	}
	for _, i := range r.Intervals {
		out.Intervals = append(out.Intervals, i.json(r.Test.Protocol))
	}
	if len(r.End.Directions) > 0 {
		out.End = r.End.json(r.Test.Protocol, r.Test.Server)
	}
	out.ServerText = r.End.ServerText
	if json.Valid([]byte(r.End.ServerJSON)) {
		out.ServerJSON = json.RawMessage(r.End.ServerJSON)
	}
	text, err := encode(out, "\t")
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("iperfdoc: writing the document: %w", err)
	}
	return nil
}

// encode returns v as JSON with a final newline, without HTML escapes.
func encode(v any, indent string) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("iperfdoc: encoding: %w", err)
	}
	return out.Bytes(), nil
}
