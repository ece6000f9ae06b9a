package host

import (
	"errors"
	"fmt"
	"path"
	"strconv"

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
