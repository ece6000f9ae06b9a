package worker

import (
	"slices"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/unit"
)

// confine restricts the whole process to the CPUs that the request allows this end, to measure on a large host what a host with fewer CPUs would carry (B-16).
// Later threads inherit the restriction, and placement stays within it.
func (w *worker) confine() error {
	list, cpu := w.cmd.Spec.ReceiverCPUs, w.cmd.Spec.ReceiverCPU
	if w.cmd.Sends {
		list, cpu = w.cmd.Spec.SenderCPUs, w.cmd.Spec.SenderCPU
	}
	if list == "" {
		return nil
	}
	cpus, err := unit.ParseList(list, unit.MaxCPU)
	if err != nil {
		return fault.Usagef("give a list of CPUs such as 0-3,8", "worker: restricting to CPUs: %w", err)
	}
	if cpu != nil && !slices.Contains(cpus, *cpu) {
		return fault.Usagef("use a CPU of the list, or omit -A", "worker: restricting to CPUs %s: its thread is requested on CPU %d, which is not in the list", list, *cpu)
	}
	allowed := host.Allowed()
	lacking := slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return slices.Contains(allowed, c) })
	if len(allowed) > 0 && len(lacking) > 0 {
		return fault.Usagef("choose among the CPUs "+unit.List(allowed)+": the others do not exist there, or the cpuset or affinity of thru excludes them (taskset -p, cpuset(7))",
			"worker: restricting to CPUs %s: it may not use %s", list, unit.List(lacking))
	}
	if err := confineProcess(cpus); err != nil {
		return err
	}
	w.confined = unit.List(cpus)
	return nil
}
