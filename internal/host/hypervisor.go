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

// traces holds the signs of a hypervisor in a guest's files.
type traces struct {
	guest  *bool    // the CPU flag; nil where the architecture has none
	sys    string   // /sys/hypervisor/type: Xen only
	clocks string   // available clock sources; paravirtual ones carry the hypervisor's name
	oem    string   // author of the ACPI tables (readable by root only)
	dmi    []string // vendor and product in the SMBIOS tables
	tree   string   // hypervisor node of the device tree (arm64)
}

// dmiNames returns the strings that hypervisors write into SMBIOS and the
// hypervisors' names, the most specific first. QEMU comes last: KVM and
// others show its tables too.
func dmiNames() [][2]string {
	return [][2]string{
		{"VMware", "vmware"}, {"VirtualBox", "virtualbox"}, {"innotek", "virtualbox"},
		{"Virtual Machine Microsoft", "hyperv"}, {"Parallels", "parallels"}, {"BHYVE", "bhyve"},
		{"Apple Virtualization", "apple"}, {"Cloud Hypervisor", "cloud-hypervisor"},
		{"Nutanix", "kvm"}, {"Amazon EC2", "kvm"}, {"Google Compute Engine", "kvm"},
		{"OpenStack", "kvm"}, {"KubeVirt", "kvm"}, {"KVM", "kvm"}, {"DigitalOcean", "kvm"},
		{"Xen", "xen"}, {"QEMU", "qemu"}, {"Bochs", "qemu"},
	}
}

// hypervisor reads the traces and returns "none", the hypervisor's name, or
// "unknown hypervisor".
func (f FS) hypervisor() (string, error) {
	t := traces{sys: f.Optional("sys/hypervisor/type"),
		clocks: f.Optional("sys/devices/system/clocksource/clocksource0/available_clocksource"),
		tree:   f.Optional("proc/device-tree/hypervisor/compatible")}
	if c, err := f.firstCPU(); err == nil {
		t.guest = c.guest
	}
	// The product comes before the vendor: "Virtual Machine Microsoft
	// Corporation".
	for _, name := range []string{"product_name", "sys_vendor", "board_vendor", "bios_vendor"} {
		if s := f.Optional("sys/class/dmi/id/" + name); s != "" {
			t.dmi = append(t.dmi, s)
		}
	}
	// A table starts with signature, length, revision, check sum (10 bytes),
	// then 6 bytes of OEM (ACPI specification 6.5, table 5.4).
	if b, err := f.Read("sys/firmware/acpi/tables/FACP"); err == nil && len(b) >= 16 {
		t.oem = string(b[10:16])
	}
	return t.name()
}

// name returns the hypervisor by the traces, the most specific first.
func (t traces) name() (string, error) {
	if t.sys != "" {
		return t.sys, nil // Xen's paravirtual guests hide the CPU flag
	}
	if t.guest != nil && !*t.guest {
		return "none", nil // a rented bare-metal machine may name its cloud in SMBIOS
	}
	if t.oem == "FIRECK" {
		return "firecracker", nil
	}
	fromDMI := t.byDMI()
	if fromDMI != "" && fromDMI != "qemu" {
		return fromDMI, nil
	}
	for _, c := range [][2]string{{"hyperv", "hyperv"}, {"xen", "xen"}, {"kvm-clock", "kvm"}} {
		if strings.Contains(t.clocks, c[0]) {
			return c[1], nil
		}
	}
	switch {
	case strings.Contains(t.tree, "kvm"):
		return "kvm", nil
	case fromDMI != "":
		return fromDMI, nil
	case t.tree != "" || t.guest != nil:
		return "unknown hypervisor", nil
	case len(t.dmi) > 0:
		return "none", nil // no CPU flag on this architecture, but a maker of physical machines
	}
	return "", errors.New("this architecture has no CPU flag for it, and the firmware reports no manufacturer")
}

// byDMI looks up the SMBIOS names.
func (t traces) byDMI() string {
	all := strings.Join(t.dmi, " ")
	for _, n := range dmiNames() {
		if strings.Contains(all, n[0]) {
			return n[1]
		}
	}
	return ""
}

// vnic returns the kind of virtual NIC by its driver: "paravirtual",
// "emulated" (the driver of an old physical NIC in a guest), or empty for a
// physical NIC. The speed of a virtual NIC is only nominal.
func vnic(driver string, virtual bool) string {
	switch {
	case measure.ParavirtualDriver(driver) || driver == "netdevsim":
		return "paravirtual"
	case virtual && measure.EmulatedDriver(driver):
		return "emulated"
	}
	return ""
}

// virtualFunction reports whether a device is an SR-IOV virtual function,
// which a guest sees without its physical function: by drivers for virtual
// functions only, or by the device number where one driver handles both
// (ConnectX-3 to ConnectX-7).
func virtualFunction(driver, device string) bool {
	drivers := []string{"ixgbevf", "igbvf", "iavf", "i40evf", "cxgb4vf", "fm10k", "mana", "ena"}
	mellanox := []string{"0x1004", "0x1012", "0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e"}
	return slices.Contains(drivers, driver) || strings.HasPrefix(driver, "mlx") && slices.Contains(mellanox, device)
}

// ofKernel reports whether the driver of a device came with the kernel and
// was built for it: it is built in, or its module taints the kernel neither
// as out of tree (O), nor as unsigned where modules are signed (E), nor as
// loaded by force (F) (Documentation/admin-guide/tainted-kernels.rst). The
// driver's version does not show it: many in-tree drivers have their own
// version numbers.
func (f FS) ofKernel(device string) (bool, error) {
	if device == "" {
		return false, errors.New("/sys does not show its device")
	}
	driver := path.Join(device, "driver")
	if !f.Exists(driver) {
		return false, errors.New("/sys shows no driver")
	}
	module := path.Join(driver, "module")
	if !f.Exists(module) {
		return true, nil // built in
	}
	taint, err := f.Text(path.Join(module, "taint"))
	if err != nil {
		if !f.Exists(path.Join(module, "initstate")) {
			return true, nil // built in, with parameters
		}
		return false, err // Linux before 3.5
	}
	return !strings.ContainsAny(taint, "OEF"), nil
}

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
