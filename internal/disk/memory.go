package disk

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"thru/internal/measure"
)

// baselineTime limits the duration of each part of the baseline.
const baselineTime = time.Second

// baseline measures the same patterns with a file in memory, and to and from the null devices, with the same number of workers: the limit of the method and
// the machine without a disk. It reports failures there without failing the test.
func (t *test) baseline(ctx context.Context) {
	folder := cmp.Or(t.conf.Memory, DefaultMemory)
	if err := t.inMemory(ctx, folder); err != nil && ctx.Err() == nil {
		t.lacks("memory", fmt.Sprintf("the baseline in %s: %v", folder, err))
	}
	for _, r := range t.Runs {
		target := os.DevNull
		if !isWrite(r.Pattern) {
			target = "/dev/zero"
		}
		if isRandom(r.Pattern) || ctx.Err() != nil {
			continue
		}
		if err := t.nowhere(ctx, target, r); err != nil && ctx.Err() == nil {
			t.lacks("memory", fmt.Sprintf("the baseline of %s: %v", target, err))
		}
	}
}

// inMemory measures all patterns with a file on a file system in memory.
func (t *test) inMemory(ctx context.Context, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := create(root)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := spaceOf(f)
	if err != nil {
		return err
	}
	if !s.inMemory {
		return fmt.Errorf("%s is not in memory", folder)
	}
	size := min(memoryFile, s.free/2, t.FileBytes)
	if share := memoryShare(t.conf.Host); share > 0 {
		size = min(size, share)
	}
	if size < leastFile {
		return fmt.Errorf("%w: %d bytes are free", ErrRoom, s.free)
	}
	if _, err := fill(ctx, f, size, 0, func(int64, float64) {}); err != nil {
		return err
	}
	for _, r := range t.Runs {
		if r.BlockBytes > size {
			return fmt.Errorf("a block of %d bytes is larger than the file there", r.BlockBytes)
		}
		if err := t.measureBase(ctx, f, folder, size-size%r.BlockBytes, r); err != nil {
			return err
		}
	}
	return nil
}

// nowhere measures a pattern on a device without data.
func (t *test) nowhere(ctx context.Context, target string, like measure.DiskRun) error {
	flags := os.O_RDONLY
	if isWrite(like.Pattern) {
		flags = os.O_WRONLY
	}
	f, err := os.OpenFile(target, flags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.measureBase(ctx, f, target, max(t.FileBytes, like.BlockBytes*int64(like.Workers)), like)
}

// measureBase measures one part of the baseline in the same way as a step of the disk.
func (t *test) measureBase(ctx context.Context, f *os.File, target string, size int64, like measure.DiskRun) error {
	workers := min(like.Workers, int(size/like.BlockBytes))
	r, rate, err := t.step(ctx, job{pattern: like.Pattern, target: target, file: f, block: like.BlockBytes, size: size,
		workers: workers, length: min(time.Duration(t.conf.Spec.RunNs), baselineTime)})
	if err != nil {
		return err
	}
	r.Tried = append(r.Tried, measure.DiskStep{Workers: r.Workers, Bytes: rate})
	t.Memory = append(t.Memory, r)
	return nil
}
