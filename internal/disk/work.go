package disk

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thru/internal/measure"
	"thru/internal/stat"
)

// method moves the data of one step.
type method interface {
	name() string
	// run moves data until the job's time is over. progress receives the totals so far.
	run(ctx context.Context, j job, progress func(bytes, ops int64)) (outcome, error)
}

// job is one step: a pattern on a file with a number of workers.
type job struct {
	pattern string
	target  string // for a baseline
	file    *os.File
	block   int64 // bytes
	size    int64 // of the file, in bytes
	workers int
	length  time.Duration
	cached  bool // written data is still in memory: it counts when it is on the disk
}

// outcome is how much a step moved.
type outcome struct {
	bytes, ops int64
	elapsed    time.Duration
	bins       []bin
	latency    *measure.Latency
}

// bin is how much one part of a step moved.
type bin struct {
	bytes, ops int64
	span       time.Duration
}

var errNoDevice = errors.New("the device is not known")

// figure returns a rate per second, with its smallest and greatest bin.
func (o outcome) figure(of func(bin) int64) *measure.Figure {
	rate := func(b bin) float64 { return float64(of(b)) / max(b.span.Seconds(), 1e-9) }
	f := &measure.Figure{Value: rate(bin{o.bytes, o.ops, o.elapsed}), Runs: 1, Basis: "bins of a single run"}
	f.Low, f.High = f.Value, f.Value
	for _, b := range o.bins {
		f.Low, f.High = min(f.Low, rate(b)), max(f.High, rate(b))
	}
	return f
}

// binTime returns the length of a step's bins.
func (j job) binTime() time.Duration { return min(time.Second, j.length/4) }

// Timeouts of the last accesses of a step: after its time, and after an error or an interrupt.
const (
	comeBack      = 2 * time.Minute
	comeBackAtEnd = 20 * time.Second
)

// own is thru's own method: each worker reads or writes one block after the other (pread(2), pwrite(2)) in its own thread.
type own struct{}

func (own) name() string { return measure.DiskByThru }

func (own) run(ctx context.Context, j job, progress func(bytes, ops int64)) (outcome, error) {
	c := &crew{job: j, done: make(chan error, j.workers)}
	for i := range j.workers {
		c.team = append(c.team, newWorker(c, int64(i)))
	}
	begin := time.Now()
	for _, w := range c.team {
		go func() { c.done <- w.work() }()
	}
	bins, err := c.watch(ctx, begin, progress)
	if err == nil && j.cached && isWrite(j.pattern) {
		err = j.file.Sync()
	}
	o := outcome{elapsed: time.Since(begin), bins: bins}
	if err != nil {
		return o, err
	}
	all := stat.NewHistogram()
	for _, w := range c.team {
		o.bytes, o.ops = o.bytes+w.bytes.Load(), o.ops+w.ops.Load()
		all.Merge(w.times)
	}
	if o.ops == 0 {
		return o, cmp.Or(ctx.Err(), errors.New("no access completed in time"))
	}
	l := stat.LatencyOf(all)
	if l.Histogram, err = stat.EncodeHistogram(all); err != nil {
		return o, err
	}
	o.latency = &l
	return o, ctx.Err()
}

// crew are the workers of one step.
type crew struct {
	job
	team []*worker
	stop atomic.Bool
	done chan error
}

// watch monitors the workers until the last one has ended.
func (c *crew) watch(ctx context.Context, begin time.Time, progress func(bytes, ops int64)) (bins []bin, err error) {
	over, tick := time.NewTimer(c.length), time.NewTicker(min(progressEvery, c.binTime()))
	defer over.Stop()
	defer tick.Stop()
	var stuck <-chan time.Time
	ended, last, lastAt := 0, bin{}, begin
	end := func(patience time.Duration) {
		c.stop.Store(true)
		stuck = time.After(patience)
	}
	interrupted := ctx.Done()
	for ended < len(c.team) {
		select {
		case e := <-c.done:
			ended++
			if e != nil {
				err = cmp.Or(err, e)
				end(comeBackAtEnd)
			}
		case now := <-tick.C:
			sum := c.sum()
			progress(sum.bytes, sum.ops)
			if span := now.Sub(lastAt); span >= c.binTime()-time.Millisecond && !c.stop.Load() {
				bins = append(bins, bin{sum.bytes - last.bytes, sum.ops - last.ops, span})
				last, lastAt = sum, now
			}
		case <-over.C:
			end(comeBack)
		case <-interrupted:
			interrupted = nil
			end(comeBackAtEnd)
		case <-stuck:
			return bins, fmt.Errorf("%w: %d of %d accesses did not complete", ErrStuck, len(c.team)-ended, len(c.team))
		}
	}
	return bins, err
}

func (c *crew) sum() (b bin) {
	for _, w := range c.team {
		b.bytes, b.ops = b.bytes+w.bytes.Load(), b.ops+w.ops.Load()
	}
	return b
}

// worker is one worker of a crew. In sequential patterns each has its own part of the file; in random ones all use the whole file.
type worker struct {
	crew        *crew
	first, many int64 // its part, in blocks
	next        int64
	random      *mrand.Rand
	data        pattern
	times       *hdrhistogram.Histogram
	bytes, ops  atomic.Int64
}

func newWorker(c *crew, i int64) *worker {
	blocks := max(1, c.size/c.block)
	w := &worker{crew: c, many: blocks, data: newPattern(int(c.block)), times: stat.NewHistogram()}
	if isRandom(c.pattern) {
		w.random = mrand.New(mrand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
		return w
	}
	w.many = max(1, blocks/int64(c.workers))
	w.first = i * w.many % blocks
	return w
}

// work moves blocks until the crew stops.
func (w *worker) work() error {
	writes := isWrite(w.crew.pattern)
	for !w.crew.stop.Load() {
		at := w.place()
		begin := time.Now()
		var n int
		var err error
		if writes {
			w.data.stamp()
			n, err = w.crew.file.WriteAt(w.data.bytes, at)
		} else {
			n, err = w.crew.file.ReadAt(w.data.bytes, at)
		}
		if err == nil && n < len(w.data.bytes) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("%s at %d: %w", w.crew.pattern, at, err)
		}
		w.times.RecordValue(min(max(int64(time.Since(begin)), 1), stat.HistogramHighest))
		w.bytes.Add(int64(n))
		w.ops.Add(1)
	}
	return nil
}

// place returns the offset of the next block.
func (w *worker) place() int64 {
	n := w.next
	w.next = (w.next + 1) % w.many
	if w.random != nil {
		n = w.random.Int64N(w.many)
	}
	return (w.first + n) * w.crew.block
}

// pattern is an incompressible block of data that differs from every other block.
type pattern struct {
	bytes []byte // aligned, as O_DIRECT requires
	count uint64
}

func newPattern(n int) pattern {
	b := make([]byte, n+sectorBytes)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & (sectorBytes - 1))
	p := pattern{bytes: b[skip : skip+n : skip+n]}
	rand.Read(p.bytes) // never fails
	p.count = binary.LittleEndian.Uint64(p.bytes)
	return p
}

// stamp makes each sector differ from all sectors written before.
func (p *pattern) stamp() {
	for at := 0; at+8 <= len(p.bytes); at += sectorBytes {
		p.count++
		binary.LittleEndian.PutUint64(p.bytes[at:], p.count)
	}
}
