package host

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// interruptTable is /proc/interrupts.
type interruptTable struct {
	cpus []string // of the columns: "0", "1", "4"
	irqs map[int]interrupt
}

// interrupt is one line of it.
type interrupt struct {
	names  []string // who requested it
	counts []string // per CPU
}

// parseInterrupts reads the numbered interrupts of /proc/interrupts: a line
// has the number, a count for each CPU, the chip, and after two spaces the
// names of those who requested it (kernel/irq/proc.c, show_interrupts).
func parseInterrupts(text string) (interruptTable, error) { return interruptsOf(text, nil) }

// interruptsOf is parseInterrupts for the given interrupts; nil means all. It
// skips the lines of the others, of which a large machine has thousands.
func interruptsOf(text string, irqs []int) (interruptTable, error) {
	head, text, _ := strings.Cut(text, "\n")
	if head == "" {
		return interruptTable{}, errors.New("empty")
	}
	t := interruptTable{irqs: map[int]interrupt{}}
	for cpu := range strings.FieldsSeq(head) {
		t.cpus = append(t.cpus, strings.TrimPrefix(cpu, "CPU"))
	}
	for line := range tree.Lines(text) {
		number, rest, _ := strings.Cut(line, ":")
		irq, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || irq < 0 || irqs != nil && !slices.Contains(irqs, irq) {
			continue // "NMI", or another device's
		}
		var i interrupt
		for range t.cpus {
			n := ""
			n, rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
			i.counts = append(i.counts, n)
		}
		if rest = strings.TrimSpace(rest); rest == "" {
			continue
		}
		names := rest[strings.LastIndex(rest, " ")+1:]
		if at := strings.LastIndex(rest, "  "); at >= 0 {
			names = rest[at+2:]
		}
		i.names = strings.Split(names, ", ")
		t.irqs[irq] = i
	}
	return t, nil
}

// countsByCPU returns the non-zero counts of an interrupt.
func (t interruptTable) countsByCPU(irq int) map[string]int64 {
	var all map[string]int64
	for i, s := range t.irqs[irq].counts {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n <= 0 {
			continue
		}
		measure.Put(&all, t.cpus[i], n)
	}
	return all
}

// countsByCore adds up the interrupts of the table by core. Each CPU of the
// table has an entry, so that two readings can be compared.
func (t interruptTable) countsByCore() []measure.IRQSpan {
	var all []measure.IRQSpan
	for column, cpu := range t.cpus {
		core, err := strconv.Atoi(cpu)
		if err != nil {
			continue
		}
		c := measure.IRQSpan{Core: core}
		for _, i := range t.irqs {
			if n, err := strconv.ParseUint(i.counts[column], 10, 64); err == nil {
				c.Count += n
			}
		}
		all = append(all, c)
	}
	return all
}

func (f FS) interruptTable() (interruptTable, error) {
	return tree.Parsed(f.Read, "proc/interrupts", parseInterrupts)
}

// irqsBelow lists the interrupts of an interface or of its lower interfaces.
// Software has none.
func (f FS) irqsBelow(iface string) ([]int, error) {
	var all []int
	table := sync.OnceValues(f.interruptTable)
	for _, d := range f.devices(iface, maxStack) {
		irqs, err := f.irqsOf(d, path.Join("sys/class/net", d, "device"), table)
		if err != nil {
			return nil, err
		}
		all = append(all, irqs...)
	}
	return all, nil
}

// owner matches the names of a device's interrupts: the interface's name, the
// device's name ("virtio2") or its address, each as a word ("eth1" is in
// "eth1-TxRx-0", not in "eth10").
func owner(names ...string) *regexp.Regexp {
	var parts []string
	for _, n := range names {
		if n != "" {
			parts = append(parts, regexp.QuoteMeta(n))
		}
	}
	return regexp.MustCompile(`(^|[^\w.])(` + strings.Join(parts, "|") + `)($|[^\w.])`)
}

// irqsOf lists the interrupts of a device in the folder dir: those that PCI
// lists, or those named after the interface or its device.
func (f FS) irqsOf(iface, dir string, table func() (interruptTable, error)) ([]int, error) {
	var irqs []int
	if names, err := f.Names(path.Join(dir, "msi_irqs")); err == nil {
		for _, name := range names {
			if irq, err := strconv.Atoi(name); err == nil {
				irqs = append(irqs, irq)
			}
		}
		slices.Sort(irqs)
		return irqs, nil
	}
	t, err := table()
	if err != nil {
		return nil, err
	}
	word := owner(iface, path.Base(f.Target(dir)))
	for irq, i := range t.irqs {
		if slices.ContainsFunc(i.names, word.MatchString) {
			irqs = append(irqs, irq)
		}
	}
	slices.Sort(irqs)
	return irqs, nil
}

// ownName separates the device's own name from the other names on one
// interrupt, which share it.
func ownName(names []string, word *regexp.Regexp) (own string, shared []string) {
	at := max(slices.IndexFunc(names, word.MatchString), 0)
	for i, n := range names {
		if i == at {
			own = n
		} else {
			shared = append(shared, n)
		}
	}
	return own, shared
}

// Interrupts lists the requested interrupts of an interface's own device, in
// order; software has none. It reads /sys and /proc as they are mounted: see
// OwnSysfs.
func (h *Host) Interrupts(iface string) ([]int, error) {
	dir := path.Join("sys/class/net", iface, "device")
	if !h.fs.Exists(dir) {
		return nil, nil
	}
	t, err := h.fs.interruptTable()
	if err != nil {
		return nil, err
	}
	all, err := h.fs.irqsOf(iface, dir, func() (interruptTable, error) { return t, nil })
	return slices.DeleteFunc(all, func(irq int) bool { _, used := t.irqs[irq]; return !used }), err
}
