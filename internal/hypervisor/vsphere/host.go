package vsphere

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// Properties of a host (vSphere Web Services API, HostSystem): those of its
// identity, for choices, and the rest.
func hostIdentity() []string {
	return strings.Fields(`name hardware.systemInfo.uuid config.network.pnic config.network.vnic config.network.consoleVnic`)
}

func hostAll() []string {
	return append(hostIdentity(), strings.Fields(`runtime.connectionState runtime.inMaintenanceMode datastore vm
		config.product config.option config.hyperThread config.dateTimeInfo config.fileSystemVolume.mountInfo
		config.storageDevice.scsiLun config.virtualNicManagerInfo.netConfig
		config.network.vswitch config.network.proxySwitch config.network.portgroup config.network.netStackInstance config.network.dnsConfig
		configManager.advancedOption configManager.imageConfigManager configManager.kernelModuleSystem
		hardware.systemInfo hardware.biosInfo hardware.cpuInfo hardware.cpuPkg hardware.memorySize hardware.numaInfo
		hardware.cpuPowerManagementInfo hardware.pciDevice`)...)
}

// convertHost converts a host with all requested properties.
func convertHost(o *types.ObjectContent, t tree) measure.GuestHost {
	r := &reader{object: o}
	h := measure.GuestHost{ID: o.Obj.Value, Name: unescape(r.text("", "name", "")), Site: t.site(o.Obj), Cluster: t.cluster(o.Obj)}
	h.State = hostState(r.text("state", "runtime.connectionState", ""))
	if h.State != nil && *h.State != "connected" {
		r.unset = "the host is " + *h.State
	}
	h.Maintenance = r.truth("maintenance", "runtime.inMaintenanceMode", "")
	own := r.gaps
	r.gaps = nil
	h.Facts = hostFacts(r)
	h.UUID = h.Facts.Machine.UUID
	drop(&h.Facts.Machine)
	drop(&h.Facts.CPU)
	beyond(h.Facts, r)
	h.Facts.NotChecked = r.gaps
	r.gaps = own
	h.Ports = vmkernelPorts(r, h.ID)
	h.PCI = pciDevices(r)
	stores, _ := value[types.ArrayOfManagedObjectReference](r, "datastores", "datastore", "")
	for _, s := range stores.ManagedObjectReference {
		h.Datastores = append(h.Datastores, s.Value)
	}
	slices.SortFunc(h.Datastores, natural)
	if h.UUID == "" {
		r.gap("uuid", reasonOf(h.Facts.NotChecked, "machine"))
	}
	h.NotChecked = r.gaps
	return h
}

// drop sets an empty part to nil.
func drop[T any](part **T) {
	if reflect.ValueOf(**part).IsZero() {
		*part = nil
	}
}

// convertHostIdentity converts the identity of a host, for choices.
func convertHostIdentity(o *types.ObjectContent) measure.GuestHost {
	r := &reader{object: o}
	h := measure.GuestHost{ID: o.Obj.Value, Name: unescape(r.text("", "name", "")), Facts: &measure.Facts{}}
	if id := r.text("", "hardware.systemInfo.uuid", ""); id != nil {
		h.UUID = strings.ToLower(*id)
		h.Facts.Machine = &measure.Machine{UUID: h.UUID}
	}
	takePhysical(h.Facts, r)
	takeVmk(h.Facts, r)
	return h
}

// reasonOf returns why a fact is missing.
func reasonOf(list []measure.NotChecked, fact string) string {
	for _, n := range list {
		if n.Fact == fact {
			return n.Why
		}
	}
	return ""
}

// hostState returns a word for HostSystemConnectionState.
func hostState(s *string) *string {
	if s != nil && *s == string(types.HostSystemConnectionStateNotResponding) {
		return new("not responding")
	}
	return s
}

// beyond notes the facts that gates need and the web service does not have.
func beyond(f *measure.Facts, r *reader) {
	const ssh = "the web service does not report it; the host's own commands do (ssh://root@HOST)"
	for _, fact := range []string{"boot_device", "firewall", "clock.source"} {
		r.gap(fact, ssh)
	}
	r.gap("load", "the counters of a test report it")
	for i := range f.Interfaces {
		if *f.Interfaces[i].Kind != physical {
			continue
		}
		at := "interfaces." + f.Interfaces[i].Name + "."
		r.gap(at+"mtu_bytes", "the web service reports only that of its switch")
		for _, fact := range strings.Fields("rx_queues tx_queues rings coalescing pause offloads error_counters") {
			r.gap(at+fact, ssh)
		}
	}
}

// hostFacts returns the facts of a host in the words of its own commands
// (host/platform, esxi.go), so that the same rules judge both.
func hostFacts(r *reader) *measure.Facts {
	f := &measure.Facts{OS: new("esxi"), Machine: &measure.Machine{}, CPU: &measure.Processors{}}
	takeProduct(f, r)
	takeMachine(f, r)
	takeProcessors(f, r)
	takeNUMA(f, r)
	takeClock(f, r)
	takeOptions(f, r)
	takePower(f, r)
	takePhysical(f, r)
	takeSwitches(f, r)
	takeVmk(f, r)
	takeVolumes(f, r)
	takeStacks(f, r)
	nameMasters(f)
	return f
}

// takeProduct reads version and build; the number of the update is an option.
func takeProduct(f *measure.Facts, r *reader) {
	p, ok := value[types.AboutInfo](r, "kernel", "config.product", "")
	if !ok || p.Version == "" {
		return
	}
	name := p.Name + " " + p.Version
	if update := option(r, "Misc.HostAgentUpdateLevel"); update != "" && update != "0" {
		name += " Update " + update
	}
	f.Distro = &name
	f.Kernel = new(p.Version + " Releasebuild-" + p.Build) // in esxcli's form
	switch p.OsType {
	case "vmnix-x86":
		f.Arch = new("x86_64")
	case "":
		r.gap("arch", noReason)
	default:
		f.Arch = &p.OsType
	}
}

// takeMachine reads the maker, the model, and the firmware.
func takeMachine(f *measure.Facts, r *reader) {
	if dns, ok := value[types.HostDnsConfig](r, "hostname", "config.network.dnsConfig", ""); ok {
		f.Hostname = word(strings.Trim(dns.HostName+"."+dns.DomainName, "."))
	}
	if s, ok := value[types.HostSystemInfo](r, "machine", "hardware.systemInfo", ""); ok {
		f.Machine.Vendor, f.Machine.Product, f.Machine.UUID = strings.TrimSpace(s.Vendor), strings.TrimSpace(s.Model), strings.ToLower(s.Uuid)
		// A nested ESXi names its hypervisor; other makers prove nothing.
		if strings.Contains(s.Vendor, "VMware") {
			f.Hypervisor = new("vmware")
		} else {
			r.gap("hypervisor", fmt.Sprintf("thru does not know the machine's vendor (%.40q) as a hypervisor", s.Vendor))
		}
	}
	takeLegacyCPU(f, r)
	b, ok := value[types.HostBIOSInfo](r, "machine.bios_version", "hardware.biosInfo", "")
	if !ok {
		return
	}
	f.Machine.BIOSVendor, f.Machine.BIOSVersion = b.Vendor, b.BiosVersion
	if b.ReleaseDate != nil {
		f.Machine.BIOSDate = b.ReleaseDate.Format("2006-01-02")
	}
	if b.FirmwareType == "" {
		r.gap("machine.uefi", "only ESXi 8.0.2 and later report it")
		return
	}
	f.Machine.UEFI = new(strings.EqualFold(b.FirmwareType, "UEFI"))
}

// takeLegacyCPU reads whether an unsupported processor was admitted: by an
// option of the VMkernel, or a word in boot.cfg.
func takeLegacyCPU(f *measure.Facts, r *reader) {
	const name = "allowLegacyCPU"
	n := len(r.gaps)
	s, _ := value[types.HostSystemInfo](r, "settings_changed."+name, "hardware.systemInfo", "")
	set := option(r, bootOption+name)
	line := strings.ToLower(s.BootCommandLine)
	switch {
	case strings.EqualFold(set, "true"), strings.Contains(line, strings.ToLower(name)+"=true"):
		changed(f, name, "TRUE (default FALSE)")
	case set == "" && line == "" && len(r.gaps) == n:
		r.gap("settings_changed."+name, "only ESXi 8.0.3 and later report it; the host's own commands do too (ssh://root@HOST)")
	}
	if set != "" || line != "" {
		r.gaps = r.gaps[:n]
	}
}

// takeProcessors reads the CPUs and the memory.
func takeProcessors(f *measure.Facts, r *reader) {
	if c, ok := value[types.HostCpuInfo](r, "cores", "hardware.cpuInfo", ""); ok {
		f.CPU.Sockets, f.CPU.Cores, f.CPU.Threads = positive(c.NumCpuPackages), positive(c.NumCpuCores), positive(c.NumCpuThreads)
		f.Cores = positive(c.NumCpuThreads)
		if c.Hz > 0 {
			f.CPU.BaseHz = &c.Hz
		}
	}
	if list, ok := value[types.ArrayOfHostCpuPackage](r, "cpu_model", "hardware.cpuPkg", ""); ok && len(list.HostCpuPackage) > 0 {
		p := list.HostCpuPackage[0]
		f.CPUModel = word(strings.Join(strings.Fields(p.Description), " "))
		if p.Hz > 0 {
			f.CPU.BaseHz = &p.Hz
		}
	}
	if s, ok := value[types.HostHyperThreadScheduleInfo](r, "cpu.smt_active", "config.hyperThread", ""); ok {
		f.CPU.SMT = &s.Active
	}
	if m, ok := value[int64](r, "memory_bytes", "hardware.memorySize", ""); ok && m > 0 {
		f.Memory = &m
		f.RAM = &measure.RAM{Total: &m}
	}
}

// takeNUMA reads the nodes.
func takeNUMA(f *measure.Facts, r *reader) {
	n, ok := value[types.HostNumaInfo](r, "numa_nodes", "hardware.numaInfo", "")
	if !ok {
		return
	}
	for _, at := range n.NumaNode {
		node := measure.NUMANode{Node: int(at.TypeId), CPUs: []int{}}
		for _, c := range at.CpuID {
			node.CPUs = append(node.CPUs, int(c))
		}
		slices.Sort(node.CPUs)
		if size := cmp.Or(at.MemorySize, at.MemoryRangeLength); size > 0 { // the older name
			node.Total = &size
		}
		f.NUMA = append(f.NUMA, node)
	}
	if len(f.NUMA) == 0 {
		r.gap("numa_nodes", noReason)
	}
}

// takeClock reads whether a time service keeps the clock.
func takeClock(f *measure.Facts, r *reader) {
	const fact = "clock.synchronised"
	d, ok := value[types.HostDateTimeInfo](r, fact, "config.dateTimeInfo", "")
	switch {
	case !ok:
	case d.ServiceSync != nil:
		f.Clock = &measure.Clock{Synchronised: d.ServiceSync}
	default:
		r.gap(fact, "only ESXi 7.0.3 and later report it")
	}
}

// takePower reads the processors' power policy: "High performance",
// "Balanced" ...
func takePower(f *measure.Facts, r *reader) {
	n := len(r.gaps)
	p, _ := value[types.HostCpuPowerManagementInfo](r, "cpu.governors", "hardware.cpuPowerManagementInfo", "")
	policy := cmp.Or(p.CurrentPolicy, option(r, "Power.CpuPolicy"))
	switch {
	case policy != "":
		f.CPU.Governors = []string{policy}
		r.gaps = r.gaps[:n]
	case len(r.gaps) == n:
		r.gap("cpu.governors", "the firmware controls the power itself, or the server does not report it")
	}
}

// takeStacks reads the congestion control of the VMkernel's own traffic.
func takeStacks(f *measure.Facts, r *reader) {
	list, _ := value[types.ArrayOfHostNetStackInstance](r, "", "config.network.netStackInstance", "")
	for _, s := range list.HostNetStackInstance {
		if s.Key == "defaultTcpipStack" {
			f.Congestion = word(s.CongestionControlAlgorithm)
		}
	}
	if f.Congestion == nil {
		r.gap("congestion_control", noReason)
	}
}

// pciClass returns the class of a device that is listed, or "" (PCI Code and
// ID Assignment Specification): bridges, buses and memory are part of every
// board.
func pciClass(class int16) string {
	return map[uint16]string{0x01: "storage", 0x02: "network", 0x03: "display", 0x0b: "processor", 0x12: "accelerator"}[uint16(class)>>8]
}

// pciDevices takes the cards.
func pciDevices(r *reader) []measure.PCIDevice {
	list, _ := value[types.ArrayOfHostPciDevice](r, "pci_devices", "hardware.pciDevice", "")
	var all []measure.PCIDevice
	for _, d := range list.HostPciDevice {
		if class := pciClass(d.ClassId); class != "" {
			all = append(all, measure.PCIDevice{Slot: d.Id, Vendor: strings.TrimSpace(d.VendorName), Name: strings.TrimSpace(d.DeviceName), Class: class})
		}
	}
	slices.SortFunc(all, func(a, b measure.PCIDevice) int { return strings.Compare(a.Slot, b.Slot) })
	return all
}
