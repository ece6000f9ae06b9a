package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"thru/internal/fault"
	"thru/internal/measure"
)

// MaxDocument bounds what ReadJSON reads, in bytes.
const MaxDocument = 64 << 20

// JSON prints the document of docs/result.md: one value, indented, with a
// newline behind. It writes nothing where the document cannot be encoded.
func JSON(w io.Writer, d *measure.Document) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(complete(d)); err != nil {
		return fmt.Errorf("report: encoding the result: %w", err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("report: writing JSON: %w", err)
	}
	return nil
}

// complete is a copy that names its schema and has empty lists where the
// schema wants lists, so that a reader never meets null.
func complete(d *measure.Document) *measure.Document {
	c := *d
	c.Schema = measure.Schema
	c.EndPoints = list(c.EndPoints)
	c.Cells = list(c.Cells)
	c.Tuning = completeTuning(c.Tuning)
	for i := range c.Cells {
		runs := list(c.Cells[i].Runs)
		for j := range runs {
			flows := list(runs[j].Flows)
			for k := range flows {
				flows[k].Sender = completeEvidence(flows[k].Sender)
				flows[k].Receiver = completeEvidence(flows[k].Receiver)
				flows[k].Captures, flows[k].Crossing = completeCaptures(flows[k].Captures), completeCrossing(flows[k].Crossing)
			}
			runs[j].Flows = flows
		}
		c.Cells[i].Runs = runs
	}
	return &c
}

// completeTuning has lists of commands and of cells where there are none.
func completeTuning(t *measure.Tuning) *measure.Tuning {
	if t == nil {
		return nil
	}
	c := *t
	c.Advice, c.Attempts, c.Journey = slices.Clone(t.Advice), slices.Clone(t.Attempts), slices.Clone(t.Journey)
	for i := range c.Advice {
		c.Advice[i].Commands = completeCommands(c.Advice[i].Commands)
	}
	for i := range c.Attempts {
		c.Attempts[i].Commands = completeCommands(c.Attempts[i].Commands)
	}
	for i := range c.Journey {
		c.Journey[i].Cells = list(c.Journey[i].Cells)
	}
	return &c
}

func completeCommands(all []measure.Commands) []measure.Commands {
	all = slices.Clone(all)
	for i := range all {
		all[i].Set = list(all[i].Set)
	}
	return all
}

func completeEvidence(e *measure.Evidence) *measure.Evidence {
	if e == nil {
		return nil
	}
	c := *e
	c.Streams, c.Bins = list(c.Streams), list(c.Bins)
	return &c
}

func completeCaptures(captures []measure.Capture) []measure.Capture {
	if len(captures) == 0 {
		return nil
	}
	all := list(captures)
	for i := range all {
		conns := list(all[i].Conns)
		for j := range conns {
			if t := conns[j].Course; t != nil {
				c := *t
				c.Sent, c.Acked, c.Edge, c.Flight, c.Window, c.RTT = list(c.Sent), list(c.Acked), list(c.Edge), list(c.Flight), list(c.Window), list(c.RTT)
				conns[j].Course = &c
			}
		}
		all[i].Conns = conns
	}
	return all
}

func completeCrossing(x *measure.Crossing) *measure.Crossing {
	if x == nil {
		return nil
	}
	c := *x
	c.Conns = list(c.Conns)
	return &c
}

// list is a copy that is never nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

// ReadJSON reads one document of the schema that this program writes. Unknown
// fields are passed over: a minor version may add some.
func ReadJSON(r io.Reader) (*measure.Document, error) {
	const hint = "give a file that `thru ... --json` has written"
	text, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("report: reading a result: %w", err)
	}
	if len(text) > MaxDocument {
		return nil, fault.Failf(hint, "report: reading a result: more than %d MiB", MaxDocument>>20)
	}
	var head struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fault.Failf(hint, "report: reading a result: %w", err)
	}
	if err := checkSchema(head.Schema); err != nil {
		return nil, fault.Failf(hint, "report: reading a result: %w", err)
	}
	var d measure.Document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fault.Failf(hint, "report: reading a result: %w", err)
	}
	return &d, nil
}

func checkSchema(name *string) error {
	switch {
	case name == nil:
		return errors.New("it names no schema")
	case *name != measure.Schema:
		return fmt.Errorf("its schema is %q, this thru reads %q", clean(*name), measure.Schema)
	default:
		return nil
	}
}
