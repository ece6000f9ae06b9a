package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"thru/internal/measure"
	"thru/internal/transfer/clients"
	"thru/internal/transfer/loopback"
	"thru/internal/transfer/runner"
	"thru/internal/unit"
)

const (
	// ceilingTime is the length of the run that measures the client's own
	// ceiling.
	ceilingTime = 1500 * time.Millisecond
	// ceilingLimit limits this run and its trials, for a program three times
	// as much: a program's run that is cut off gives no result.
	ceilingLimit = 3 * time.Second
	// ceilingTrial is the size of the first trial, in bytes, for each client;
	// with a server of limited room a share of that, since its client is a
	// program that starts slowly.
	ceilingTrial      = 4 << 20
	ceilingTrialShare = 8
	// ceilingGrowth limits the growth from one trial to the next.
	ceilingGrowth = 16
)

// Ceiling measures the rate of as many clients as the transfer has, on this
// machine alone.
func (m *Transfer) Ceiling(ctx context.Context) measure.Layer {
	l := measure.Layer{Name: measure.LayerLibrary, Where: measure.Local, How: "the same client against a server on this machine, over loopback"}
	switch {
	case m.NoCeiling:
		l.Missing = "--no-ceiling"
		return l
	case m.target.Protocol == clients.Thru:
		l.Missing = "the network is measured by the same data plane"
		return l
	}
	server, err := loopback.Serve(ctx, m.target.Protocol, loopback.Options{Fill: m.fill(), Agreed: m.info.Details})
	if err != nil {
		l.Missing = err.Error()
		return l
	}
	run, err := m.alone(ctx, server)
	switch err = errors.Join(err, server.Close()); {
	case ctx.Err() != nil:
		l.Missing = "interrupted"
	case err != nil:
		l.Missing = err.Error()
	case run.Bps == nil:
		l.Missing = "no run completed in time: this machine is busy"
	default:
		l.Bps = &run.Bps.Value
		l.How = fmt.Sprintf("%s against %s, over loopback: %s in %s", sameClients(m.Many), server.Is, unit.Size(run.Bytes), unit.Duration(run.ElapsedNs))
	}
	return l
}

func sameClients(n int) string {
	if n == 1 {
		return "the same client"
	}
	return fmt.Sprintf("%d such clients at once", n)
}

// fill returns the generator of the data with which a download is compared;
// nil without comparison.
func (m *Transfer) fill() func([]byte, int64) {
	if m.uploads() || !m.generates() {
		return nil
	}
	return m.stream.Fill
}

// alone moves more and more until a run lasts long enough. A run that is cut
// off counts by the bytes until then: for a client that is that slow nothing
// else is known.
func (m *Transfer) alone(ctx context.Context, server *loopback.Server) (best measure.TransferRun, err error) {
	limit := ceilingLimit
	if !m.info.Library {
		limit *= 3
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	there := m.led(server)
	size, most := int64(ceilingTrial), int64(mostSize)
	if server.Most > 0 {
		most = max(1, server.Most/int64(m.Many))
		size = max(1, most/ceilingTrialShare)
	}
	for {
		job, err := there.aloneJob(server, size)
		if err != nil {
			return best, err
		}
		out, err := runner.Run(ctx, job)
		late := ctx.Err() != nil
		if err != nil && !late {
			return best, err
		}
		if err == nil || m.info.Library && out.Run.ElapsedNs > best.ElapsedNs {
			best = out.Run
		}
		if late || best.Bps == nil || best.ElapsedNs >= int64(ceilingTime)*2/3 || size >= most {
			return best, nil
		}
		wanted := int64(best.Bps.Value / 8 * ceilingTime.Seconds() / float64(m.Many))
		size = min(max(wanted, 2*size), ceilingGrowth*size, most)
	}
}

// led returns a transfer whose clients connect to a server of this machine,
// with the block sizes of the real one.
func (m *Transfer) led(server *loopback.Server) *Transfer {
	there := *m
	there.config.Dial = (&runner.Dialer{Buffer: m.config.Buffer, Timeout: m.config.Timeout}).Dial // not counted as connections of the transfer
	there.config = server.Config(there.config)
	if m.info.Block > 0 {
		there.config.Block = m.info.Block
	}
	return &there
}

// aloneJob returns the run over memory, with a server of this machine.
func (m *Transfer) aloneJob(server *loopback.Server, size int64) (runner.Job, error) {
	job := runner.Job{
		Direction: m.direction, Clients: m.clients(m.Many), Files: 1, Bytes: size, Overwrite: true, Sum: m.sums(measure.LayerMemory),
		Sink: m.sink, Source: func(int, int) (io.ReadCloser, error) { return m.generated(size) },
	}
	if m.uploads() {
		job.Name = func(client, _ int) string { return server.Upload(client) }
		return job, nil
	}
	if m.generates() {
		job.Same = &m.stream
	}
	path, err := server.Path(size)
	job.Name = func(int, int) string { return path }
	return job, err
}
