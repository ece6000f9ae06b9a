// Package disk measures the disk under a folder: sequential and random reads and writes, with as many workers as it takes to reach the disk's ceiling, without
// the page cache. It uses fio where that is installed, else its own workers, and reports which.
//
// The one file that it makes is nameless from the start where the file system supports that; else it removes the name as soon as the file is open. So nothing
// is left behind, however the process ends.
//
// `thru disk` (control/disk.go) takes the turn at one agent, which opens the folder (os.Root: for other hosts only inside `serve --files`) and calls this
// package. More workers join until the total rate no longer rises (climb.go). A method moves the data: fio, which inherits the open file, or thru's own
// workers (work.go). Both pass the same contract tests.
package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Errors that callers distinguish.
var (
	ErrRoom  = errors.New("not enough free space")
	ErrStuck = errors.New("the disk does not answer")
)

// Config says what to measure, and where.
type Config struct {
	Root     *os.Root // the folder; it stays open
	Path     string   // its name in the result
	Host     *host.Host
	Spec     measure.DiskSpec
	MaxBytes int64  // limit of the file size; 0: only half of the free space
	Memory   string // folder in memory, for the baseline; empty: DefaultMemory

	noDirect bool  // for tests: as if the file system did not support O_DIRECT
	memory   int64 // for tests: the host's memory in bytes
}

// DefaultMemory is the folder in memory that every Linux has (shm_overview(7)).
const DefaultMemory = "/dev/shm"

// Check returns an error for an invalid request, before anything is opened.
func Check(s measure.DiskSpec) error {
	for _, p := range s.Patterns {
		if !slices.Contains(measure.DiskPatterns(), p) {
			return fault.Usagef("choose one of: "+strings.Join(measure.DiskPatterns(), ", "), "disk: unknown pattern %q", p)
		}
	}
	switch {
	case s.BlockBytes != 0 && (s.BlockBytes < measure.LeastDiskBlock || s.BlockBytes > measure.MostDiskBlock || s.BlockBytes%measure.LeastDiskBlock != 0):
		return fault.Usagef("take a multiple of 512 up to 64M, such as 128K", "disk: a block of %d bytes is not possible", s.BlockBytes)
	case s.FileBytes < 0 || s.FileBytes > 0 && s.FileBytes < leastFile:
		return fault.Usagef("take "+unit.Size(leastFile)+" or more", "disk: a file of %d bytes is too small", s.FileBytes)
	case s.RunNs < int64(measure.LeastDiskRun) || s.RunNs > int64(measure.MostDiskRun):
		return fault.Usagef("take 200ms to 1h", "disk: a step of %v is not possible", time.Duration(s.RunNs))
	case s.Workers < 0 || s.Workers > measure.MostDiskWorkers:
		return fault.Usagef(fmt.Sprintf("take 1 to %d", measure.MostDiskWorkers), "disk: %d workers are not possible", s.Workers)
	case !slices.Contains([]string{"", measure.DiskByFio, measure.DiskByThru}, s.By):
		return fault.Usagef("take fio or thru", "disk: unknown program %q", s.By)
	}
	return nil
}

// Measure measures one folder. progress receives reports, from one goroutine at a time. The result is always usable: on error it holds the measurements until
// then.
func Measure(ctx context.Context, c Config, progress func(measure.DiskTick)) (measure.DiskTest, error) {
	t := &test{conf: c, progress: progress, DiskTest: measure.DiskTest{Path: c.Path, Runs: []measure.DiskRun{}}}
	err := Check(c.Spec)
	if err == nil {
		err = t.measure(ctx)
	}
	if ctx.Err() != nil {
		err = fault.Failf("", "disk: measuring %s: %w", c.Path, context.Cause(ctx))
	}
	return t.DiskTest, err
}

// test is one measurement in progress.
type test struct {
	conf Config
	measure.DiskTest
	progress func(measure.DiskTick)
	method   method
	file     *os.File
	memory   int64 // size limit of a file that is in memory, in bytes; 0: it is on a disk
	cached   bool  // the page cache is not bypassed: it is emptied before each step
}

func (t *test) measure(ctx context.Context) (err error) {
	if t.method, err = t.choose(ctx); err != nil {
		return err
	}
	t.Method = t.method.name()
	if t.file, err = create(t.conf.Root); err != nil {
		return t.explain("making a file in", err)
	}
	defer t.file.Close()
	if err := t.place(); err != nil {
		return err
	}
	if err := t.prime(ctx); err != nil {
		return err
	}
	for _, p := range t.patterns() {
		r, err := t.climb(ctx, p)
		if len(r.Tried) > 0 {
			t.Runs = append(t.Runs, r)
		}
		if err != nil {
			return err
		}
	}
	if !t.conf.Spec.NoMemory {
		t.baseline(ctx)
	}
	return nil
}

// patterns returns the requested patterns, in order.
func (t *test) patterns() []string {
	chosen := t.conf.Spec.Patterns
	return unit.Filtered(measure.DiskPatterns(), func(p string) bool { return len(chosen) == 0 || slices.Contains(chosen, p) })
}

// choose returns the requested method; by default fio where it is installed.
func (t *test) choose(ctx context.Context) (method, error) {
	if t.conf.Spec.By == measure.DiskByThru {
		return own{}, nil
	}
	f, err := findFio(ctx)
	switch {
	case err == nil:
		return f, nil
	case t.conf.Spec.By == measure.DiskByFio:
		return nil, fault.Failf("install fio (Debian: apt install fio), or omit --by", "disk: measuring by fio: %w", err)
	case !errors.Is(err, errNoFio):
		t.lacks("method", "fio is installed, but was not used: "+err.Error())
	}
	return own{}, nil
}

func (t *test) lacks(fact, why string) {
	t.Missing = append(t.Missing, measure.NotChecked{Fact: fact, Why: why})
}

// explain adds a hint to an error of the file system.
func (t *test) explain(doing string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.EROFS):
		hint = "name a folder on another file system: this one is mounted read-only"
	case errors.Is(err, os.ErrPermission):
		hint = "name a folder that this user may write to, or run thru as another user"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint, err = "free space, or take a smaller file: --size", fmt.Errorf("%w: %w", ErrRoom, err)
	case errors.Is(err, syscall.EINVAL) && t.conf.Spec.BlockBytes%sectorBytes != 0:
		hint = "take a multiple of 4K: the disk does not accept this block size"
	case errors.Is(err, os.ErrNotExist):
		hint = "name a folder on a disk: no file can be created there"
	case errors.Is(err, errors.ErrUnsupported):
		hint = "measure the disk of a Linux host"
	}
	return fault.Failf(hint, "disk: %s %s: %w", doing, t.Path, err)
}
