package host

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// hypervises looks for virtual machines and what forwards their packets: by
// process names, and by virtual switches among the interfaces.
func (f FS) hypervises(n *notes) *measure.Hypervises {
	if err := f.seesAll(); err != nil {
		n.add("hypervises", err.Error())
		return nil
	}
	pids, err := f.pids()
	if err != nil {
		n.add("hypervises", err.Error())
		return nil
	}
	var v measure.Hypervises
	for _, pid := range pids {
		name := f.Optional(path.Join("proc", strconv.Itoa(pid), "comm"))
		if runsGuest(name) {
			v.Guests++
			v.Vhost += len(f.vhostTasks(pid))
		}
		if isVhost(name) {
			v.Vhost++
		}
	}
	v.Switch = orNote[[]string](n, "hypervises.switches")(f.switches())
	return &v
}

// seesAll returns an error where /proc does not show all processes of the
// host. Thread 2 belongs to the kernel and is hidden in a container
// (pid_namespaces(7)) and under hidepid (proc(5)).
func (f FS) seesAll() error {
	name, err := f.Text("proc/2/comm")
	if err == nil && name == "kthreadd" {
		return nil
	}
	if f.Exists("proc/1/stat") {
		return errors.New("only the processes of this container are visible")
	}
	return errors.New("the processes of other users are hidden: " + tree.OnlyRoot)
}

// SeesAll returns the reason why this thread does not see all processes of
// the host; nil where it does.
func (h *Host) SeesAll() error { return h.fs.seesAll() }

// pids lists the processes.
func (f FS) pids() ([]int, error) { return f.Numbered("proc", "") }

// runsGuest reports whether a process runs a virtual machine, by the first 15
// characters of its name, which is all the kernel keeps.
func runsGuest(name string) bool {
	return strings.HasPrefix(name, "qemu-system-") || slices.Contains([]string{
		"qemu-kvm", "kvm", "firecracker", "cloud-hyperviso", "crosvm", "vmware-vmx", "VBoxHeadless", "VirtualBoxVM", "lkvm", "kvmtool",
	}, name)
}

// isVhost reports whether a thread moves guests' packets in the kernel
// (drivers/vhost/vhost.c): "vhost-" and the number of the owner.
func isVhost(name string) bool {
	owner, ok := strings.CutPrefix(name, "vhost-")
	return ok && owner != "" && strings.Trim(owner, "0123456789") == ""
}

// vhostTasks returns the folders of a process's vhost threads, which since
// Linux 6.4 are threads of the process (kernel/vhost_task.c).
func (f FS) vhostTasks(pid int) []string {
	dir := path.Join("proc", strconv.Itoa(pid), "task")
	tasks, err := f.Names(dir)
	if err != nil {
		return nil // the process has just ended
	}
	return slices.DeleteFunc(tasks, func(task string) bool { return !isVhost(f.Optional(path.Join(dir, task, "comm"))) })
}

// switches lists the virtual switches of the calling thread's network
// namespace. /sys may show another namespace, so an interface must be in
// both.
func (f FS) switches() ([]string, error) {
	names, err := tree.Parsed(f.net, "dev", parseNetDevs)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, i := range names {
		switch {
		case i.name == "ovs-system":
			all = append(all, "openvswitch")
		case f.Exists(path.Join("sys/class/net", i.name, "bridge")):
			all = append(all, "bridge "+i.name)
		}
	}
	slices.Sort(all)
	return all, nil
}

// octets counts the bytes that an interface has received and sent since it
// was created.
type octets struct {
	name   string
	rx, tx uint64
}

// parseNetDevs reads all interfaces of /proc/net/dev.
func parseNetDevs(text string) ([]octets, error) {
	var all []octets
	for line := range strings.Lines(text) {
		name, v, err := netDevLine(line)
		if err != nil {
			return nil, err
		}
		if name != "" {
			all = append(all, octets{name, v[0], v[8]})
		}
	}
	return all, nil
}
