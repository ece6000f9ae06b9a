package faults

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"thru/internal/measure"
)

// NewRecord keeps the parts of a document that the diagnosis reads.
func NewRecord(f Fault, d *measure.Document) (Record, error) {
	copied, err := clone(d)
	if err != nil {
		return Record{}, err
	}
	trim(copied)
	return Record{f.Name, f.About, f.Forward, f.Back, copied}, nil
}

// clone copies a document.
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

// trim removes the conclusions, and the time series of the hosts in an experiment, which no rule reads.
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

// Write writes the record, compressed.
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
