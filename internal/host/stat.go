package host

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
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

// activity holds a host's counters at one time. A counter that could not be
// read is nil.
type activity struct {
	taken     time.Time
	cpus      []CPUTimes
	softnet   []measure.Softnet
	nets      []octets
	tasks     map[int]task // by process number
	vhost     map[int]task // threads that move guests' packets, by thread number
	throttled *int64       // also nil where there is no quota
}

// task is the CPU time that a process or a thread has used since it began.
type task struct {
	name   string
	parent int
	start  uint64 // in ticks after boot; identifies a task whose number is used again
	ns     int64
}

// Load names only the busiest processes.
const (
	topProcesses = 3
	topPct       = 5.0 // of one CPU
)

// Load measures for span what the host does while no test runs. It reads the
// counters twice and waits in between; the end of ctx shortens the wait. It
// leaves out the processes of thru and their children.
func (h *Host) Load(ctx context.Context, span time.Duration) (measure.Load, []measure.NotChecked) {
	var first, n notes
	before := h.activity(&first) // the second reading notes the same
	wait := time.NewTimer(span)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	l := loadBetween(&n, before, h.activity(&n), os.Getpid())
	return l, n
}

// loadBetween returns the load between two readings.
func loadBetween(n *notes, before, after activity, own int) measure.Load {
	length := after.taken.Sub(before.taken)
	l := measure.Load{SpanNs: length.Nanoseconds(), Interfaces: rates(before.nets, after.nets, length)}
	if before.cpus != nil && after.cpus != nil {
		loadOfCPUs(n, &l, before.cpus, after.cpus)
	}
	if before.softnet != nil && after.softnet != nil {
		l.Squeezed, l.Dropped = new(int64(0)), new(int64(0))
		for _, c := range softnetSpan(before.softnet, after.softnet) {
			*l.Squeezed += int64(c.TimeSqueeze)
			*l.Dropped += int64(c.Dropped)
		}
	}
	if before.throttled != nil && after.throttled != nil {
		if d, ok := rise(n, "load.throttled_periods", uint64(*before.throttled), uint64(*after.throttled)); ok {
			l.Throttled = new(int64(d))
		}
	}
	if movers := busiest(before.vhost, after.vhost, length); len(movers) > 0 {
		l.VhostPct = &movers[0].CPUPct
	}
	others := busiest(before.tasks, strangers(after.tasks, own), length)
	for _, t := range others[:min(len(others), topProcesses)] {
		if t.CPUPct >= topPct {
			l.Top = append(l.Top, t)
		}
	}
	return l
}

// loadOfCPUs adds up the cores. The time was the same for each, so that their
// shares have equal weight.
func loadOfCPUs(n *notes, l *measure.Load, before, after []CPUTimes) {
	cores := cpuSpan(&notes{}, before, after)
	if len(cores) == 0 {
		n.add("load.cpu_pct", "no clock tick of any core in this period")
		return
	}
	busy, steal := 0.0, 0.0
	most := cores[0]
	for _, c := range cores {
		busy, steal = busy+c.Busy(), steal+c.Steal
		if c.Busy() > most.Busy() {
			most = c
		}
	}
	l.CPUPct, l.StealPct = new(busy/float64(len(cores))), new(steal/float64(len(cores)))
	l.BusiestCPU, l.BusiestPct = &most.Core, new(most.Busy())
	var stolen, all float64
	for _, c := range after {
		stolen += float64(c.Steal)
		all += float64(c.User) + float64(c.System) + float64(c.IRQ) + float64(c.SoftIRQ) + float64(c.Steal) + float64(c.Idle)
	}
	if all > 0 {
		l.StealBoot = new(100 * stolen / all)
	}
}

// rates returns the traffic of each interface that moved anything. It leaves
// out interfaces that are new or whose counters were reset.
func rates(before, after []octets, length time.Duration) []measure.InterfaceLoad {
	var all []measure.InterfaceLoad
	for _, a := range after {
		i := slices.IndexFunc(before, func(b octets) bool { return b.name == a.name })
		if i < 0 || length <= 0 || a.rx < before[i].rx || a.tx < before[i].tx || a == before[i] {
			continue
		}
		bps := func(from, to uint64) float64 { return 8 * float64(to-from) / length.Seconds() }
		all = append(all, measure.InterfaceLoad{Name: a.name, RxBps: bps(before[i].rx, a.rx), TxBps: bps(before[i].tx, a.tx)})
	}
	return all
}

// busiest lists the tasks that ran at both readings, the busiest first.
func busiest(before, after map[int]task, length time.Duration) []measure.ProcessLoad {
	var all []measure.ProcessLoad
	for pid, a := range after {
		b, ok := before[pid]
		if !ok || b.start != a.start || a.ns < b.ns || length <= 0 {
			continue
		}
		all = append(all, measure.ProcessLoad{PID: pid, Name: a.name, CPUPct: 100 * float64(a.ns-b.ns) / float64(length)})
	}
	slices.SortFunc(all, func(a, b measure.ProcessLoad) int {
		return cmp.Or(cmp.Compare(b.CPUPct, a.CPUPct), cmp.Compare(a.PID, b.PID)) // a map has no order
	})
	return all
}

// strangers returns the tasks that are not descendants of a process.
func strangers(tasks map[int]task, own int) map[int]task {
	all := map[int]task{}
	for pid, t := range tasks {
		at := pid
		for range len(tasks) { // a chain read while processes end may be a cycle
			if at == own || at == 0 {
				break
			}
			at = tasks[at].parent
		}
		if at != own {
			all[pid] = t
		}
	}
	return all
}
