package faults

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"thru/internal/measure"
)

// Record is a fault with the document of its measurement, from which the
// diagnosis is made anew by a test of package diagnose.
type Record struct {
	Fault    string            `json:"fault"`
	About    string            `json:"about"`
	Forward  *Want             `json:"forward,omitempty"`
	Back     *Want             `json:"back,omitempty"`
	Document *measure.Document `json:"document"`
}

// Judge says what the diagnosis that the document has now says of the fault.
func (r Record) Judge() []Row {
	return Judge(Fault{Name: r.Fault, Forward: r.Forward, Back: r.Back}, r.Document)
}

// ReadRecord reads what Write wrote, also by an earlier schema of documents.
func ReadRecord(from io.Reader) (r Record, err error) {
	z, err := gzip.NewReader(from)
	if err == nil {
		var text struct {
			*Record
			Document json.RawMessage `json:"document"`
		}
		text.Record = &r
		if err = json.NewDecoder(z).Decode(&text); err == nil {
			r.Document, err = measure.Decode(text.Document)
		}
	}
	if err != nil {
		return r, fmt.Errorf("faults: reading a record: %w", err)
	}
	return r, nil
}
