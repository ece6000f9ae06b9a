package disk

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Sizes of the file, in bytes.
const (
	leastFile   = 4 << 20
	usualFile   = 1 << 30
	memoryFile  = 256 << 20 // on a file system in memory, and for the baseline
	primeBlock  = 1 << 20
	sectorBytes = 4096 // alignment of buffers: no disk has larger sectors
)

// primeTime limits the time to write the file where the user set no size: on a slow disk the file is smaller.
const primeTime = 20 * time.Second

// place examines the file system, bypasses the page cache, and chooses the size of the file.
func (t *test) place() error {
	v := t.conf.Host.Volume(t.file.Fd())
	t.FileSystem, t.Mount, t.Options = v.FileSystem, v.Mount, v.Options
	t.Device, t.Model, t.Scheduler, t.Rotational = v.Device, v.Model, v.Scheduler, v.Rotational
	t.Missing = append(t.Missing, v.Missing...)
	s, err := spaceOf(t.file)
	if err != nil {
		return t.explain("asking for the free space of", err)
	}
	t.FreeBytes = s.free
	kind := cmp.Or(t.FileSystem, "this file system")
	refused := setDirect(t.file)
	if t.conf.noDirect {
		refused = fmt.Errorf("%s does not use it in this test", kind)
	}
	switch {
	case s.inMemory: // Linux 6.6 accepts O_DIRECT there without effect
		t.Cache = "not kept out: " + kind + " is in memory itself"
		t.memory = memoryShare(t.conf.Host)
		return t.size(memoryFile)
	case refused == nil && !s.deaf:
		if t.Cache = "O_DIRECT"; t.FileSystem == "overlay" {
			t.Cache += ", passed on by overlay to an unknown file system"
		}
		return t.size(usualFile)
	}
	return t.sizeBesideCache(kind)
}

// Free returns how many bytes this user may still write to the file system of a file.
func Free(f *os.File) (int64, error) {
	s, err := spaceOf(f)
	if err != nil {
		return 0, fmt.Errorf("disk: asking for the free space: %w", err)
	}
	return s.free, nil
}

// sizeBesideCache chooses the size on a file system that does not bypass the page cache.
func (t *test) sizeBesideCache(kind string) error {
	t.cached = true
	memory := cmp.Or(t.conf.memory, memoryBytes())
	if most, _ := t.most(); t.conf.Spec.FileBytes == 0 && memory > 0 && 2*memory <= most {
		t.Cache = fmt.Sprintf("file of 2 x memory: %s does not support O_DIRECT", kind)
		return t.size(2 * memory)
	}
	if t.conf.Spec.FileBytes >= 2*memory && memory > 0 {
		t.Cache = fmt.Sprintf("file of more than 2 x memory: %s does not support O_DIRECT", kind)
		return t.size(0)
	}
	t.Cache = fmt.Sprintf("emptied before each step (posix_fadvise): %s does not support O_DIRECT, and there is no room for a file of 2 x memory", kind)
	if t.conf.Spec.FileBytes > 0 {
		t.Cache = fmt.Sprintf("emptied before each step (posix_fadvise): %s does not support O_DIRECT, and the requested file is smaller than 2 x memory", kind)
	}
	return t.size(usualFile)
}

// most returns the largest allowed size of the file, and its reason: a disk is never filled.
func (t *test) most() (most int64, why string) {
	most, why = t.FreeBytes/2, fmt.Sprintf("%s has %s free; thru uses at most half of it", t.Path, unit.Size(t.FreeBytes))
	if m := t.conf.MaxBytes; m > 0 && m < most {
		most, why = m, fmt.Sprintf("this end point allows at most %s", unit.Size(m))
	}
	if m := t.memory; m > 0 && m < most {
		most, why = m, fmt.Sprintf("%s is in memory; thru uses at most %s of it", t.Path, unit.Size(m))
	}
	return most, why
}

// memoryShare returns the largest allowed size of a file in memory, in bytes; 0: not known. Its data counts for the control group of this process, which the
// kernel ends above the limit.
func memoryShare(h *host.Host) int64 { return h.MemoryRoom() / 4 }

// size uses the requested size, or the default as far as there is room.
func (t *test) size(usual int64) error {
	most, why := t.most()
	switch {
	case most < leastFile:
		return fault.Failf("free space, or name a folder on another disk", "disk: %w: %s", ErrRoom, why)
	case t.conf.Spec.FileBytes > most:
		return fault.Failf(fmt.Sprintf("lower the size: at most --size %dM", most>>20), "disk: %w for a file of %s: %s", ErrRoom, unit.Size(t.conf.Spec.FileBytes), why)
	}
	n := cmp.Or(t.conf.Spec.FileBytes, min(usual, most))
	unitBytes := max(t.block(measure.SequentialRead), t.block(measure.RandomRead), sectorBytes)
	if t.FileBytes = n - n%unitBytes; t.FileBytes < unitBytes {
		return fault.Usagef("take a smaller --block, or a larger --size", "disk: a block of %s does not fit a file of %s", unit.Size(unitBytes), unit.Size(n))
	}
	return nil
}

// block returns the block size of a pattern, in bytes.
func (t *test) block(pattern string) int64 {
	if isRandom(pattern) {
		return cmp.Or(t.conf.Spec.BlockBytes, measure.RandomBlock)
	}
	return cmp.Or(t.conf.Spec.BlockBytes, measure.SequentialBlock)
}

// prime writes the whole file, so that later reads find written data, and later writes find allocated blocks.
func (t *test) prime(ctx context.Context) error {
	longest := primeTime
	if t.conf.Spec.FileBytes > 0 || t.cached {
		longest = 0
	}
	n, err := fill(ctx, t.file, t.FileBytes, longest, func(done int64, bps float64) {
		t.progress(measure.DiskTick{Doing: "making the file", Bytes: bps, DonePct: 100 * float64(done) / float64(t.FileBytes)})
	})
	if err != nil {
		return t.explain("writing a file in", err)
	}
	unitBytes := max(t.block(measure.SequentialRead), t.block(measure.RandomRead))
	t.FileBytes = n - n%unitBytes
	return ctx.Err()
}

// fill writes a file of size bytes of incompressible data, for at most longest (0: without a limit), and returns the bytes written.
func fill(ctx context.Context, f *os.File, size int64, longest time.Duration, progress func(done int64, bps float64)) (int64, error) {
	b := newPattern(primeBlock)
	begin := time.Now()
	told, at := begin, int64(0)
	for at < size && ctx.Err() == nil {
		if longest > 0 && at >= min(4*leastFile, size) && at%measure.MostDiskBlock == 0 && time.Since(begin) > longest {
			break
		}
		b.stamp()
		n, err := f.WriteAt(b.bytes[:min(int64(len(b.bytes)), size-at)], at)
		if at += int64(n); err != nil {
			return at, err
		}
		if since := time.Since(told); since > progressEvery {
			progress(at, float64(at)/time.Since(begin).Seconds())
			told = time.Now()
		}
	}
	return at, f.Sync()
}
