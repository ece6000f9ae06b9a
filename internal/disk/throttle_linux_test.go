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

// measureOnce is the part of a test that runs in a process of its own: it waits
// until it is told, and prints what it has measured.
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

// TestThrottled: where the kernel lets a process read 20 MB and write 10 MB a
// second, both methods find that, to 10%. They wait at the same time, each in a group
// of its own, and with no other test beside them.
func TestThrottled(t *testing.T) {
	lab.Require(t, lab.Root(), lab.Program("fio"))
	for _, by := range []string{measure.DiskByThru, measure.DiskByFio} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			group := throttled(t, dir, by, 20_000_000, 10_000_000)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
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
			var got measure.DiskTest
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got.Runs) != 2 {
				t.Fatalf("%v: %s", err, out.String())
			}
			for i, want := range []float64{20e6, 10e6} {
				if v := got.Runs[i].Bytes.Value; v < 0.9*want || v > 1.1*want {
					t.Errorf("%s: %.1f MB/s, want %.1f", got.Runs[i].Pattern, v/1e6, want/1e6)
				}
			}
		})
	}
}

// throttled makes a control group of that name for processes that may read and write so many
// bytes a second of the disk below a folder (Documentation/admin-guide: cgroup-v2,
// io.max; cgroup-v1/blkio-controller). It is removed with the test.
func throttled(t *testing.T, dir, name string, read, write int) string {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	device := host.New().Volume(f.Fd()).Device
	number, err := os.ReadFile("/sys/block/" + device + "/dev")
	if device == "" || err != nil {
		without(t, "a disk below "+dir)
	}
	at := strings.TrimSpace(string(number))
	for parent, files := range map[string]map[string]string{
		"/sys/fs/cgroup/blkio": {"blkio.throttle.read_bps_device": fmt.Sprintf("%s %d", at, read), "blkio.throttle.write_bps_device": fmt.Sprintf("%s %d", at, write)},
		"/sys/fs/cgroup":       {"io.max": fmt.Sprintf("%s rbps=%d wbps=%d", at, read, write)},
	} {
		group := filepath.Join(parent, fmt.Sprintf("thru-test-%s-%d", name, os.Getpid()))
		if os.Mkdir(group, 0o700) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(group) })
		set := true
		for name, text := range files {
			file, err := os.OpenFile(filepath.Join(group, name), os.O_WRONLY, 0)
			if err != nil {
				set = false
				continue
			}
			_, err = file.WriteString(text)
			file.Close()
			set = set && err == nil
		}
		if set {
			return group
		}
	}
	without(t, "a control group that throttles "+device)
	return ""
}

// without skips a test, or fails it where this machine must be able to do all.
func without(t *testing.T, what string) {
	t.Helper()
	if os.Getenv(lab.RequireVariable) == "1" {
		t.Fatalf("lab: %s is required here (%s=1)", what, lab.RequireVariable)
	}
	t.Skip("needs " + what)
}
