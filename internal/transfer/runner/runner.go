// Package runner runs transfers and measures them: some clients at once, each
// with some files, in the direction of the job. It knows no protocol, and
// does not judge the result.
package runner

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/transfer"
	"thru/internal/transfer/stage"
)

// Job is one run of all clients together.
type Job struct {
	Direction string            // measure.Download or measure.Upload
	Clients   []transfer.Client // parallel
	Files     int               // of each client, one after the other
	Bytes     int64             // of each file

	Name   func(client, file int) string                 // at the server
	Sink   func(client, file int) (Sink, error)          // of a download: its destination
	Source func(client, file int) (io.ReadCloser, error) // of an upload: its source

	Same      *Stream // a download must equal this stream; nil: no comparison
	Sum       bool    // compute the CRC-32C of the data, for a job of one file
	Through   bool    // the bytes must pass through this process, even those of a program
	Overwrite bool    // replace existing files at the server
	Dialer    *Dialer // of the clients; nil: their sockets are not read
	Watch     func(Live)
	PeerWatch PeerWatch // observer of the other end; nil: none
}

// PeerWatch observes the other end while a run moves its bytes. The run waits
// for both calls.
type PeerWatch = interface {
	// Begin is called when all sessions are open and no byte has moved yet.
	// conns returns the connections at the time of its call.
	Begin(ctx context.Context, conns func() []measure.Addresses)
	// End is called when the last byte has moved, before the sessions are closed.
	End()
}

// Live is the progress of a run.
type Live struct {
	Bytes, Total int64
	Bps          float64 // over the latest second
}

// Outcome is the result of a job. For a failed job it holds what was measured
// until then.
type Outcome struct {
	Run  measure.TransferRun
	Info transfer.Info
	Made []string // files now at the server: complete ones, and remains of a broken session
}

// run is a running job.
type run struct {
	job   Job
	begin time.Time
	moved atomic.Int64
	first atomic.Int64 // ns after begin, of the first byte; 0: none yet
	local atomic.Int64 // ns that clients waited for local files

	staged []string  // of each client: the file that a program sends
	each   []float64 // of each client: its goodput in bit/s, until it was done

	mu      sync.Mutex
	outcome Outcome
	seconds []float64
	blind   bool // a program moves the bytes, which are counted at its end
	wrong   bool
}

// Run opens all sessions, then moves all files. The first error ends the others.
func Run(ctx context.Context, job Job) (Outcome, error) {
	r := &run{job: job, begin: time.Now(), each: make([]float64, len(job.Clients))}
	stage.Clear()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if job.Dialer != nil {
		job.Dialer.Forget()
	}
	sessions := make([]transfer.Session, len(job.Clients))
	defer func() {
		for _, s := range sessions {
			if s != nil {
				s.Close()
			}
		}
	}()
	err := atOnce(ctx, cancel, len(job.Clients), func(i int) (err error) {
		sessions[i], err = job.Clients[i].Open(ctx)
		return err
	})
	if err != nil {
		return r.failed(err), err
	}
	clear, err := r.stageAll(sessions)
	defer clear()
	if err != nil {
		return r.failed(err), err
	}
	if b := job.PeerWatch; b != nil {
		b.Begin(ctx, job.Dialer.Connections)
	}
	programs := watchPrograms(sessions)
	look := host.New().Watch(job.Dialer.face(), os.Getpid())
	before := look.Read()
	r.blind = slices.ContainsFunc(sessions, func(s transfer.Session) bool { _, ok := r.outside(s); return ok })
	stop := r.sample(r.blind)
	err = atOnce(ctx, cancel, len(sessions), func(i int) error { return r.client(ctx, sessions[i], i) })
	ended := time.Now()
	stop()
	r.outcome.Info = sessions[0].Info()
	span := host.Span(before, look.Read(), r.begin)
	programs.addTo(&span)
	r.outcome.Run.HereProgram = programs.name
	r.figures(ended, span)
	if b := job.PeerWatch; b != nil {
		b.End()
	}
	if err != nil {
		return r.failed(err), err
	}
	return r.outcome, nil
}

// stageAll stages the files for programs to send, before any clock begins.
func (r *run) stageAll(sessions []transfer.Session) (clear func(), err error) {
	var made []func()
	clear = func() {
		for _, remove := range made {
			remove()
		}
	}
	r.staged = make([]string, len(sessions))
	for i, s := range sessions {
		if _, ok := r.outside(s); !ok || r.job.Direction != measure.Upload {
			continue
		}
		name, remove, err := r.stage(i)
		if err != nil {
			return clear, err
		}
		r.staged[i], made = name, append(made, remove)
	}
	return clear, nil
}

// atOnce runs n parts in parallel; the first error ends the others.
func atOnce(ctx context.Context, cancel context.CancelCauseFunc, n int, part func(i int) error) error {
	var parts sync.WaitGroup
	for i := range n {
		parts.Go(func() {
			if err := part(i); err != nil {
				cancel(err)
			}
		})
	}
	parts.Wait()
	return context.Cause(ctx)
}

func (r *run) failed(err error) Outcome {
	r.outcome.Run.Error = &measure.Error{Message: err.Error(), ExitCode: 1}
	return r.outcome
}

// client moves the files of one client.
func (r *run) client(ctx context.Context, s transfer.Session, n int) error {
	for i := range r.job.Files {
		move := r.get
		if r.job.Direction == measure.Upload {
			move = r.put
		}
		if err := move(ctx, s, n, i); err != nil {
			return err
		}
		r.mu.Lock()
		r.outcome.Run.Files++
		r.mu.Unlock()
	}
	if took := int64(time.Since(r.begin)) - r.first.Load(); took > 0 {
		r.each[n] = float64(r.job.Bytes*int64(r.job.Files)) * 8e9 / float64(took)
	}
	return nil
}

// start records the time of the first byte.
func (r *run) start() {
	if r.first.Load() == 0 {
		r.first.CompareAndSwap(0, max(1, int64(time.Since(r.begin))))
	}
}

// get downloads a file, and removes an incomplete one.
func (r *run) get(ctx context.Context, s transfer.Session, client, file int) error {
	sink, err := r.job.Sink(client, file)
	if err != nil {
		return err
	}
	defer sink.Drop()
	if o, ok := r.outside(s); ok {
		return r.fetch(ctx, o, sink, r.job.Name(client, file))
	}
	w := &intake{run: r, to: transfer.Most(sink, r.job.Bytes)}
	if r.job.Same != nil {
		w.compared = r.job.Same.checker()
	}
	if s.Info().InFlight > 0 { // with many requests in flight the first byte comes with the last
		r.start()
	}
	n, err := s.Get(ctx, r.job.Name(client, file), w)
	if err == nil && n < r.job.Bytes {
		err = fmt.Errorf("runner: %d of %d bytes arrived: %w", n, r.job.Bytes, transfer.ErrShort)
	}
	if err != nil {
		return err
	}
	if err := r.keep(sink); err != nil {
		return err
	}
	r.arrived(w, n)
	return nil
}

// keep completes a local file.
func (r *run) keep(sink Sink) error {
	begun := time.Now()
	err := sink.Keep()
	r.local.Add(int64(time.Since(begun)))
	return err
}

func (r *run) arrived(w *intake, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.Run.CRC32C = w.sum.text(r.job.Sum)
	if w.compared != nil {
		r.wrong = r.wrong || !w.compared.holds(n)
		r.outcome.Run.Checked = new(!r.wrong)
	}
}

// checksum is the CRC-32C of the data (RFC 3720, appendix B.4), for which
// CPUs have an instruction: a cryptographic sum takes longer than a fast
// protocol.
type checksum uint32

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (c *checksum) add(p []byte) { *c = checksum(crc32.Update(uint32(*c), castagnoli, p)) }

// text returns the sum where it is wanted.
func (c checksum) text(wanted bool) string {
	if !wanted {
		return ""
	}
	return fmt.Sprintf("%08x", uint32(c))
}

// put uploads a file; the client removes an incomplete one.
func (r *run) put(ctx context.Context, s transfer.Session, client, file int) error {
	if o, ok := r.outside(s); ok {
		return r.send(ctx, o, r.staged[client], r.job.Name(client, file))
	}
	from, err := r.job.Source(client, file)
	if err != nil {
		return err
	}
	defer from.Close()
	o := &outlet{run: r, from: from}
	name := r.job.Name(client, file)
	err = s.Put(ctx, name, o, r.job.Bytes, r.job.Overwrite)
	sum := o.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := (*transfer.Left)(nil); errors.As(err, &left) {
		r.outcome.Made = append(r.outcome.Made, left.Path)
	}
	if err != nil {
		return err
	}
	r.outcome.Run.CRC32C = sum.text(r.job.Sum)
	r.outcome.Made = append(r.outcome.Made, name)
	return nil
}

// intake is the writer of a client's download.
type intake struct {
	run      *run
	to       io.Writer
	sum      checksum
	compared *checker
	bytes    int64
}

// Write passes on and counts. Only the time of the file itself counts as
// local.
func (w *intake) Write(p []byte) (int, error) {
	w.run.start()
	begun := time.Now()
	n, err := w.to.Write(p)
	w.run.local.Add(int64(time.Since(begun)))
	if w.run.job.Sum {
		w.sum.add(p[:n])
	}
	if w.compared != nil {
		w.compared.Write(p[:n])
	}
	w.bytes += int64(n)
	w.run.moved.Add(int64(n))
	return n, err
}

// outlet is the reader of a client's upload. A client may still be reading
// when its Put has failed: net/http does.
type outlet struct {
	run  *run
	from io.Reader

	mu    sync.Mutex
	sum   checksum
	bytes int64
	over  bool
}

// Read passes on and counts. Only the time of the file itself counts as
// local.
func (o *outlet) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return 0, io.ErrClosedPipe
	}
	o.run.start()
	begun := time.Now()
	n, err := o.from.Read(p)
	o.run.local.Add(int64(time.Since(begun)))
	if o.run.job.Sum {
		o.sum.add(p[:n])
	}
	o.bytes += int64(n)
	o.run.moved.Add(int64(n))
	return n, err
}

// end makes later reads fail, and returns the checksum.
func (o *outlet) end() checksum {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	return o.sum
}

// sampleEvery is the interval of socket readings.
const sampleEvery = 50 * time.Millisecond

// adoptTicks is how many samples pass between searches for programs'
// connections.
const adoptTicks = 4

// sample reads the sockets and counts the seconds until it is stopped.
// programs says that some of the clients dial by themselves.
func (r *run) sample(programs bool) (stop func()) {
	done := make(chan struct{})
	var sampler sync.WaitGroup
	sampler.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		var from time.Duration
		var bytes int64
		ticks := 0
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if ticks++; r.job.Dialer != nil {
				if programs && ticks%adoptTicks == 1 {
					r.job.Dialer.Adopt()
				}
				r.job.Dialer.Sample()
			}
			now, first := time.Since(r.begin), time.Duration(r.first.Load())
			if first == 0 {
				continue
			}
			if from = max(from, first); now-from >= time.Second {
				moved := r.moved.Load()
				r.second(float64(moved-bytes) * 8 / (now - from).Seconds())
				from, bytes = now, moved
			}
		}
	})
	return func() { close(done); sampler.Wait() }
}

func (r *run) second(bps float64) {
	r.seconds = append(r.seconds, bps)
	if r.job.Watch != nil {
		total := r.job.Bytes * int64(r.job.Files) * int64(len(r.job.Clients))
		r.job.Watch(Live{Bytes: r.moved.Load(), Total: total, Bps: bps})
	}
}

// figures fills in the results.
func (r *run) figures(ended time.Time, span measure.HostSpan) {
	x := &r.outcome.Run
	first := r.first.Load()
	x.SetupNs, x.Bytes, x.LocalNs = first, r.moved.Load(), r.local.Load()
	if first == 0 {
		return
	}
	x.ElapsedNs = max(1, int64(ended.Sub(r.begin))-first)
	if x.Seconds = r.seconds; r.blind { // its bytes were counted at its end
		x.Seconds = nil
	}
	if len(r.each) > 1 && !slices.Contains(r.each, 0) { // otherwise one client did not finish
		x.Each = r.each
	}
	if d := r.job.Dialer; d != nil {
		d.Sample()
		if r.outcome.Info.Library || d.adopted() { // otherwise these are not the connections of the data
			x.Sockets = d.Streams()
		}
	}
	x.Bps = stat.TransferFigure(x)
	x.HereCPU, x.HereHost = stat.SpanCPU(&span), &span
}
