package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"thru/internal/cause/knob"
	"thru/internal/host"
	"thru/internal/host/tree"
	"thru/internal/unit"
)

// files is the tree of /proc and /sys. Names have no leading slash.
type files struct{ tree.Tree }

// write writes one line to an existing file.
func (f files) write(name, value string) error {
	file, err := os.OpenFile(filepath.Join(f.Root, name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return named(name, err)
	}
	_, err = file.WriteString(value + "\n")
	return named(name, errors.Join(err, file.Close()))
}

// refusal returns why a file cannot be written; empty: it can.
func (f files) refusal(name string) string {
	file, err := os.OpenFile(filepath.Join(f.Root, name), os.O_WRONLY, 0)
	switch {
	case err == nil:
		file.Close()
		return ""
	case errors.Is(err, syscall.EROFS):
		return "/" + name + " is read-only here (a container?)"
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return needsRoot
	case errors.Is(err, fs.ErrPermission):
		return "the kernel allows only the host itself, not a container or network namespace, to change /" + name
	}
	return named(name, err).Error()
}

// needsRoot is the reason why a user cannot change a setting.
const needsRoot = "only root may change it (CAP_NET_ADMIN)"

// numbered lists the entries of a folder that consist of a prefix and a
// number, by number.
func (f files) numbered(dir, prefix string) (names []string, err error) {
	all, err := f.Numbered(dir, prefix)
	for _, n := range all {
		names = append(names, prefix+strconv.Itoa(n))
	}
	return names, err
}

// named names the file of an error as on the machine.
func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return tree.Explain(name, err)
}

// absent reports whether an error means that something does not exist here: a
// file, an interface, or a request that the driver does not support.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, errNone)
}

// errNone means a knob without elements here: no queue, no interrupt.
var errNone = errors.New("there is none")

// fileRows returns the knobs that are files. own returns an error where /sys
// does not show the interface of the calling thread's network namespace.
func fileRows(f files, h *host.Host, own func(iface string) error) []row {
	rows := unit.Mapped(sysctls(), func(s sysctl) row { return s.row(f) })
	for _, e := range []elements{
		{knob.Governor, knob.OfHost, func(string) ([]string, error) { return f.numbered(cpuFolder, "cpu") },
			func(_, cpu string) string { return path.Join(cpuFolder, cpu, "cpufreq/scaling_governor") }, word},
		queues(f, knob.RPS, "rx-", "rps_cpus", own),
		queues(f, knob.XPS, "tx-", "xps_cpus", own),
		{knob.IRQAffinity, knob.OfInterface, func(iface string) ([]string, error) { return interrupts(h, iface, own) },
			func(_, irq string) string { return path.Join("proc/irq", irq, "smp_affinity_list") }, cpus},
	} {
		rows = append(rows, e.row(f))
	}
	return rows
}

const cpuFolder = "sys/devices/system/cpu"

// elements is a knob of many files with one value each.
type elements struct {
	knob  string
	scope knob.Scope
	list  func(iface string) ([]string, error)
	file  func(iface, element string) string
	form  func(string) (string, error) // of one value
}

// queues returns the knob for the CPUs of an interface's receive or transmit
// queues (Documentation/networking/scaling.rst).
func queues(f files, id, prefix, file string, own func(string) error) elements {
	dir := func(iface string) string { return path.Join("sys/class/net", iface, "queues") }
	return elements{id, knob.OfInterface, func(iface string) ([]string, error) {
		if err := plainName(iface, own); err != nil {
			return nil, err
		}
		return f.numbered(dir(iface), prefix)
	}, func(iface, queue string) string { return path.Join(dir(iface), queue, file) }, mask}
}

// interrupts lists the interrupts of an interface.
func interrupts(h *host.Host, iface string, own func(string) error) ([]string, error) {
	if err := plainName(iface, own); err != nil {
		return nil, err
	}
	all, err := h.Interrupts(iface)
	return unit.Mapped(all, strconv.Itoa), err
}

// plainName refuses a name that leads elsewhere in /sys, or to the interface
// of that name in another network namespace.
func plainName(iface string, own func(string) error) error {
	if iface == "." || iface == ".." || strings.ContainsAny(iface, "/\x00") {
		return fmt.Errorf("%.80q is not the name of an interface: %w", iface, errNone)
	}
	if err := own(iface); err != nil {
		return fmt.Errorf("%w: %w", errNone, err)
	}
	return nil
}

// row returns the row of such a knob.
func (e elements) row(f files) row {
	r := row{
		knob: e.knob, scope: e.scope, form: pairsOf(e.form),
		read: func(iface string) (string, error) {
			list, err := e.values(f, iface)
			return joined(list), err
		},
		set: func(iface, before, value string) error {
			return each(before, value, func(p pair) error { return f.write(e.file(iface, p.name), p.value) })
		},
		states: func(iface, _ string) (string, string) { return "", e.refusal(f, iface) },
	}
	switch e.knob {
	case knob.Governor:
		e.uniform(f, &r)
	case knob.IRQAffinity:
		r.states = func(iface, _ string) (possible, refused string) {
			if balanced(f) {
				possible = "irqbalance runs here and may move them again"
			}
			return possible, e.refusal(f, iface)
		}
	}
	return r
}

// values reads all elements. It leaves out elements without a file: an
// offline CPU, the queue of an interface with a single one.
func (e elements) values(f files, iface string) ([]pair, error) {
	names, err := e.list(iface)
	if err != nil {
		return nil, err
	}
	var list []pair
	for _, name := range names {
		text, err := f.Text(e.file(iface, name))
		if absent(err) {
			continue
		}
		if err == nil {
			text, err = e.form(text)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, pair{name, text})
	}
	if len(list) == 0 {
		return nil, errNone
	}
	return list, nil
}

// refusal returns why the first element cannot be written.
func (e elements) refusal(f files, iface string) string {
	list, err := e.values(f, iface)
	if err != nil {
		return err.Error()
	}
	return f.refusal(e.file(iface, list[0].name))
}

// uniform makes a row use one word as its value where all elements have the
// same.
func (e elements) uniform(f files, r *row) {
	many := *r
	spread := func(value string) (string, error) { // one word becomes a list of all elements
		if len(strings.Fields(value)) != 1 {
			return value, nil
		}
		list, err := e.values(f, "")
		for i := range list {
			list[i].value = value
		}
		return joined(list), err
	}
	r.form = func(value string) (string, error) {
		if len(strings.Fields(value)) == 1 {
			return e.form(value)
		}
		return many.form(value)
	}
	r.read = func(iface string) (string, error) {
		list, err := e.values(f, iface)
		return together(list), err
	}
	r.set = func(iface, before, value string) error {
		before, err := spread(before)
		if err != nil {
			return err
		}
		if value, err = spread(value); err != nil {
			return err
		}
		return many.set(iface, before, value)
	}
	r.states = func(string, string) (string, string) {
		list, err := e.values(f, "")
		if err != nil {
			return "", err.Error()
		}
		possible, _ := f.Text(path.Join(cpuFolder, list[0].name, "cpufreq/scaling_available_governors"))
		return possible, e.refusal(f, "")
	}
}

// together returns the text of a list: one word where all elements have the
// same value.
func together(list []pair) string {
	for _, p := range list {
		if p.value != list[0].value {
			return joined(list)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return list[0].value
}

// balanced reports whether irqbalance runs, which moves interrupts by itself.
func balanced(f files) bool {
	processes, err := f.numbered("proc", "")
	for _, pid := range processes {
		if name, lost := f.Text(path.Join("proc", pid, "comm")); err == nil && lost == nil && name == "irqbalance" {
			return true
		}
	}
	return false
}
