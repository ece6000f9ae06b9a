package disk

import (
	"bufio"
	"context"
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

// Variables that make the test binary measure until it is killed.
const killedFolder, killedBy = "THRU_TEST_DISK_FOLDER", "THRU_TEST_DISK_BY"

// onceOnly makes the test binary measure once.
const onceOnly = "THRU_TEST_DISK_ONCE"

func measureUntilKilled(dir, by string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	said := false
	_, err = Measure(context.Background(), Config{Root: root, Path: dir, Host: host.New(), Spec: measure.DiskSpec{FileBytes: 8 << 20, RunNs: int64(time.Minute), By: by, Workers: 2}},
		func(k measure.DiskTick) {
			if k.Workers > 0 && k.Bytes > 0 && !said {
				said = true
				fmt.Println("measuring")
			}
		})
	fmt.Println(err)
}

// TestKilled: a process killed in the middle of a test leaves nothing behind, no file and no fio.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, by := range []string{measure.DiskByThru, measure.DiskByFio} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			if by == measure.DiskByFio {
				lab.Require(t, lab.Program("fio"))
			}
			dir := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), killedFolder+"="+dir, killedBy+"="+by)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "measuring\n" {
				t.Fatalf("%q %v", line, err)
			}
			children := childrenOf(cmd.Process.Pid)
			if by == measure.DiskByFio && len(children) != 1 {
				t.Errorf("%d children, want one fio", len(children))
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if names := left(t, dir); len(names) > 0 {
				t.Errorf("left in the folder: %q", names)
			}
			for _, child := range children {
				if !endsSoon(child) {
					t.Errorf("process %s goes on", child)
				}
			}
		})
	}
}

// childrenOf lists the processes that a process has started.
func childrenOf(pid int) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		_, after, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(after); len(f) > 1 && f[1] == fmt.Sprint(pid) {
			all = append(all, filepath.Base(filepath.Dir(file)))
		}
	}
	return all
}

// endsSoon waits until a process has ended or is a zombie.
func endsSoon(pid string) bool {
	for range 400 {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		_, after, _ := strings.Cut(string(b), ") ")
		if err != nil || strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X") {
			return true
		}
		time.Sleep(25 * time.Millisecond)
	}
	return false
}
