//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/lab"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedFolder); dir != "" {
		if os.Getenv(onceOnly) != "" {
			measureOnce(dir, os.Getenv(killedBy))
			return
		}
		measureUntilKilled(dir, os.Getenv(killedBy))
		return
	}
	goleak.VerifyTestMain(m)
}

// small returns a test of a few seconds: 8 MiB, two workers at most.
func small(t *testing.T, folder, by string) Config {
	t.Helper()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return Config{Root: root, Path: folder, Host: host.New(), Spec: measure.DiskSpec{FileBytes: 8 << 20, RunNs: int64(measure.LeastDiskRun), By: by, Workers: 2}}
}

func quiet(measure.DiskTick) {}

// left lists the files that a test has left in its folder.
func left(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// memoryFolder returns a folder of a file system in memory.
func memoryFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(DefaultMemory, "thru-test-")
	if err != nil {
		t.Skipf("needs a folder in memory: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestMethods runs both methods through one contract, on a disk and in memory.
func TestMethods(t *testing.T) {
	t.Parallel()
	for _, by := range []string{measure.DiskByThru, measure.DiskByFio} {
		for _, where := range []string{"disk", "memory"} {
			t.Run(by+" "+where, func(t *testing.T) {
				t.Parallel()
				if by == measure.DiskByFio {
					lab.Require(t, lab.Program("fio"))
				}
				folder, workers := t.TempDir(), 2
				if where == "memory" {
					folder, workers = memoryFolder(t), 1
				}
				var ticks []measure.DiskTick
				c := small(t, folder, by)
				c.Spec.Workers = workers
				got, err := Measure(t.Context(), c, func(k measure.DiskTick) { ticks = append(ticks, k) })
				if err != nil {
					t.Fatal(err)
				}
				checkTest(t, got, by, where)
				if names := left(t, folder); len(names) > 0 {
					t.Errorf("left in the folder: %q", names)
				}
				if len(ticks) == 0 {
					t.Error("no progress was reported")
				}
			})
		}
	}
}

func checkTest(t *testing.T, got measure.DiskTest, by, where string) {
	t.Helper()
	if !strings.HasPrefix(got.Method, by) || got.FileBytes != 8<<20 || got.FreeBytes < 16<<20 || got.FileSystem == "" || got.Mount == "" || got.Options == "" {
		t.Errorf("%+v", got)
	}
	if inMemory := strings.HasPrefix(got.Cache, "not kept out: tmpfs"); where == "memory" && !inMemory {
		t.Errorf("in memory the page cache was kept out: %q", got.Cache)
	}
	if len(got.Runs) != 4 {
		t.Fatalf("%d patterns", len(got.Runs))
	}
	for i, r := range got.Runs {
		if r.Pattern != measure.DiskPatterns()[i] || r.BlockBytes < 4096 || r.Target != "" {
			t.Errorf("%+v", r)
		}
		checkRun(t, r)
	}
	var targets []string
	for _, r := range got.Memory {
		targets = append(targets, r.Target+" "+r.Pattern)
		checkRun(t, r)
	}
	want := []string{"/dev/shm sequential read", "/dev/shm random read", "/dev/shm sequential write", "/dev/shm random write", "/dev/zero sequential read", "/dev/null sequential write"}
	if !slices.Equal(targets, want) {
		t.Errorf("the baseline is of %q, missing %v", targets, got.Missing)
	}
}

// checkRun: the figures of a run are consistent, and belong to the fastest step.
func checkRun(t *testing.T, r measure.DiskRun) {
	t.Helper()
	if r.Bytes == nil || r.IOPS == nil || r.Latency == nil || r.CPU == nil || len(r.Tried) == 0 || r.ElapsedNs < int64(measure.LeastDiskRun) {
		t.Fatalf("%+v", r)
	}
	if diff := r.Bytes.Value/(r.IOPS.Value*float64(r.BlockBytes)) - 1; math.Abs(diff) > 1e-6 {
		t.Errorf("%s: %g bytes and %g accesses of %d a second", r.Pattern, r.Bytes.Value, r.IOPS.Value, r.BlockBytes)
	}
	if r.Bytes.Low > r.Bytes.Value || r.Bytes.High < r.Bytes.Value {
		t.Errorf("%s: %+v", r.Pattern, r.Bytes)
	}
	best := slices.MaxFunc(r.Tried, func(a, b measure.DiskStep) int { return int(math.Copysign(1, a.Bytes-b.Bytes)) })
	if best.Workers != r.Workers || best.Bytes != r.Bytes.Value {
		t.Errorf("%s: the most is %+v, shown is %d workers, %g", r.Pattern, best, r.Workers, r.Bytes.Value)
	}
	if l := r.Latency; l.Count < 1 || l.Min > l.P50 || l.P50 > l.P99 || l.P99 > l.P9999 || l.Max < l.Mean {
		t.Errorf("%s: %+v", r.Pattern, l)
	}
}

// rates is a method with a known total rate.
type rates map[int]float64

func (rates) name() string { return "table" }

func (r rates) run(_ context.Context, j job, _ func(bytes, ops int64)) (outcome, error) {
	if r[j.workers] == 0 {
		return outcome{}, syscall.EIO
	}
	return outcome{bytes: int64(r[j.workers]), ops: 1, elapsed: time.Second, latency: &measure.Latency{Count: 1}}, nil
}

// TestWorkersAreRaised until the total rate rises by less than 5% twice in a row.
func TestWorkersAreRaised(t *testing.T) {
	tests := []struct {
		name   string
		rates  rates
		most   int
		best   int
		tried  int
		rising bool
		fails  bool
	}{
		{"one is enough", rates{1: 100, 2: 100, 4: 100}, 0, 1, 3, false, false},
		{"less than 5% more is the end, and counts", rates{1: 100, 2: 200, 4: 390, 8: 400, 16: 400}, 0, 8, 5, false, false},
		{"more workers are slower", rates{1: 100, 2: 120, 4: 90, 8: 95}, 0, 2, 4, false, false},
		{"a step that was disturbed is not the end", rates{1: 100, 2: 100, 4: 380, 8: 390, 16: 390}, 0, 8, 5, false, false},
		{"up to what is allowed", rates{1: 100, 2: 200, 3: 300}, 3, 3, 3, true, false},
		{"one alone is allowed", rates{1: 100}, 1, 1, 1, false, false},
		{"what was measured before a failure stays", rates{1: 100, 2: 200}, 0, 2, 2, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := &test{conf: Config{Host: host.New(), Spec: measure.DiskSpec{Workers: tt.most, RunNs: 1}}, progress: quiet, method: tt.rates}
			x.FileBytes = 1 << 30
			r, err := x.climb(t.Context(), measure.RandomRead)
			if (err != nil) != tt.fails || tt.fails && !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			if r.Workers != tt.best || len(r.Tried) != tt.tried || r.Rising != tt.rising || r.Bytes.Value != tt.rates[tt.best] {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestBlocksBoundWorkers: no more workers than blocks, and no more buffers than the memory limit.
func TestBlocksBoundWorkers(t *testing.T) {
	x := &test{conf: Config{Host: host.New(), Spec: measure.DiskSpec{BlockBytes: 64 << 20, RunNs: 1}}, progress: quiet, method: rates{1: 1, 2: 2, 3: 3, 4: 4, 8: 8, 16: 16}}
	for size, want := range map[int64]int{3 * 64 << 20: 3, 1 << 40: 4} {
		x.FileBytes = size
		if r, err := x.climb(t.Context(), measure.SequentialRead); err != nil || r.Workers != want || !r.Rising {
			t.Errorf("file of %d: %+v %v", size, r, err)
		}
	}
}

// TestRoom: a disk is never filled.
func TestRoom(t *testing.T) {
	tests := []struct {
		name                   string
		free, asked, most, use int64
		want                   int64 // 0: refused
	}{
		{"the usual", 100 << 30, 0, 0, 1 << 30, 1 << 30},
		{"half of what is free", 1 << 30, 0, 0, 1 << 30, 512 << 20},
		{"as asked", 100 << 30, 5 << 30, 0, 1 << 30, 5 << 30},
		{"more than half is asked", 9 << 30, 5 << 30, 0, 1 << 30, 0},
		{"what the end point allows", 100 << 30, 0, 64 << 20, 1 << 30, 64 << 20},
		{"more than that is asked", 100 << 30, 65 << 20, 64 << 20, 1 << 30, 0},
		{"nearly full", 7 << 20, 0, 0, 1 << 30, 0},
		{"full", 0, 0, 0, 1 << 30, 0},
		{"whole blocks", 100 << 30, 10<<20 + 5, 0, 1 << 30, 10 << 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := &test{conf: Config{Spec: measure.DiskSpec{FileBytes: tt.asked}, MaxBytes: tt.most}}
			x.FreeBytes = tt.free
			err := x.size(tt.use)
			if tt.want == 0 && (!errors.Is(err, ErrRoom) || fault.Hint(err) == "") || tt.want > 0 && (err != nil || x.FileBytes != tt.want) {
				t.Errorf("%d, %v (%s)", x.FileBytes, err, fault.Hint(err))
			}
		})
	}
}

// TestRoomInMemory: a file in memory takes only a part of it, so that no process is killed.
func TestRoomInMemory(t *testing.T) {
	x := &test{memory: 32 << 20}
	x.FreeBytes = 12 << 30
	if err := x.size(memoryFile); err != nil || x.FileBytes != 32<<20 {
		t.Errorf("%d, %v", x.FileBytes, err)
	}
	x.conf.Spec.FileBytes = 33 << 20
	if err := x.size(memoryFile); !errors.Is(err, ErrRoom) || !strings.Contains(err.Error(), "in memory") {
		t.Error(err)
	}
	if share := memoryShare(host.New()); share < 1<<20 || share > memoryBytes() {
		t.Errorf("%d of %d bytes of memory", share, memoryBytes())
	}
}

// TestPageCacheNotBypassed: without O_DIRECT, the result says how the cache was bypassed.
func TestPageCacheNotBypassed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		memory, asked, want int64
		said                string
	}{
		{6 << 20, 0, 12 << 20, "file of 2 x memory: "},
		{3 << 20, 8 << 20, 8 << 20, "file of more than 2 x memory: "},
		{1 << 50, 8 << 20, 8 << 20, "emptied before each step"},
	}
	for _, tt := range tests {
		t.Run(tt.said, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			c := small(t, folder, measure.DiskByThru)
			c.noDirect, c.memory, c.Spec.FileBytes, c.Spec.NoMemory = true, tt.memory, tt.asked, true
			got, err := Measure(t.Context(), c, quiet)
			if strings.HasPrefix(got.Cache, "not kept out") {
				t.Skip("needs a temporary folder that is no memory")
			}
			if err != nil || !strings.HasPrefix(got.Cache, tt.said) || got.FileBytes != tt.want || len(got.Runs) != 4 || len(got.Memory) > 0 {
				t.Errorf("%+v %v", got, err)
			}
			if names := left(t, folder); len(names) > 0 {
				t.Errorf("left in the folder: %q", names)
			}
		})
	}
}

// TestNamedFile: where a file needs a name, the name is removed at once.
func TestNamedFile(t *testing.T) {
	folder := t.TempDir()
	c := small(t, folder, "")
	f, err := createNamed(c.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names := left(t, folder); len(names) > 0 {
		t.Errorf("left in the folder: %q", names)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// TestInterrupted: the measurements until then stay, and nothing else.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"making the file", measure.SequentialRead, measure.RandomWrite} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			c := small(t, folder, measure.DiskByThru)
			c.Spec.FileBytes, c.Spec.RunNs = 64<<20, int64(time.Second)
			if at == "making the file" {
				c.Spec.FileBytes = 0
			}
			if at == measure.RandomWrite {
				c.Spec.Patterns = []string{measure.RandomRead, measure.RandomWrite}
				c.Spec.Workers = 1
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if at == "making the file" {
				cancel()
			}
			got, err := Measure(ctx, c, func(k measure.DiskTick) {
				if k.Doing == at {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if want := map[string]int{measure.RandomWrite: 1}[at]; len(got.Runs) != want || len(got.Memory) > 0 {
				t.Errorf("%d runs, %d of the baseline", len(got.Runs), len(got.Memory))
			}
			if names := left(t, folder); len(names) > 0 {
				t.Errorf("left in the folder: %q", names)
			}
		})
	}
}

// TestRefused: errors in the request are reported before anything is written.
func TestRefused(t *testing.T) {
	tests := map[string]func(*measure.DiskSpec){
		"unknown pattern": func(s *measure.DiskSpec) { s.Patterns = []string{"backwards"} },
		"a block of":      func(s *measure.DiskSpec) { s.BlockBytes = 1000 },
		"too small":       func(s *measure.DiskSpec) { s.FileBytes = 100 },
		"a step of":       func(s *measure.DiskSpec) { s.RunNs = 0 },
		"workers are not": func(s *measure.DiskSpec) { s.Workers = measure.MostDiskWorkers + 1 },
		"unknown program": func(s *measure.DiskSpec) { s.By = "dd" },
		"does not fit":    func(s *measure.DiskSpec) { s.BlockBytes = 16 << 20 },
	}
	for want, change := range tests {
		folder := t.TempDir()
		c := small(t, folder, measure.DiskByThru)
		change(&c.Spec)
		got, err := Measure(t.Context(), c, quiet)
		if err == nil || !strings.Contains(err.Error(), want) || fault.Code(err) != fault.Usage || fault.Hint(err) == "" || len(got.Runs) > 0 {
			t.Errorf("%s: %v (%s)", want, err, fault.Hint(err))
		}
	}
}

// TestReasons: errors of a file system have a hint.
func TestReasons(t *testing.T) {
	x := &test{conf: Config{Path: "/srv"}}
	x.Path = "/srv"
	for reason, hint := range map[error]string{
		syscall.EROFS: "read-only", syscall.EACCES: "may write", syscall.ENOSPC: "free space", syscall.EDQUOT: "free space", errors.ErrUnsupported: "Linux",
	} {
		err := x.explain("writing a file in", fmt.Errorf("x: %w", reason))
		if !errors.Is(err, reason) || !strings.Contains(fault.Hint(err), hint) || !strings.HasPrefix(err.Error(), "disk: writing a file in /srv: ") {
			t.Errorf("%v (%s)", err, fault.Hint(err))
		}
	}
	if err := x.explain("writing a file in", syscall.ENOSPC); !errors.Is(err, ErrRoom) {
		t.Error(err)
	}
}

// TestSlowDisk: when the time is over, the file keeps the size written so far; a small file is complete.
func TestSlowDisk(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "x"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size, want := range map[int64]int64{8 << 20: 8 << 20, 200 << 20: 64 << 20} {
		if n, err := fill(t.Context(), f, size, 1, func(int64, float64) {}); err != nil || n != want {
			t.Errorf("of %d: %d, %v", size, n, err)
		}
	}
}
