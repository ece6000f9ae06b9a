package disk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fio is the method that runs the program fio. version is its own output: "fio-3.33".
type fio struct{ path, version string }

var errNoFio = errors.New("fio is not installed")

// Limits of fio's messages, in bytes, and of its time in addition to the runs.
const (
	mostSaid   = 4 << 10
	versionEnd = 5 * time.Second
)

// findFio looks for fio, and reads its version.
func findFio(ctx context.Context) (fio, error) {
	path, err := exec.LookPath("fio")
	if err != nil {
		return fio{}, errNoFio
	}
	ctx, cancel := context.WithTimeout(ctx, versionEnd)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	version := strings.TrimSpace(string(said))
	if err != nil || !strings.HasPrefix(version, "fio-") || len(version) > 64 || strings.ContainsAny(version, " \n") {
		return fio{}, fmt.Errorf("%s --version: %.80q, %w", path, version, cmp.Or(err, errors.New("not a version of fio")))
	}
	return fio{path, version}, nil
}

func (f fio) name() string { return f.version }

// arguments returns the arguments of one step. The file has no name: fio opens it by the inherited descriptor. It opens a device by its name.
func (j job) arguments(direct bool) []string {
	name := "/proc/self/fd/3"
	if strings.HasPrefix(j.target, "/dev/") && j.target != DefaultMemory {
		name = j.target
	}
	a := []string{
		"--name=thru", "--filename=" + name, "--thread", "--ioengine=psync", "--group_reporting", "--time_based", "--eta=never",
		"--output-format=json", "--status-interval=1", "--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50:90:99:99.9:99.99",
		"--rw=" + map[string]string{"sequential read": "read", "sequential write": "write", "random read": "randread", "random write": "randwrite"}[j.pattern],
		"--bs=" + strconv.FormatInt(j.block, 10), "--numjobs=" + strconv.Itoa(j.workers), "--runtime=" + strconv.FormatInt(j.length.Milliseconds(), 10) + "ms",
	}
	if direct {
		a = append(a, "--direct=1")
	}
	if j.cached {
		a = append(a, "--end_fsync=1")
	}
	if isRandom(j.pattern) {
		return append(a, "--norandommap", "--randrepeat=0", "--size="+strconv.FormatInt(j.size, 10))
	}
	part := strconv.FormatInt(max(1, j.size/j.block/int64(j.workers))*j.block, 10)
	return append(a, "--size="+part, "--offset_increment="+part)
}

func (f fio) run(ctx context.Context, j job, progress func(bytes, ops int64)) (outcome, error) {
	runtime.LockOSThread() // fio ends with the thread that has started it
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(ctx, j.length+comeBack)
	defer cancel()
	direct := !j.cached && j.target == "" && isDirect(j.file)
	cmd := exec.CommandContext(ctx, f.path, j.arguments(direct)...)
	said := &head{}
	cmd.Stderr, cmd.ExtraFiles, cmd.WaitDelay = said, append(cmd.ExtraFiles, j.file), time.Second
	bind(cmd)
	out, in := io.Pipe()
	cmd.Stdout = in
	type reading struct {
		states []fioState
		err    error
	}
	read := make(chan reading, 1)
	go func() {
		states, err := readFio(out, func(s fioState) { progress(s.bytes, s.ops) })
		out.CloseWithError(err)
		read <- reading{states, err}
	}()
	err := cmd.Run()
	in.Close()
	r := <-read
	if _, ok := errors.AsType[syscall.Errno](r.err); ok { // it explains more than the exit code
		err = r.err
	}
	if err = cmp.Or(ctx.Err(), err, r.err); err != nil {
		return outcome{}, fmt.Errorf("%s: %w%s", f.version, err, said)
	}
	return outcomeOf(r.states)
}

// head keeps the beginning of a program's output.
type head struct{ bytes.Buffer }

// Write keeps the data that fits.
func (h *head) Write(b []byte) (int, error) {
	h.Buffer.Write(b[:min(len(b), mostSaid-h.Len())])
	return len(b), nil
}

// String returns the first line, as the end of an error.
func (h *head) String() string {
	line, _, _ := strings.Cut(strings.TrimSpace(h.Buffer.String()), "\n")
	if line == "" {
		return ""
	}
	return fmt.Sprintf(": %.200q", line)
}
