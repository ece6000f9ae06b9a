package faults

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"thru/lab"
)

// freezer stops single threads: a process that is stopped as a whole could not see that its data waits.
type freezer struct{ dir string }

func newFreezer(t testing.TB) *freezer {
	return &freezer{lab.Group(t, "freezer", map[string]string{}, nil)}
}

// set writes the state. A group that is gone has no threads to stop.
func (f *freezer) set(state string) {
	_ = os.WriteFile(filepath.Join(f.dir, "freezer.state"), []byte(state), 0o644)
}

// hold freezes the busiest thread of each worker in a host and thaws it for a moment, in turns, until ctx
// ends.
func (f *freezer) hold(ctx context.Context, h *lab.Host, frozen, free time.Duration) {
	defer f.set("THAWED")
	for ctx.Err() == nil {
		for _, tid := range busiestThreads(h.Pids()) {
			_ = os.WriteFile(filepath.Join(f.dir, "tasks"), []byte(strconv.Itoa(tid)), 0o644) // it may have ended
		}
		f.set("FROZEN")
		sleep(ctx, frozen)
		f.set("THAWED")
		sleep(ctx, free)
	}
}

// sleep waits, or returns early when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// busiestThreads returns for each worker the thread with the most CPU time, which moves the data. It returns
// none before a thread reaches workedBar.
func busiestThreads(pids []int) []int {
	var threads []int
	for _, pid := range pids {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !bytes.Contains(line, []byte("\x00worker")) {
			continue
		}
		if tid := busiestThread(pid); tid != 0 {
			threads = append(threads, tid)
		}
	}
	return threads
}

// workedBar is the CPU time in ns from which on a thread counts as moving data.
const workedBar = 5e6

func busiestThread(pid int) int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0
	}
	best, most := 0, int64(workedBar)
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, task.Name()))
		if err != nil {
			continue
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err1 := strconv.ParseInt(ran, 10, 64)
		tid, err2 := strconv.Atoi(task.Name())
		if cmp.Or(err1, err2) == nil && ns > most {
			best, most = tid, ns
		}
	}
	return best
}
