package worker

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
	"thru/internal/unit"
)

// confineProcess binds every thread of this process to some CPUs. It repeats the pass for threads that started from a thread not yet bound: when all threads
// are bound, so are all that they start (sched_setaffinity(2)).
func confineProcess(cpus []int) error {
	want := unix.NewCPUSet(unit.MaxCPU + 1)
	for _, c := range cpus {
		want.Set(c)
	}
	for settled := false; !settled; {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fault.Failf("mount /proc: thru needs it", "worker: restricting to CPUs %s: %w", unit.List(cpus), err)
		}
		settled = true
		for _, t := range tasks {
			changed, err := confineThread(t.Name(), want, len(cpus))
			if err != nil {
				return fault.Failf("check the control group of that process: it may exclude these CPUs (cpuset(7))", "worker: restricting to CPUs %s: %w", unit.List(cpus), err)
			}
			settled = settled && !changed
		}
	}
	return nil
}

// confineThread binds one thread, and reports whether it was unbound before. It ignores a thread that has ended.
func confineThread(name string, want unix.CPUSetDynamic, n int) (changed bool, err error) {
	tid, err := strconv.Atoi(name)
	if err != nil {
		return false, fmt.Errorf("%q is not a thread", name)
	}
	is := unix.NewCPUSet(unit.MaxCPU + 1)
	if err := unix.SchedGetaffinityDynamic(tid, is); errors.Is(err, unix.ESRCH) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if slices.Equal(is, want) {
		return false, nil
	}
	if err := unix.SchedSetaffinityDynamic(tid, want); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, err
	}
	if err := unix.SchedGetaffinityDynamic(tid, is); err == nil && is.Count() != n {
		return false, fmt.Errorf("the kernel allowed only %d of %d CPUs", is.Count(), n)
	}
	return true, nil
}
