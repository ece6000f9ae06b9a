//go:build linux

package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Limits of an idle agent's cost, and of the time until a test sends data.
const (
	idleCPUPct  = 0.2  // of one core
	idleMB      = 40.0 // resident
	firstByteMs = 150.0
)

// addAgent measures the idle agent and the time to the first data.
func (r *report) addAgent(ctx context.Context, w io.Writer) error {
	if !r.settings.only.MatchString("agent") || absent(r.settings.thru) != "" {
		return nil
	}
	unlock, err := lock(r.settings.lock)
	if err != nil {
		return err
	}
	defer unlock()
	cpu, mb, err := idleAgent(ctx, r.settings)
	if err != nil {
		return fmt.Errorf("bench: watching an idle agent: %w", err)
	}
	var starts []float64
	for range r.settings.repeats {
		ms, err := firstData(ctx, r.settings)
		if err != nil {
			return fmt.Errorf("bench: timing the first data: %w", err)
		}
		starts = append(starts, ms)
	}
	t := table{title: "agent: idle, and the start of a test", rows: [][]string{{"property", "value", "bound"}}}
	for _, x := range []struct {
		name, unit   string
		value, bound float64
	}{
		{"idle agent, CPU", "% of a core", cpu, idleCPUPct},
		{"idle agent, resident", "MB", mb, idleMB},
		{"start of `thru test` to the first MB of data", "ms", median(starts), firstByteMs},
	} {
		t.rows = append(t.rows, []string{x.name, digits(x.value) + " " + x.unit, digits(x.bound) + " " + x.unit})
		short := x.value/x.bound - 1
		r.bars = append(r.bars, []string{"agent", "below: " + x.name + " " + digits(x.bound) + " " + x.unit, words(short, short <= 0), digits(x.value) + " " + x.unit})
	}
	r.print(w, t)
	return nil
}

// idleAgent watches `thru serve` for a while after it has come up.
func idleAgent(ctx context.Context, s settings) (cpuPct, mb float64, err error) {
	folder, err := os.MkdirTemp("", "bench-*")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(folder)
	p, err := command{argv: []string{"env", "XDG_CONFIG_HOME=" + folder, "XDG_STATE_HOME=" + folder, s.thru, "serve", "--no-auth"}, cpu: -1}.start()
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	if err := awaitPort(ctx, p, "tcp/5200"); err != nil {
		return 0, 0, err
	}
	nap(ctx, 2*time.Second)
	before, at := runTime(p.cmd.Process.Pid), time.Now()
	nap(ctx, s.idle)
	used := runTime(p.cmd.Process.Pid) - before
	return 100 * used.Seconds() / time.Since(at).Seconds(), residentMB(p.cmd.Process.Pid), ctx.Err()
}

func nap(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// runTime returns the CPU time of all threads of a process (/proc/PID/task/TID/schedstat, in ns).
func runTime(pid int) time.Duration {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var sum time.Duration
	for _, name := range files {
		b, _ := os.ReadFile(name)
		if f := strings.Fields(string(b)); len(f) > 0 {
			ns, _ := strconv.ParseInt(f[0], 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

// residentMB returns VmRSS of /proc/PID/status, in 10^6 bytes.
func residentMB(pid int) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib * 1024 / 1e6
		}
	}
	return 0
}

// firstData returns the time in ms from the start of `thru test` until the loopback interface has carried 1
// MB: control within one host does not use it, and 1 MB takes well below a millisecond.
func firstData(ctx context.Context, s settings) (ms float64, err error) {
	before, start := loopbackBytes(), time.Now()
	p, err := command{argv: []string{s.thru, "test", "--one-way", "-t", "0.5", "-O", "0", "-P", "1"}, cpu: -1}.start()
	if err != nil {
		return 0, err
	}
	defer p.stop()
	for loopbackBytes()-before < 1e6 {
		if time.Since(start) > serverTime {
			return 0, fmt.Errorf("no data after %v", serverTime)
		}
		time.Sleep(500 * time.Microsecond)
	}
	took := time.Since(start)
	return took.Seconds() * 1e3, p.wait(ctx, spareTime)
}
