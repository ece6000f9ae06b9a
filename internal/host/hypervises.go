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

// hypervises looks for virtual machines and what moves their packets: by the
// names of processes, and by the switches among the interfaces.
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

// seesAll tells whether /proc shows the processes of the whole host: thread 2
// is that of the kernel, and is hidden in a container (pid_namespaces(7)) and
// from users under hidepid (proc(5)).
func (f FS) seesAll() error {
	name, err := f.Text("proc/2/comm")
	if err == nil && name == "kthreadd" {
		return nil
	}
	if f.Exists("proc/1/stat") {
		return errors.New("only the processes of this container are shown")
	}
	return errors.New("the processes of others are hidden: " + tree.OnlyRoot)
}

// SeesAll is why this thread does not see the processes of the whole host; nil: it does.
func (h *Host) SeesAll() error { return h.fs.seesAll() }

// pids lists the processes.
func (f FS) pids() ([]int, error) { return f.Numbered("proc", "") }

// runsGuest tells the programs that run virtual machines by the first 15
// characters of their names, which is what the kernel keeps.
func runsGuest(name string) bool {
	return strings.HasPrefix(name, "qemu-system-") || slices.Contains([]string{
		"qemu-kvm", "kvm", "firecracker", "cloud-hyperviso", "crosvm", "vmware-vmx", "VBoxHeadless", "VirtualBoxVM", "lkvm", "kvmtool",
	}, name)
}

// isVhost tells the threads that move guests' packets in the kernel
// (drivers/vhost/vhost.c): "vhost-" and the number of the owner.
func isVhost(name string) bool {
	owner, ok := strings.CutPrefix(name, "vhost-")
	return ok && owner != "" && strings.Trim(owner, "0123456789") == ""
}

// vhostTasks are the folders of a process's vhost threads, which since Linux
// 6.4 are among its own (kernel/vhost_task.c).
func (f FS) vhostTasks(pid int) []string {
	dir := path.Join("proc", strconv.Itoa(pid), "task")
	tasks, err := f.Names(dir)
	if err != nil {
		return nil // the process has just ended
	}
	return slices.DeleteFunc(tasks, func(task string) bool { return !isVhost(f.Optional(path.Join(dir, task, "comm"))) })
}

// switches lists the virtual switches of the calling thread's network
// namespace. /sys may be of another: an interface must be in both.
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

// octets are what an interface has moved since it was made, in bytes.
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
