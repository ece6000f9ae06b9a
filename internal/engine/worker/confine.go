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
		return fault.Usagef("a list of CPUs is such as 0-3,8", "worker: confining to CPUs: %w", err)
	}
	if cpu != nil && !slices.Contains(cpus, *cpu) {
		return fault.Usagef("take a CPU of the list, or leave -A out", "worker: confining to CPUs %s: its thread is to be on CPU %d, which is none of them", list, *cpu)
	}
	allowed := host.Allowed()
	lacking := slices.DeleteFunc(slices.Clone(cpus), func(c int) bool { return slices.Contains(allowed, c) })
	if len(allowed) > 0 && len(lacking) > 0 {
		return fault.Usagef("thru may use the CPUs "+unit.List(allowed)+" there: choose among them; the others do not exist, or its cpuset or affinity leaves them out (taskset -p, cpuset(7))",
			"worker: confining to CPUs %s: it may not use %s", list, unit.List(lacking))
	}
	if err := confineProcess(cpus); err != nil {
		return err
	}
	w.confined = unit.List(cpus)
	return nil
}
