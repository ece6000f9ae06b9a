package measure

import "slices"

// Complete is a copy that names its schema and has empty lists where the schema
// wants lists, so that a reader of its JSON never meets null.
func Complete(d *Document) *Document {
	c := *d
	c.Schema = Schema
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
func completeTuning(t *Tuning) *Tuning {
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

func completeCommands(all []Commands) []Commands {
	all = slices.Clone(all)
	for i := range all {
		all[i].Set = list(all[i].Set)
	}
	return all
}

func completeEvidence(e *Evidence) *Evidence {
	if e == nil {
		return nil
	}
	c := *e
	c.Streams, c.Bins = list(c.Streams), list(c.Bins)
	return &c
}

func completeCaptures(captures []Capture) []Capture {
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

func completeCrossing(x *Crossing) *Crossing {
	if x == nil {
		return nil
	}
	c := *x
	c.Conns = list(c.Conns)
	return &c
}

// list is a copy that is never nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

// WithoutSamples is a copy that keeps of every second what a flow carried, and
// leaves out what each of its streams, cores and counters did in it: most of a
// document's length. It says so.
func WithoutSamples(d *Document) *Document {
	c := *d
	c.Cells = list(d.Cells)
	left := 0
	bare := func(e *Evidence) *Evidence {
		if e == nil {
			return nil
		}
		x := *e
		left += len(x.PerSec)
		x.PerSec, x.Bins = nil, list(x.Bins)
		for i := range x.Bins {
			left += len(x.Bins[i].Streams) + len(x.Bins[i].TCP)
			x.Bins[i].Streams, x.Bins[i].TCP = nil, nil
		}
		return &x
	}
	for i := range c.Cells {
		runs := list(c.Cells[i].Runs)
		for j := range runs {
			runs[j].Flows = list(runs[j].Flows)
			for k := range runs[j].Flows {
				f := &runs[j].Flows[k]
				f.Sender, f.Receiver = bare(f.Sender), bare(f.Receiver)
			}
		}
		c.Cells[i].Runs = runs
	}
	if left > 0 {
		c.Missing = append(list(d.Missing), NotChecked{Fact: "samples", Why: "left out of this document: --samples keeps them"})
	}
	return &c
}
