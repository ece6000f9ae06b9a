package faults

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"thru/internal/measure"
)

// Record is a fault with the document of its measurement. A test of package diagnose repeats the diagnosis
// from it.
type Record struct {
	Fault    string            `json:"fault"`
	About    string            `json:"about"`
	Forward  *Want             `json:"forward,omitempty"`
	Back     *Want             `json:"back,omitempty"`
	Document *measure.Document `json:"document"`
}

// Judge compares the document's current diagnosis with the fault.
func (r Record) Judge() []Row {
	return Judge(Fault{Name: r.Fault, Forward: r.Forward, Back: r.Back}, r.Document)
}

// ReadRecord reads what Write wrote, including documents of an earlier schema.
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
