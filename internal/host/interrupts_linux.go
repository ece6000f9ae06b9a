package host

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// describeInterrupts sets the CPUs that take the interface's interrupts. It
// leaves out PCI interrupts that no driver has requested.
func (u *subject) describeInterrupts() {
	if u.device == "" {
		u.miss("interrupts", errors.New("/sys does not show its device"))
		return
	}
	numbers, err := u.fs.irqsOf(u.name, u.device, u.interrupts)
	if err != nil {
		u.miss("interrupts", err)
		return
	}
	t, err := u.interrupts()
	if err != nil {
		u.miss("interrupts.counts", err)
	}
	word := owner(u.name, path.Base(u.device), u.info.bus)
	for _, n := range numbers {
		line, used := t.irqs[n]
		if err == nil && !used {
			continue
		}
		if len(u.out.IRQs) == maxQueues {
			u.miss("interrupts.*", fmt.Errorf("only the first %d of %d were read", maxQueues, len(numbers)))
			break
		}
		i := measure.IRQ{Number: n, Counts: t.countsByCPU(n)}
		i.Name, i.Shared = ownName(line.names, word)
		dir := path.Join("proc/irq", strconv.Itoa(n))
		i.Allowed, _ = u.fs.cpuList(path.Join(dir, "smp_affinity_list"))
		i.Effective, _ = u.fs.cpuList(path.Join(dir, "effective_affinity_list"))
		u.out.IRQs = append(u.out.IRQs, i)
	}
	if len(u.out.IRQs) == 0 {
		u.miss("interrupts", errors.New("no interrupt is known to belong to the interface"))
		return
	}
	if u.out.IRQs[0].Allowed == nil {
		u.miss("interrupts.cpus_allowed", errors.New("/proc/irq does not show them"))
	}
}

// activity reads all counters of the load. With some thousand processes this
// takes some ten milliseconds.
func (h *Host) activity(n *notes) activity {
	f := h.fs
	a := activity{taken: time.Now()}
	s := h.Read("", 0)
	a.cpus, a.softnet = s.CPUs, s.Softnet
	for _, m := range s.Missing {
		if fact, ok := map[string]string{"cpus": "load.cpu_pct", "softnet": "load.softnet_squeezed"}[m.Fact]; ok {
			n.add(fact, m.Why)
		}
	}
	a.nets = orNote[[]octets](n, "load.interfaces")(tree.Parsed(f.net, "dev", parseNetDevs))
	if g := f.cgroup(&notes{}); g != nil { // Facts already notes what cannot be read
		a.throttled = g.Throttled
	}
	if !f.Exists("proc/1/stat") {
		n.add("load.processes", "the processes of other users are hidden: "+tree.OnlyRoot)
		return a
	}
	a.tasks = orNote[map[int]task](n, "load.processes")(f.tasks())
	a.vhost = f.vhost(a.tasks)
	return a
}

// tasks reads the CPU time and start of every process. Processes that end
// meanwhile are left out.
func (f FS) tasks() (map[int]task, error) {
	pids, err := f.pids()
	if err != nil {
		return nil, err
	}
	all := map[int]task{}
	for _, pid := range pids {
		if t, err := tree.Parsed(f.Read, path.Join("proc", strconv.Itoa(pid), "stat"), parseTask); err == nil {
			all[pid] = t
		}
	}
	return all, nil
}

// vhost picks the threads that move guests' packets: kernel threads or, since
// Linux 6.4, threads of the guest's process.
func (f FS) vhost(tasks map[int]task) map[int]task {
	all := map[int]task{}
	for pid, t := range tasks {
		if isVhost(t.name) {
			all[pid] = t
		}
		if !runsGuest(t.name) {
			continue
		}
		for _, thread := range f.vhostTasks(pid) {
			number, err := strconv.Atoi(thread)
			t, err2 := tree.Parsed(f.Read, path.Join("proc", strconv.Itoa(pid), "task", thread, "stat"), parseTask)
			if err == nil && err2 == nil {
				all[number] = t
			}
		}
	}
	return all
}

// parseTask reads name, parent (field 4), times (14 and 15) and start (22) of
// /proc/PID/stat (proc_pid_stat(5)).
func parseTask(line string) (task, error) {
	p, err := parseProcStat(line)
	if err != nil {
		return task{}, err
	}
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	f := strings.Fields(line[end+1:])
	if open < 0 || open > end || len(f) < 20 {
		return task{}, fmt.Errorf("%s has no name or no start", quoted(line))
	}
	parent, err1 := strconv.Atoi(f[1])
	start, err2 := strconv.ParseUint(f[19], 10, 64)
	if err1 != nil || err2 != nil || parent < 0 {
		return task{}, fmt.Errorf("%s has no parent or no start", quoted(line))
	}
	// A name may hold anything but a zero byte.
	return task{name: strings.ToValidUTF8(line[open+1:end], "?"), parent: parent, start: start, ns: p.UserNs + p.SystemNs}, nil
}
