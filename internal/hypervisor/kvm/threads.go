package kvm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Roles of a thread.
const (
	roleCPU   = "vcpu"
	roleVhost = "vhost"
	roleIO    = "io"
	roleOther = "other"
)

// threads lists the threads that run a guest's CPUs and move its packets, and
// the main thread, which does the rest. online are the CPUs of the host.
func (t files) threads(p *process, online []int, vhosts map[int][]int) {
	tids, err := t.Numbered(proc(p.pid, "task"), "")
	if err != nil {
		p.miss("threads", err.Error())
		return
	}
	for _, tid := range tids {
		th := measure.GuestThread{TID: tid, Name: clean(t.Optional(task(p.pid, tid, "comm"))), Role: roleOther}
		th.Role, th.CPU = roleOf(th.Name)
		if th.Role == roleOther && ranGuest(t.Optional(task(p.pid, tid, "stat"))) {
			th.Role = roleCPU // its name does not show it
		}
		if th.Role == roleOther && tid != p.pid {
			continue
		}
		th.CPUs = t.allowed(task(p.pid, tid, "status"), online)
		p.Threads = append(p.Threads, th)
	}
	for _, tid := range vhosts[p.pid] { // before Linux 6.4 these are kernel processes
		p.Threads = append(p.Threads, measure.GuestThread{TID: tid, Name: clean(t.Optional(proc(tid, "comm"))), Role: roleVhost, CPUs: t.allowed(proc(tid, "status"), online)})
	}
	slices.SortStableFunc(p.Threads, func(a, b measure.GuestThread) int { return cmp.Compare(order(a), order(b)) })
	p.numberCPUs()
	p.pins(len(online))
}

// order puts virtual CPUs first, by number.
func order(t measure.GuestThread) int {
	switch {
	case t.Role == roleCPU && t.CPU != nil:
		return *t.CPU
	case t.Role == roleCPU:
		return unit.MaxCPU
	}
	return unit.MaxCPU + 1 + slices.Index([]string{roleVhost, roleIO, roleOther}, t.Role)
}

// roleOf returns the role of a thread by its name (accel/kvm/kvm-accel-ops.c,
// iothread.c, drivers/vhost/vhost.c).
func roleOf(name string) (role string, cpu *int) {
	if rest, ok := strings.CutPrefix(name, "CPU "); ok {
		number, _, _ := strings.Cut(rest, "/")
		if n, err := strconv.ParseUint(number, 10, 16); err == nil {
			return roleCPU, new(int(n))
		}
	}
	owner, isVhost := strings.CutPrefix(name, "vhost-")
	switch {
	case isVhost && owner != "" && strings.Trim(owner, "0123456789") == "":
		return roleVhost, nil
	case strings.HasPrefix(name, "IO ") && name != "IO mon_iothread":
		return roleIO, nil
	}
	return roleOther, nil
}

// ranGuest reports whether a thread has run guest code: the kernel counts
// that time separately (proc_pid_stat(5), field 43). Field 3 begins after the
// program's name, which may hold spaces and brackets.
func ranGuest(stat string) bool {
	const guestTime = 43 - 3
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) <= guestTime {
		return false
	}
	n, err := strconv.ParseUint(f[guestTime], 10, 64)
	return err == nil && n > 0
}

// vhostProcesses returns the kernel threads that move guests' packets, by the
// process in their names.
func (t files) vhostProcesses() map[int][]int {
	all := map[int][]int{}
	pids, _ := t.Numbered("proc", "")
	for _, pid := range pids {
		owner, ok := strings.CutPrefix(t.Optional(proc(pid, "comm")), "vhost-")
		if n, err := strconv.Atoi(owner); ok && err == nil && n != pid {
			all[n] = append(all[n], pid)
		}
	}
	return all
}

// allowed returns the CPUs that a thread may use; nil where these are all.
func (t files) allowed(status string, online []int) []int {
	cpus, err := unit.ParseList(t.fields(status)["Cpus_allowed_list"], unit.MaxCPU)
	if err != nil {
		return nil
	}
	cpus = slices.DeleteFunc(cpus, func(c int) bool { return !slices.Contains(online, c) })
	if len(cpus) == len(online) {
		return nil
	}
	return cpus
}

// numberCPUs sets the number of virtual CPUs by the running threads, since
// some are added later. Threads without a number in their name are numbered
// in order of start.
func (p *process) numberCPUs() {
	named, nameless := 0, []*measure.GuestThread{}
	for i := range p.Threads {
		switch th := &p.Threads[i]; {
		case th.Role != roleCPU:
		case th.CPU != nil:
			named++
		default:
			nameless = append(nameless, th)
		}
	}
	if named == 0 && p.CPUs != nil && len(nameless) == *p.CPUs {
		for i, th := range nameless {
			th.CPU = new(i)
		}
		named = len(nameless)
	}
	switch {
	case named > 0:
		p.CPUs = &named
	case len(nameless) == 0:
		p.miss("threads.vcpu", "its threads have no names: it was started without -name debug-threads=on")
	}
}

// pins sets which CPUs of the host each virtual CPU may use, where these are
// not all.
func (p *process) pins(online int) {
	together, bound := map[int]bool{}, 0
	cpus := 0
	for _, th := range p.Threads {
		if th.Role != roleCPU {
			continue
		}
		cpus++
		if th.CPUs == nil {
			continue
		}
		bound++
		for _, c := range th.CPUs {
			together[c] = true
		}
		if th.CPU != nil {
			p.Pins = append(p.Pins, measure.Pin{CPU: *th.CPU, Host: th.CPUs})
		}
	}
	if bound == cpus && bound > 0 && len(together) < online {
		p.Affinity = slices.Sorted(maps.Keys(together))
	}
}

// limits reads the control group limits of a guest.
func (t files) limits(p *process, machine *host.Host) {
	quota, err := quotaOf(p, machine)
	if err != nil {
		p.miss("cpu_quota_cpus", err.Error())
	} else if quota > 0 {
		p.CPUQuota = &quota
	}
	if weight, err := machine.CPUWeightOf(p.pid); err == nil {
		p.CPUShare = &measure.Allocation{Shares: &weight}
	} else {
		p.miss("cpu_allocation", err.Error())
	}
	most, err := machine.MemoryMaxOf(p.pid)
	if err != nil {
		p.miss("memory_allocation", err.Error())
		return
	}
	p.MemoryShare = &measure.Allocation{Limited: new(most != nil), Limit: most}
}

// bounds are the quotas around the virtual CPUs of a guest, by group folder:
// a manager may limit the guest, or each of its CPUs.
type bounds struct {
	cpus   map[string]float64
	over   map[string][]int // numbers of the virtual CPUs in the group
	vcpus  int
	spread int // virtual CPUs with a quota
}

// boundsOf reads the bounds of a guest.
func boundsOf(p *process, machine *host.Host) (bounds, error) {
	b := bounds{cpus: map[string]float64{}, over: map[string][]int{}}
	for i, th := range p.Threads {
		if th.Role != roleCPU {
			continue
		}
		quotas, err := machine.QuotasOf(th.TID)
		if err != nil {
			return b, fmt.Errorf("kvm: reading the quota of thread %d: %w", th.TID, err)
		}
		b.vcpus++
		if len(quotas) > 0 {
			b.spread++
		}
		number := i
		if th.CPU != nil {
			number = *th.CPU
		}
		for _, q := range quotas {
			b.cpus[q.Group], b.over[q.Group] = q.CPUs, append(b.over[q.Group], number)
		}
	}
	return b, nil
}

// quotaOf returns how many CPUs' time a guest may use; 0: no limit.
func quotaOf(p *process, machine *host.Host) (float64, error) {
	b, err := boundsOf(p, machine)
	if err != nil || b.vcpus == 0 {
		return 0, err
	}
	least, each := 0.0, 0.0
	for group, cpus := range b.cpus {
		if len(b.over[group]) == b.vcpus && b.vcpus > 1 || b.vcpus == 1 {
			if least == 0 || cpus < least {
				least = cpus
			}
			continue
		}
		each += cpus
	}
	if b.spread == b.vcpus && each > 0 && (least == 0 || each < least) {
		return each, nil
	}
	return least, nil
}
