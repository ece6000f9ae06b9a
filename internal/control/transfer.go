package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cause"
	"thru/internal/cause/transfer"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/published"
	"thru/internal/stat"
	"thru/internal/unit"
)

// TransferRunner makes the transfers of one command. Its clients are no agents:
// the process that runs the command has them.
type TransferRunner interface {
	// Greet logs in once, checks that the transfer is possible, and sets what the
	// server reports about itself.
	Greet(ctx context.Context, t *measure.Transfer) error
	// Settle chooses the amount to move where the user gave none.
	Settle(ctx context.Context, t *measure.Transfer) error
	// Layers returns the layers that Move supports, LayerMemory and LayerWhole.
	Layers() []string
	// Move makes the transfer of all clients over a layer. It calls peerWatch when
	// the bytes begin and end to move.
	Move(ctx context.Context, layer string, peerWatch PeerWatch) (measure.TransferRun, error)
	// Small moves many small files; it returns nil where none were asked for.
	Small(ctx context.Context) (*measure.TransferRun, error)
	// Ceiling returns the rate of the client on this machine alone.
	Ceiling(ctx context.Context) measure.Layer
	// Clean removes the files that the measurement made.
	Clean() error
	// Warnings returns the warnings about the transfers.
	Warnings() []string
}

// Transferring holds the options of a transfer measurement.
type Transferring struct {
	Transfer measure.Transfer
	Runner   TransferRunner
	Network  *plan.Plan // plan of the memory-to-memory test; nil: there is no agent at the server
	Server   *EndPoint  // the agent there; nil: there is none
	Here     string     // folder of the file at this end; empty: no local file
	There    string     // folder of the file at the server, as the agent there names it; empty: unknown
}

// Transfer makes the transfers, measures the layers below them, and reports which
// layer binds. The document is usable on error too: it holds the results until then.
func (r *Runner) Transfer(ctx context.Context, x Transferring) (*measure.Document, error) {
	begin := time.Now()
	t := x.Transfer
	t.Layers, t.Runs = []measure.Layer{}, []measure.TransferRun{}
	doc := r.document("transfer", begin)
	doc.Transfer = &t
	err := r.transfer(ctx, doc, x)
	r.notify(Checking{"removing temporary files and servers"})
	if cerr := x.Runner.Clean(); cerr != nil {
		doc.Warnings = append(doc.Warnings, "temporary files or servers could not be removed: "+cerr.Error())
	}
	doc.Warnings = append(doc.Warnings, x.Runner.Warnings()...)
	if ctx.Err() != nil {
		err = interruption(doc)
	}
	cause.Transfer(doc)
	return finished(doc, begin, err)
}

func (r *Runner) transfer(ctx context.Context, doc *measure.Document, x Transferring) error {
	t := doc.Transfer
	r.notify(Checking{"logging in to " + t.URL})
	if err := x.Runner.Greet(ctx, t); err != nil {
		return err
	}
	if err := r.network(ctx, doc, x.Network); err != nil {
		return err
	}
	if err := x.Runner.Settle(ctx, t); err != nil {
		return err
	}
	r.measureBaselines(ctx, doc, x)
	for _, layer := range x.Runner.Layers() {
		run, err := r.move(ctx, doc, x, layer)
		if err == nil && layer == measure.LayerMemory {
			err = r.warm(ctx, doc, x, &run)
		}
		t.Runs = append(t.Runs, run)
		if err != nil {
			return err
		}
		t.Layers = append(t.Layers, layerOf(&run, t))
	}
	err := r.moveAgain(ctx, doc, x)
	if err != nil {
		return err
	}
	r.aloneAgain(ctx, x, t)
	if t.Small, err = x.Runner.Small(ctx); err != nil {
		return err
	}
	afterwards(doc)
	return nil
}

// move makes the transfer over a layer.
func (r *Runner) move(ctx context.Context, doc *measure.Document, x Transferring, layer string) (measure.TransferRun, error) {
	r.notify(Checking{layer + ": " + unit.Size(doc.Transfer.Asked.Bytes)})
	o, done := r.observer(ctx, x.Server)
	run, err := x.Runner.Move(ctx, layer, o)
	done()
	run.Layer = layer
	o.into(doc, &run)
	if err != nil {
		return run, err
	}
	return run, spoiled(doc.Transfer, &run)
}

// mostAgain is how often a layer is measured again, and longestAgain the longest
// pass that is repeated.
const (
	mostAgain    = 2
	longestAgain = 30 * time.Second
)

// warm repeats the download of a server's file that is slower than all layers
// below explain: the first pass may have come from disk and warmed the cache. The best counts.
func (r *Runner) warm(ctx context.Context, doc *measure.Document, x Transferring, run *measure.TransferRun) error {
	t := doc.Transfer
	if t.Direction != measure.Download || t.Asked.From != "server" || run.Bps == nil {
		return nil
	}
	first := run.Bps.Value
	for range mostAgain {
		before := run.Bps.Value
		if run.ElapsedNs > int64(longestAgain) || transfer.FillsLayer(t, before) {
			break
		}
		if err := r.pass(ctx, doc, x, run); err != nil {
			return err
		}
		if !transfer.Exceeds(run.Bps.Value, before) {
			break
		}
	}
	if transfer.Exceeds(run.Bps.Value, first) {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("the first pass reached %s, a later one %s: the first filled the server's cache and is not the result; measure the disk there with --end-point NAME --server-folder DIR", unit.Rate(first), unit.Rate(run.Bps.Value)))
	}
	return nil
}

// pass repeats the transfer of a run. The faster one is kept, with the rates of all.
func (r *Runner) pass(ctx context.Context, doc *measure.Document, x Transferring, run *measure.TransferRun) error {
	again, err := r.move(ctx, doc, x, run.Layer)
	if err != nil || again.Bps == nil {
		return err
	}
	passes := run.Passes
	if passes == nil {
		passes = []float64{run.Bps.Value}
	}
	if again.Bps.Value > run.Bps.Value {
		*run = again
	}
	run.Passes = append(passes, again.Bps.Value)
	return nil
}

// moveAgain repeats the memory transfer where it was slower than the disk
// transfer, which includes it. The best counts.
func (r *Runner) moveAgain(ctx context.Context, doc *measure.Document, x Transferring) error {
	t := doc.Transfer
	for n := 0; ; n++ {
		memory := slices.IndexFunc(t.Runs, func(run measure.TransferRun) bool { return run.Layer == measure.LayerMemory })
		low, high, refuted := transfer.MemoryRefuted(t)
		if !refuted || memory < 0 {
			return nil
		}
		if n == mostAgain {
			doc.Warnings = append(doc.Warnings, fmt.Sprintf("%s reached %s, less than %s (%s), which includes it: the figure is too low and does not count as a limit", measure.LayerMemory, unit.Rate(low), measure.LayerWhole, unit.Rate(high)))
			return nil
		}
		if err := r.pass(ctx, doc, x, &t.Runs[memory]); err != nil {
			return err
		}
		for i := range t.Layers {
			if t.Layers[i].Name == measure.LayerMemory {
				t.Layers[i] = layerOf(&t.Runs[memory], t)
			}
		}
	}
}

// aloneAgain measures the client alone once more where the transfer was clearly
// faster, and marks each layer that is still slower as not binding.
func (r *Runner) aloneAgain(ctx context.Context, x Transferring, t *measure.Transfer) {
	for i := range t.Layers {
		l := &t.Layers[i]
		if l.Name == measure.LayerLibrary && transfer.Outdone(t, l.Name) {
			r.notify(Checking{"the client on this machine alone, again"})
			if again := x.Runner.Ceiling(ctx); again.Bps != nil && *again.Bps > *l.Bps {
				*l = again
			}
			l.How += ", the best of 2"
		}
		if transfer.Outdone(t, l.Name) {
			l.How += "; the transfer was faster, so this is not the limit"
		}
	}
}

// spoiled returns an error where the received data differs from what was sent.
func spoiled(t *measure.Transfer, run *measure.TransferRun) error {
	if run.Checked != nil && !*run.Checked {
		return fault.Failf("check whether someone else wrote the file meanwhile; if not, find what changes data on the path (NIC, switch, middlebox)", "control: the data received by %s differs from the data sent", t.Protocol)
	}
	return nil
}

// layerOf returns the layer that a run measures.
func layerOf(run *measure.TransferRun, t *measure.Transfer) measure.Layer {
	l := measure.Layer{Name: run.Layer, Where: Local}
	switch {
	case run.Layer == measure.LayerMemory && t.Direction == measure.Upload:
		l.How = "generated data to the server's file"
	case run.Layer == measure.LayerMemory:
		l.How = "the server's file to " + strings.Replace(t.Asked.To, "disk", "nowhere", 1)
	case t.Direction == measure.Upload:
		l.How = "a file here to the server's file"
	default:
		l.How = "the server's file to a file here, flushed to the disk"
	}
	if len(run.Passes) > 0 {
		l.How += fmt.Sprintf(", the best of %d passes (%s)", len(run.Passes), strings.Join(unit.Mapped(run.Passes, unit.Rate), ", "))
	}
	if f := run.Bps; f != nil {
		l.Bps, l.Low, l.High = &f.Value, &f.Low, &f.High
	} else {
		l.Missing = "no data arrived"
	}
	return l
}

// network measures memory to memory and takes over the result. Where it cannot,
// the layer says why; the transfers are made anyway.
func (r *Runner) network(ctx context.Context, doc *measure.Document, p *plan.Plan) error {
	layer := measure.Layer{Name: measure.LayerNetwork, How: "thru's own data plane"}
	if p == nil {
		layer.Missing = noAgent
		doc.Transfer.Layers = append(doc.Transfer.Layers, layer)
		_, _, err := r.facts(ctx, doc, 0, func(name string) string { return r.opposite(name, true) })
		return err
	}
	net, err := r.Run(ctx, *p)
	doc.EndPoints, doc.Paths, doc.Gates, doc.Cells, doc.Findings = net.EndPoints, net.Paths, net.Gates, net.Cells, net.Findings
	doc.Warnings, doc.Missing, doc.Verdict = net.Warnings, net.Missing, nil
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if c.Goodput == nil || c.Baseline {
			continue
		}
		f := c.Goodput
		layer.Bps, layer.Low, layer.High, layer.Where = &f.Value, &f.Low, &f.High, measure.PairName(c.From, c.To)
		layer.How = fmt.Sprintf("thru's own data plane, memory to memory, %s", unit.Plural(c.Streams, "stream"))
		doc.Transfer.Cells = append(doc.Transfer.Cells, i)
		break
	}
	if layer.Bps == nil {
		layer.Missing = "the test of the network failed"
		if err != nil {
			layer.Missing = err.Error()
		}
	}
	doc.Transfer.Layers = append(doc.Transfer.Layers, layer)
	return ctx.Err()
}

// measureBaselines measures the disks, and the client on this machine alone.
func (r *Runner) measureBaselines(ctx context.Context, doc *measure.Document, x Transferring) {
	t := doc.Transfer
	write := t.Direction == measure.Upload
	far := measure.Layer{Name: measure.LayerDiskFar, How: "thru disk at the server"}
	switch {
	case x.Server == nil:
		far.Missing = "no agent at the server: run thru serve --allow files --files DIR there, and use --end-point NAME --server-folder DIR here"
	case x.There == "":
		far.Missing = "the folder of the file at the server is not known: give --server-folder DIR"
	default:
		r.disk(ctx, doc, &far, x.Server, x.There, write)
	}
	t.Layers = append([]measure.Layer{far}, t.Layers...)
	here := measure.Layer{Name: measure.LayerDiskHere, Where: Local, How: "thru disk", Missing: "not measured separately, or the transfer uses no file at this end"}
	if x.Here != "" {
		r.disk(ctx, doc, &here, r.end(Local), x.Here, !write)
	}
	r.notify(Checking{"the client on this machine alone"})
	t.Layers = append(t.Layers, here, x.Runner.Ceiling(ctx))
}

// diskTime is how long each step of a disk test lasts within a transfer.
const diskTime = 2 * time.Second

// diskWorkers is enough for one file: a transfer has few accesses at once.
const diskWorkers = 8

// disk measures one disk in the direction that the transfer needs.
func (r *Runner) disk(ctx context.Context, doc *measure.Document, l *measure.Layer, e *EndPoint, folder string, write bool) {
	pattern := measure.SequentialRead
	if write {
		pattern = measure.SequentialWrite
	}
	r.notify(Checking{"the disk of " + folder + " at " + e.Name})
	ends := []*EndPoint{e}
	defer release(ends)
	_, err := r.reserve(ctx, ends, false)
	var test measure.DiskTest
	if err == nil {
		spec := measure.DiskSpec{Patterns: []string{pattern}, RunNs: int64(diskTime), Workers: diskWorkers, NoMemory: true}
		test, err = diskTest(ctx, e, bus.DiskStart{Path: folder, Spec: spec}, nil)
	}
	diskLayer(doc, l, &test, pattern, err)
}

// diskLayer sets the rate of one pattern of a disk test in a layer.
func diskLayer(doc *measure.Document, l *measure.Layer, test *measure.DiskTest, pattern string, err error) {
	l.Missing = "the disk was not measured"
	if err != nil {
		l.Missing = err.Error()
	}
	if len(test.Runs) == 0 {
		return
	}
	doc.Disks = append(doc.Disks, *test)
	l.Where = test.Where
	for _, run := range test.Runs {
		if run.Pattern == pattern && run.Bytes != nil {
			bits := func(bytes float64) *float64 { return new(8 * bytes) }
			l.Bps, l.Low, l.High, l.Missing = bits(run.Bytes.Value), bits(run.Bytes.Low), bits(run.Bytes.High), ""
			l.How = fmt.Sprintf("%s of %.3g GB/s by %s with %s, %s", pattern, run.Bytes.Value/1e9, test.Method, unit.Plural(run.Workers, "worker"), test.Cache)
		}
	}
}

// afterwards adds what all runs together show, and published figures as context.
func afterwards(doc *measure.Document) {
	t := doc.Transfer
	inUse(t)
	if why := unseen(t); why != "" {
		doc.Missing = append(doc.Missing, measure.NotChecked{Fact: "transfer.runs.seconds_bps", Why: why})
	}
	for _, why := range []string{tooShort(t), uneven(t)} {
		if why != "" {
			doc.Warnings = append(doc.Warnings, why)
		}
	}
	table, err := published.Load()
	if err != nil {
		doc.Missing = append(doc.Missing, measure.NotChecked{Fact: "transfer.published", Why: err.Error()})
		return
	}
	for _, row := range table.All() {
		if row.HighBps != nil && !row.Suspect && isAbout(row, t) {
			name := row.Scenario
			if row.Note != "" {
				name += ": " + row.Note
			}
			t.Ratios = append(t.Ratios, measure.Ratio{ID: row.ID, Name: name, Bps: *row.HighBps})
		}
	}
}

// inUse reports for this end's disk, where it was not tested, how long the transfer
// spent in its file. That is no disk rate: the page cache absorbs most of it.
func inUse(t *measure.Transfer) {
	for _, run := range t.Runs {
		i := slices.IndexFunc(t.Layers, func(l measure.Layer) bool { return l.Name == measure.LayerDiskHere })
		if run.Layer != measure.LayerWhole || run.LocalNs <= 0 || i < 0 || t.Layers[i].Bps != nil {
			continue
		}
		spent := unit.Duration(run.LocalNs / int64(max(t.Asked.Clients, 1)))
		t.Layers[i].Missing = fmt.Sprintf("not measured separately: the transfer spent %s of %s in file I/O, but the page cache is part of that, so it gives no disk rate", spent, unit.Duration(run.ElapsedNs))
	}
}

// unseen returns why a run has no rate per second.
func unseen(t *measure.Transfer) string {
	for _, run := range t.Runs {
		if run.Bps != nil && len(run.Seconds) == 0 && run.ElapsedNs >= int64(2*time.Second) {
			return "an external program moves the bytes: thru counts them only at its end"
		}
	}
	return ""
}

// A transfer should last long enough that windows have grown and that the
// resolution of the timer does not matter.
const (
	fewTrips = 100             // round trips, where the RTT is known
	shortest = time.Second     // at least
	unknown  = 5 * time.Second // where the RTT is not known
)

func tooShort(t *measure.Transfer) string {
	for i := range t.Runs {
		run := &t.Runs[i]
		rtt := stat.TransferRTT(run)
		enough := max(int64(shortest), fewTrips*rtt)
		if rtt == 0 {
			enough = int64(unknown)
		}
		if run.Bps == nil || run.ElapsedNs >= enough {
			continue
		}
		wanted := unit.Size(int64(run.Bps.Value/8*max(10, float64(enough)/1e9)) / int64(max(t.Asked.Clients, 1)))
		if rtt > 0 && fewTrips*rtt > run.ElapsedNs {
			return fmt.Sprintf("the transfer took %s, %d round trips: too short for the TCP windows to grow; transfer %s for each client", unit.Duration(run.ElapsedNs), run.ElapsedNs/rtt, wanted)
		}
		return fmt.Sprintf("the transfer took %s: too short for a reliable figure; transfer %s for each client", unit.Duration(run.ElapsedNs), wanted)
	}
	return ""
}

// uneven reports that some clients got less than half of what others did, which
// the sum hides.
func uneven(t *measure.Transfer) string {
	for _, run := range t.Runs {
		if len(run.Each) == 0 {
			continue
		}
		if least, most := slices.Min(run.Each), slices.Max(run.Each); most > 2*least {
			return fmt.Sprintf("the clients reached from %s to %s each: the server or the path does not share the rate evenly", unit.Rate(least), unit.Rate(most))
		}
	}
	return ""
}

// isAbout reports whether a published figure is about this protocol.
func isAbout(row published.Row, t *measure.Transfer) bool {
	of := map[string][]string{"ftp": {"C9", "C10"}, "ftps": {"C9", "C10"}, "smb": {"C11"}, "nfs": {"C12", "C13", "C14"}, "nfs4": {"C12", "C13", "C14"}}[t.Protocol]
	return slices.Contains(append(of, "C15"), row.ID)
}
