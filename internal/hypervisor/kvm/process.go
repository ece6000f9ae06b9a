package kvm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// process is a running guest.
type process struct {
	machine
	pid  int
	born time.Duration // identifies the process together with its number
}

// processes returns the running guests, and counts by name the programs of
// other hypervisors.
func (t files) processes() (guests []process, others map[string]int, err error) {
	pids, err := t.Numbered("proc", "")
	if err != nil {
		return nil, nil, fmt.Errorf("kvm: looking for guests: %w", err)
	}
	others = map[string]int{}
	for _, pid := range pids {
		args := t.arguments(pid)
		if len(args) == 0 {
			continue // a kernel thread, or just ended
		}
		program := path.Base(args[0])
		if o := otherProgram(program); o != "" {
			others[o]++
		}
		if !isQEMU(program) || t.isNamedOnly(pid) {
			continue
		}
		p := process{machine: readMachine(args), pid: pid}
		if p.none() || t.isTwin(pid, guests) {
			continue
		}
		if p.accel == "xen" {
			others["Xen"]++
			continue
		}
		p.PID = &pid
		guests = append(guests, p)
	}
	return guests, others, nil
}

// arguments returns the command line of a process, the program first
// (proc_pid_cmdline(5)).
func (t files) arguments(pid int) []string {
	b, err := t.Read(proc(pid, "cmdline"))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

// isQEMU reports whether a program is QEMU, by its names in distributions and
// Proxmox.
func isQEMU(program string) bool {
	return strings.HasPrefix(program, "qemu-system-") || program == "qemu-kvm" || program == "kvm"
}

// isNamedOnly reports whether a process has QEMU's name but runs another
// program. Only root sees what other users' processes run (proc_pid_exe(5)).
func (t files) isNamedOnly(pid int) bool {
	runs := path.Base(t.Link(proc(pid, "exe")))
	return runs != "." && !strings.Contains(runs, "qemu") && !strings.Contains(runs, "kvm")
}

// otherProgram returns the name of another program that runs virtual
// machines; these are only counted.
func otherProgram(program string) string {
	return map[string]string{
		"firecracker": "Firecracker", "cloud-hypervisor": "Cloud Hypervisor", "crosvm": "crosvm", "vmware-vmx": "VMware Workstation",
		"VBoxHeadless": "VirtualBox", "VirtualBoxVM": "VirtualBox", "lkvm": "kvmtool", "kvmtool": "kvmtool", "stratovirt": "StratoVirt",
	}[program]
}

// isTwin reports whether a process is a child that QEMU has just forked and
// that has not started its own program yet.
func (t files) isTwin(pid int, known []process) bool {
	parent, err := strconv.Atoi(t.fields(proc(pid, "status"))["PPid"])
	return err == nil && slices.ContainsFunc(known, func(p process) bool { return p.pid == parent })
}

// away reports whether a process is in another network namespace than this
// one, so that its interfaces are not ours. It returns an error without the
// right to look.
func (t files) away(pid int) (bool, error) {
	own, its := cmp.Or(t.Link("proc/thread-self/ns/net"), t.Link("proc/self/ns/net")), t.Link(proc(pid, "ns/net"))
	if own == "" || its == "" {
		return false, errors.New("only root can read the network namespace and the files of other users' processes")
	}
	return own != its, nil
}

// openTaps returns the interfaces that a process has open, by file
// descriptor: fdinfo names a tap (drivers/net/tun.c, tun_chr_show_fdinfo),
// the device name a macvtap: /dev/tapN by the interface's number.
func (t files) openTaps(pid int) (map[int]string, error) {
	fds, err := t.Numbered(proc(pid, "fdinfo"), "")
	if err != nil {
		return nil, err
	}
	all := map[int]string{}
	for _, fd := range fds {
		to := t.Link(proc(pid, "fd", strconv.Itoa(fd)))
		number, isMacvtap := strings.CutPrefix(to, "/dev/tap")
		switch {
		case to == "/dev/net/tun":
			if name := t.fields(proc(pid, "fdinfo", strconv.Itoa(fd)))["iff"]; name != "" {
				all[fd] = clean(name)
			}
		case isMacvtap:
			if name := t.interfaceOf(number); name != "" {
				all[fd] = name
			}
		}
	}
	return all, nil
}

// interfaceOf returns the interface of a number.
func (t files) interfaceOf(number string) string {
	names, _ := t.Names("sys/class/net")
	for _, name := range names {
		if t.Optional(path.Join("sys/class/net", name, "ifindex")) == number {
			return name
		}
	}
	return ""
}

// findTaps sets the host's interface of each adapter. First the adapters
// whose interface or file descriptor the command line names; then, where as
// many interfaces as adapters are left, in order.
func (t files) findTaps(p *process) {
	isAway, err := t.away(p.pid)
	if err == nil && isAway {
		p.eachTap(func(n *nic) { n.ifname, n.fds = "", nil })
		p.missTaps("it is in another network namespace than the agent: run thru there")
		return
	}
	open, err := t.openTaps(p.pid)
	taken := map[string]bool{}
	p.eachTap(func(n *nic) {
		for _, fd := range n.fds {
			n.ifname = cmp.Or(n.ifname, open[fd])
		}
		taken[n.ifname] = true
	})
	left := leftOver(open, taken)
	var without []*nic
	p.eachTap(func(n *nic) {
		if n.ifname == "" {
			without = append(without, n)
		}
	})
	if len(without) == len(left) {
		for i, n := range without {
			n.ifname, taken[left[i]] = left[i], true
		}
	}
	for _, name := range leftOver(open, taken) {
		added := nic{backend: "tap", ifname: name}
		added.Name = "added later: " + name
		p.nics = append(p.nics, added)
		p.miss("nics."+added.Name+".*", "it was added while the guest ran: its model, MAC address and queues are not in the command line")
	}
	if err != nil {
		p.missTaps(err.Error())
	} else {
		p.missTaps("the process has no open interface")
	}
}

// eachTap calls f for the adapters that have an interface of the host.
func (p *process) eachTap(f func(*nic)) {
	for i := range p.nics {
		if p.nics[i].backend == "tap" || p.nics[i].backend == "bridge" {
			f(&p.nics[i])
		}
	}
}

// missTaps notes why adapters have no interface.
func (p *process) missTaps(why string) {
	p.eachTap(func(n *nic) {
		if n.ifname == "" {
			p.miss("nics."+n.Name+".host_device", why)
		}
	})
}

// leftOver returns the open interfaces that are not assigned, by file
// descriptor.
func leftOver(open map[int]string, taken map[string]bool) (list []string) {
	for _, fd := range slices.Sorted(maps.Keys(open)) {
		if name := open[fd]; !taken[name] && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// ids gives each guest a unique id: Proxmox's number, or its name.
func ids(guests []process) {
	taken := map[string]bool{"": true}
	for i := range guests {
		p := &guests[i]
		id := cmp.Or(p.vmid, p.Name)
		if taken[id] {
			id = strings.TrimSpace(id + " pid-" + strconv.Itoa(p.pid))
		}
		taken[id] = true
		p.ID = guestID(id)
		p.Name = cmp.Or(p.Name, id)
	}
}

// guestID is the id of a guest by its number or its name.
func guestID(name string) string { return "vm:" + unit.Line(name, maxText) }

// countOthers notes how many guests are not read.
func countOthers(others map[string]int) (missing []measure.NotChecked) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		missing = append(missing, measure.NotChecked{Fact: "guests", Why: fmt.Sprintf("%d of %s run here too; thru does not read them", others[name], name)})
	}
	return missing
}
