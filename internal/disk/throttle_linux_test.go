package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/lab"
)

// measureOnce is the part of a test that runs in its own process: it waits for the start, and prints its measurement.
func measureOnce(dir, by string) {
	var b [1]byte
	os.Stdin.Read(b[:])
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := measure.DiskSpec{Patterns: []string{measure.SequentialRead, measure.SequentialWrite}, FileBytes: 8 << 20, RunNs: int64(2 * time.Second), By: by, Workers: 1, NoMemory: true}
	test, err := Measure(context.Background(), Config{Root: root, Path: dir, Host: host.New(), Spec: spec}, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	json.NewEncoder(os.Stdout).Encode(test)
}

// TestThrottled: where the kernel limits a process to 20 MB/s of reads and 10 MB/s of writes, both methods measure that within 10%. They run at the same time,
// each in its own control group, and without other tests. What else the machine does may slow down a run, not each of five.
func TestThrottled(t *testing.T) {
	lab.Require(t, lab.Root(), lab.Program("fio"))
	for _, by := range []string{measure.DiskByThru, measure.DiskByFio} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			group := lab.SlowDisk(t, dir, 20_000_000, 10_000_000)
			wrong := []string{""}
			for try := 0; try < 5 && len(wrong) > 0; try++ {
				got := throttled(t, group, dir, by)
				wrong = nil
				for i, want := range []float64{20e6, 10e6} {
					if v := got.Runs[i].Bytes.Value; v < 0.9*want || v > 1.1*want {
						wrong = append(wrong, fmt.Sprintf("%s: %.1f MB/s, want %.1f", got.Runs[i].Pattern, v/1e6, want/1e6))
					}
				}
			}
			if len(wrong) > 0 {
				t.Errorf("in each of five runs, at last %q", wrong)
			}
		})
	}
}

// throttled measures in a process of a control group, which comes before other programs: the disk is to limit it, not the CPU.
func throttled(t *testing.T, group, dir, by string) (got measure.DiskTest) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nice", "-n", "-15", os.Args[0])
	cmd.Env = append(os.Environ(), killedFolder+"="+dir, killedBy+"="+by, onceOnly+"=1")
	in, err := cmd.StdinPipe()
	var out strings.Builder
	cmd.Stdout = &out
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0o600); err != nil {
		t.Error(err)
	}
	in.Close()
	cmd.Wait()
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got.Runs) != 2 {
		t.Fatalf("%v: %s", err, out.String())
	}
	return got
}
