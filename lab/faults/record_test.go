package faults

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"thru/internal/measure"
)

// NewRecord keeps of a document what the diagnosis reads.
func NewRecord(f Fault, d *measure.Document) (Record, error) {
	copied, err := clone(d)
	if err != nil {
		return Record{}, err
	}
	trim(copied)
	return Record{f.Name, f.About, f.Forward, f.Back, copied}, nil
}

// clone leaves the original as it is.
func clone(d *measure.Document) (*measure.Document, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("faults: copying a document: %w", err)
	}
	var c measure.Document
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("faults: copying a document: %w", err)
	}
	return &c, nil
}

// trim takes away what was concluded, and what no rule reads of an experiment:
// the course of its hosts.
func trim(d *measure.Document) {
	d.Findings, d.Steps, d.Advice, d.Warnings, d.Arguments = nil, nil, nil, nil, nil
	for i := range d.Cells {
		c := &d.Cells[i]
		c.Diagnosis, c.Warnings, c.Missing = measure.Diagnosis{}, nil, nil
		for _, r := range c.Runs {
			for _, f := range r.Flows {
				trimEvidence(f.Sender, c.Baseline)
				trimEvidence(f.Receiver, c.Baseline)
			}
		}
	}
}

func trimEvidence(e *measure.Evidence, beside bool) {
	if e == nil {
		return
	}
	if e.Latency != nil {
		e.Latency.Histogram = ""
	}
	for i := range e.PerSec {
		s := &e.PerSec[i]
		s.Proto, s.Memory, s.Worker, s.Softnet = nil, nil, nil, nil
	}
	if beside {
		e.PerSec = nil
	}
}

// Write writes it compressed.
func (r Record) Write(w io.Writer) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err == nil {
		err = json.NewEncoder(z).Encode(r)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return fmt.Errorf("faults: writing the record of %s: %w", r.Fault, err)
	}
	return nil
}
