package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/host"
	"thru/internal/unit"
)

// Every thread of both workers stays on the CPUs of its end, placed or not,
// while the data flows (proc(5), Cpus_allowed_list).
func TestConfined(t *testing.T) {
	allowed := host.Allowed()
	first, last := unit.List(allowed[:1]), unit.List(allowed[len(allowed)-1:])
	suite := suite{Engine: Engine{Program: program(t)}, Gone: gone}
	for _, unplaced := range []bool{false, true} {
		spec := suite.spec(3)
		spec.Duration, spec.Unplaced = int64(time.Minute), unplaced
		spec.SenderCPUs, spec.ReceiverCPUs = first, last
		sender, receiver := suite.pair(t, spec, true)
		start(t, 0, sender, receiver)
		for range 3 { // the threads are there
			<-receiver.Updates()
		}
		for _, x := range []struct {
			engine.Session
			want string
		}{{sender, first}, {receiver, last}} {
			lists := cpusOfThreads(t, x.Process())
			if len(lists) < 4 { // 3 data threads, and the runtime's
				t.Errorf("%d threads", len(lists))
			}
			for tid, got := range lists {
				if got != x.want {
					t.Errorf("unplaced %v: thread %s may use CPUs %s, want %s", unplaced, tid, got, x.want)
				}
			}
		}
		sender.Close()
		receiver.Close()
	}
}

// cpusOfThreads returns the CPUs that each thread of a process may use.
func cpusOfThreads(t *testing.T, pid int) map[string]string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		for line := range strings.Lines(string(text)) {
			if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				lists[filepath.Base(filepath.Dir(f))] = strings.TrimSpace(list)
			}
		}
	}
	return lists
}
