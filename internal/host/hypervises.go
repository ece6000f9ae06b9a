package host

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

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
		name := f.optional(path.Join("proc", strconv.Itoa(pid), "comm"))
		if runsGuest(name) {
			v.Guests++
			v.Vhost += len(f.vhostTasks(pid))
		}
		if isVhost(name) {
			v.Vhost++
		}
	}
	if list := keeper[[]string](n, "hypervises.switches")(f.switches()); list != nil {
		v.Switch = *list
	}
	return &v
}

// seesAll tells whether /proc shows the processes of the whole host: thread 2
// is that of the kernel, and is hidden in a container (pid_namespaces(7)) and
// from users under hidepid (proc(5)).
func (f FS) seesAll() error {
	name, err := f.text("proc/2/comm")
	if err == nil && name == "kthreadd" {
		return nil
	}
	if f.exists("proc/1/stat") {
		return errors.New("only the processes of this container are shown")
	}
	return errors.New("the processes of others are hidden: " + onlyRoot)
}

// pids lists the processes.
func (f FS) pids() ([]int, error) { return f.numbered("proc", "") }

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
	tasks, err := f.names(dir)
	if err != nil {
		return nil // the process has just ended
	}
	return slices.DeleteFunc(tasks, func(task string) bool { return !isVhost(f.optional(path.Join(dir, task, "comm"))) })
}

// switches lists the virtual switches of the calling thread's network
// namespace. /sys may be of another: an interface must be in both.
func (f FS) switches() ([]string, error) {
	b, err := f.net("dev")
	if err != nil {
		return nil, err
	}
	names, err := parseNetDevs(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, i := range names {
		switch {
		case i.name == "ovs-system":
			all = append(all, "openvswitch")
		case f.exists(path.Join("sys/class/net", i.name, "bridge")):
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
func parseNetDevs(r io.Reader) ([]octets, error) {
	var all []octets
	s := bufio.NewScanner(r)
	for s.Scan() {
		name, rest, ok := strings.Cut(s.Text(), ":")
		if !ok {
			continue // the two lines of the head
		}
		f := strings.Fields(rest)
		if len(f) < 16 {
			return nil, errors.New(quoted(s.Text()) + " has too few columns")
		}
		rx, err1 := strconv.ParseUint(f[0], 10, 64)
		tx, err2 := strconv.ParseUint(f[8], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, errors.New(quoted(s.Text()) + " has no counts of bytes")
		}
		all = append(all, octets{strings.TrimSpace(name), rx, tx})
	}
	return all, s.Err()
}
