package disk

import (
	"cmp"
	"context"
	"strings"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/stat"
)

// The climb ends after this many consecutive steps that gain less than riseNeeded over the best one: a single step may have been disturbed.
const (
	riseNeeded = 1.05 // 5%
	flatSteps  = 2
)

// progressEvery is the interval of a test's progress reports.
const progressEvery = 250 * time.Millisecond

// mostBuffers limits the memory of all workers together, in bytes.
const mostBuffers = 256 << 20

// climb measures a pattern with 1, 2, 4, 8 ... workers until the total rate rises by less than 5% twice in a row, and keeps the fastest step.
func (t *test) climb(ctx context.Context, pattern string) (measure.DiskRun, error) {
	block := t.block(pattern)
	most := min(cmp.Or(int64(t.conf.Spec.Workers), measure.DiskWorkers), t.FileBytes/block, max(1, mostBuffers/block))
	var best measure.DiskRun
	tried, reached, flat := []measure.DiskStep{}, 0.0, 0
	for n := int64(1); ; n = min(2*n, most) {
		j := job{pattern: pattern, file: t.file, block: block, size: t.FileBytes, workers: int(n), length: time.Duration(t.conf.Spec.RunNs), cached: t.cached}
		step, rate, err := t.step(ctx, j)
		if err != nil {
			best.Tried = tried
			return best, err
		}
		tried = append(tried, measure.DiskStep{Workers: int(n), Bytes: rate})
		rises := rate >= reached*riseNeeded
		if len(tried) == 1 || rate > reached {
			best, reached = step, rate
		}
		if flat++; rises {
			flat = 0
		}
		if flat == flatSteps || n == most {
			best.Tried, best.Rising = tried, rises && len(tried) > 1
			return best, nil
		}
	}
}

// step measures one number of workers, including its CPU cost.
func (t *test) step(ctx context.Context, j job) (measure.DiskRun, float64, error) {
	if j.cached {
		if err := dropCache(j.file); err != nil {
			return measure.DiskRun{}, 0, t.explain("emptying the page cache of", err)
		}
	}
	busy, busyErr := t.busy()
	before := t.conf.Host.Read("", 0)
	began := time.Now()
	var last, lastOps int64
	lastAt := began
	o, err := t.method.run(ctx, j, func(bytes, ops int64) {
		now := time.Now()
		span := max(now.Sub(lastAt).Seconds(), 1e-3)
		t.progress(measure.DiskTick{Doing: j.pattern, Target: j.target, Workers: j.workers, Bytes: max(0, float64(bytes-last)/span),
			IOPS: max(0, float64(ops-lastOps)/span), DonePct: min(100, 100*float64(now.Sub(began))/float64(j.length))})
		last, lastOps, lastAt = bytes, ops, now
	})
	after := t.conf.Host.Read("", 0)
	if err != nil {
		return measure.DiskRun{}, 0, t.explain(verb(j.pattern), err)
	}
	r := measure.DiskRun{
		Pattern: j.pattern, Target: j.target, BlockBytes: j.block, Workers: j.workers, ElapsedNs: int64(o.elapsed), Tried: []measure.DiskStep{},
		Bytes: o.figure(func(b bin) int64 { return b.bytes }), IOPS: o.figure(func(b bin) int64 { return b.ops }), Latency: o.latency,
		CPU: cpuOf(before, after),
	}
	if then, err := t.busy(); busyErr == nil && err == nil && j.target == "" {
		r.BusyPct = new(min(100, 100*float64(then-busy)/float64(o.elapsed)))
	}
	return r, r.Bytes.Value, nil
}

// busy returns how long the disk has been busy since boot.
func (t *test) busy() (time.Duration, error) {
	if t.Device == "" {
		return 0, errNoDevice
	}
	return t.conf.Host.DiskBusy(t.Device)
}

// cpuOf returns the use of the machine's CPUs between two readings; nil without readings.
func cpuOf(before, after host.Snapshot) *measure.CPUFigure {
	cores := host.Span(before, after, before.Taken).CPUs
	if len(cores) == 0 {
		return nil
	}
	f := &measure.CPUFigure{}
	var busy []float64
	for _, c := range cores {
		busy = append(busy, c.Busy())
		if b := c.Busy(); b > f.MaxCorePct {
			f.MaxCore, f.MaxCorePct = c.Core, b
		}
	}
	f.Cores = stat.CoresUsed(busy, nil)
	f.Pct = 100 * f.Cores / float64(len(cores))
	return f
}

func isRandom(pattern string) bool { return strings.HasPrefix(pattern, "random") }
func isWrite(pattern string) bool  { return strings.HasSuffix(pattern, "write") }

// verb returns the words for an error about a pattern.
func verb(pattern string) string {
	if isWrite(pattern) {
		return "writing in"
	}
	return "reading in"
}
