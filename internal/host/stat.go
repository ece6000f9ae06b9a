package host

import (
	"fmt"
	"strconv"
	"strings"
	"thru/internal/host/tree"
	"time"
)

// CPUTimes is the time that one core has spent since boot, in nanoseconds.
type CPUTimes struct {
	Core    int
	User    int64 // includes nice and guests of this hypervisor
	System  int64
	IRQ     int64
	SoftIRQ int64
	Steal   int64 // ready to run, but the hypervisor ran another guest
	Idle    int64 // includes waiting for I/O
}

// tick is one unit of the kernel's times: USER_HZ is 100 on every system that
// thru builds for (include/asm-generic/param.h).
const tick = int64(10 * time.Millisecond)

// CPUs returns the times of all online cores.
func (h *Host) CPUs() ([]CPUTimes, error) { return tree.Parsed(h.fs.Read, "proc/stat", parseStat) }

// parseStat reads the cores of /proc/stat (proc_stat(5); fs/proc/stat.c).
// Offline cores have no line.
func parseStat(text string) ([]CPUTimes, error) {
	var cores []CPUTimes
	for line := range tree.Lines(text) {
		number, isCPU := strings.CutPrefix(line, "cpu")
		if !isCPU {
			break // the cores come first
		}
		if number == "" || number[0] == ' ' {
			continue // the sum of all
		}
		c, err := parseCore(number)
		if err != nil {
			return nil, err
		}
		cores = append(cores, c)
	}
	return cores, tree.UnlessEmpty(len(cores), "no line of a core")
}

// parseCore reads "0 user nice system idle iowait irq softirq steal ...".
// Guest time follows, and is already in user.
func parseCore(line string) (CPUTimes, error) {
	f := strings.Fields(line)
	if len(f) < 9 {
		return CPUTimes{}, fmt.Errorf("core line %.80q has %d columns, want 9", line, len(f))
	}
	core, err := strconv.Atoi(f[0])
	if err != nil || core < 0 {
		return CPUTimes{}, fmt.Errorf("core line %.80q has no number", line)
	}
	var ns [8]int64
	for i := range ns {
		n, err := strconv.ParseUint(f[i+1], 10, 63)
		if err != nil || n > uint64(1<<63-1)/uint64(tick) {
			return CPUTimes{}, fmt.Errorf("core line %.80q: %q is not a time", line, f[i+1])
		}
		ns[i] = int64(n) * tick
	}
	return CPUTimes{
		Core: core, User: ns[0] + ns[1], System: ns[2], Idle: ns[3] + ns[4],
		IRQ: ns[5], SoftIRQ: ns[6], Steal: ns[7],
	}, nil
}
