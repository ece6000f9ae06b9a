package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/host"
)

// Group creates a control group of version 1 with the settings one of a controller, or else of version 2 with
// two: values by file name (Documentation/admin-guide, cgroup-v1 and cgroup-v2). It removes the group after
// the test.
func Group(t testing.TB, controller string, one, two map[string]string) string {
	t.Helper()
	for parent, settings := range map[string]map[string]string{"/sys/fs/cgroup/" + controller: one, "/sys/fs/cgroup": two} {
		if settings == nil {
			continue
		}
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			Eventually(t, 10*time.Second, dir+" is empty", func() bool { return os.Remove(dir) == nil })
		})
		for name, value := range settings {
			err = errors.Join(err, setFile(filepath.Join(dir, name), value))
		}
		if err == nil {
			return dir
		}
	}
	lacks(t, "a control group of "+controller)
	return ""
}

// setFile writes to an existing file.
func setFile(name, value string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// SlowDisk creates a control group that limits reads and writes, in bytes/s, on the disk of a folder (io.max;
// cgroup-v1/blkio-controller).
func SlowDisk(t testing.TB, folder string, read, write int) string {
	t.Helper()
	f, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	device := host.New().Volume(f.Fd()).Device
	number, err := os.ReadFile("/sys/block/" + device + "/dev")
	if device == "" || err != nil {
		lacks(t, "a disk below "+folder)
	}
	at := strings.TrimSpace(string(number))
	return Group(t, "blkio", map[string]string{
		"blkio.throttle.read_bps_device":  fmt.Sprintf("%s %d", at, read),
		"blkio.throttle.write_bps_device": fmt.Sprintf("%s %d", at, write),
	}, map[string]string{"io.max": fmt.Sprintf("%s rbps=%d wbps=%d", at, read, write)})
}

// lacks skips a test, or fails it on a machine that must support everything.
func lacks(t testing.TB, what string) {
	t.Helper()
	Require(t, Need{what, func() error { return errors.New("this machine has none") }})
}
