package vsphere

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Properties of a virtual machine (vSphere Web Services API, VirtualMachine):
// those of its identity, for choices, and the rest.
func guestIdentity() []string {
	return strings.Fields(`name runtime.host runtime.powerState config.template config.uuid config.instanceUuid
		config.hardware.numCPU config.hardware.memoryMB config.hardware.device guest.net guest.ipAddress`)
}

func guestAll() []string {
	return append(guestIdentity(), strings.Fields(`parent resourcePool runtime.connectionState config.guestFullName config.version config.firmware
		config.hardware.numCoresPerSocket config.cpuAllocation config.memoryAllocation config.cpuAffinity config.latencySensitivity
		config.cpuHotAddEnabled config.extraConfig guest.guestFullName guest.hostName guest.toolsVersion guest.toolsVersionStatus2
		guest.toolsRunningStatus`)...)
}

// convertGuest converts a virtual machine with the requested properties;
// facts that were not requested are not reported as missing.
func convertGuest(o *types.ObjectContent, t tree, whole bool) measure.Guest {
	r := &reader{object: o}
	g := measure.Guest{ID: o.Obj.Value, Name: unescape(r.text("", "name", ""))}
	if state := r.text("", "runtime.connectionState", ""); state != nil && *state != string(types.VirtualMachineConnectionStateConnected) {
		r.unset = "the server has few facts about it: its connection state is " + *state
	}
	if host, ok := value[types.ManagedObjectReference](r, "host", "runtime.host", ""); ok {
		g.Host, g.Site, g.Cluster = host.Value, t.site(host), t.cluster(host)
	}
	g.Power = powerWord(r.text("power", "runtime.powerState", ""))
	g.Template, _ = value[bool](r, "", "config.template", "")
	if id := r.text("uuid", "config.uuid", ""); id != nil {
		g.UUID = strings.ToLower(*id)
	}
	if id := r.text("", "config.instanceUuid", ""); id != nil {
		g.InstanceUUID = strings.ToLower(*id)
	}
	g.CPUs = r.number("cpus", "config.hardware.numCPU", "")
	if mb, ok := value[int32](r, "memory_bytes", "config.hardware.memoryMB", ""); ok {
		g.Memory = new(int64(mb) << 20)
	}
	tools := toolsReason(r, &g)
	devices, _ := value[types.ArrayOfVirtualDevice](r, "nics", "config.hardware.device", "")
	takeNICs(&g, r, devices.VirtualDevice)
	takeAddrs(&g, r, tools)
	if whole {
		fillGuest(&g, r, t, tools)
		g.NotChecked = r.gaps
	}
	return g
}

// fillGuest sets the facts that are not part of the identity.
func fillGuest(g *measure.Guest, r *reader, t tree, tools string) {
	if parent, ok := value[types.ManagedObjectReference](r, "", "parent", ""); ok {
		g.Folder = t.path(parent)
		if site := t.site(parent); site != "" {
			g.Site = site
		}
	}
	if pool, ok := value[types.ManagedObjectReference](r, "", "resourcePool", ""); ok {
		g.Pool = t.pool(pool)
	}
	g.OS = r.text("os", "config.guestFullName", "")
	g.Hardware = r.text("hardware_version", "config.version", "")
	g.Firmware = r.text("firmware", "config.firmware", "")
	if n := r.number("cores_per_socket", "config.hardware.numCoresPerSocket", "the VM gets it when it starts"); n != nil {
		g.PerSocket = positive(*n)
	}
	g.CPUShare = allocation(r, "cpu_allocation", "config.cpuAllocation", 1_000_000)
	g.MemoryShare = allocation(r, "memory_allocation", "config.memoryAllocation", 1<<20)
	if a, ok := value[types.VirtualMachineAffinityInfo](r, "", "config.cpuAffinity", ""); ok {
		g.Affinity = ints(a.AffinitySet)
	}
	if l, ok := value[types.LatencySensitivity](r, "latency_sensitivity", "config.latencySensitivity", ""); ok {
		g.Latency = word(string(l.Level))
	}
	g.HotAddCPU = r.truth("cpu_hot_add", "config.cpuHotAddEnabled", "")
	takeAdvanced(g, r)
	devices, _ := value[types.ArrayOfVirtualDevice](r, "disks", "config.hardware.device", "")
	takeDisks(g, devices.VirtualDevice)
	g.OSRuns = r.text("os_running", "guest.guestFullName", tools)
	g.Hostname = r.text("hostname", "guest.hostName", tools)
	takeTools(g, r)
}

// powerWord returns the power state in measure's words.
func powerWord(state *string) string {
	if state == nil {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(*state, "powered"))
}

// toolsReason returns why a machine's guest system may report nothing.
func toolsReason(r *reader, g *measure.Guest) string {
	if g.Power != "on" && g.Power != "" {
		return "it is not running"
	}
	if running := r.text("", "guest.toolsRunningStatus", ""); running != nil && *running == string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning) {
		return "VMware Tools are not running"
	}
	return "VMware Tools do not report it"
}

// takeTools reads version and state of VMware Tools.
func takeTools(g *measure.Guest, r *reader) {
	t := measure.GuestTools{}
	status := r.text("tools.status", "guest.toolsVersionStatus2", "")
	running := r.text("tools.running", "guest.toolsRunningStatus", "")
	if status != nil {
		t.Status = toolsStatus(*status)
	}
	none := ""
	if t.Status != nil && *t.Status == "not installed" {
		none = "VMware Tools are not installed"
	}
	if v := r.text("tools.version", "guest.toolsVersion", none); v != nil {
		t.Version = toolsVersion(*v)
	}
	if running != nil {
		t.Running = new(*running != string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning))
	}
	if t != (measure.GuestTools{}) {
		g.Tools = &t
	}
}

// toolsStatus returns a word for VirtualMachineToolsVersionStatus; an unknown
// one stays unchanged.
func toolsStatus(s string) *string {
	switch s {
	case "guestToolsCurrent":
		s = "current"
	case "guestToolsNeedUpgrade", "guestToolsSupportedOld", "guestToolsTooOld", "guestToolsBlacklisted":
		s = "old"
	case "guestToolsNotInstalled":
		s = "not installed"
	case "guestToolsUnmanaged":
		s = "unmanaged"
	case "guestToolsSupportedNew", "guestToolsTooNew":
		s = "new"
	}
	return &s
}

// toolsVersion adds the readable version to the internal number: major, minor
// and base in 5 bits each from the right (12389 is 12.3.5). 0 is none.
func toolsVersion(s string) *string {
	n, err := strconv.Atoi(s)
	if err == nil && n == 0 {
		return nil
	}
	if err == nil && n >= 8<<10 && n < 64<<10 { // older ones have another scheme
		s = fmt.Sprintf("%d.%d.%d (%d)", n>>10, n>>5&31, n&31, n)
	}
	return &s
}

// allocation reads reservation, limit and shares in the API's units: MHz or
// MB.
func allocation(r *reader, fact, path string, unit int64) *measure.Allocation {
	a, ok := value[types.ResourceAllocationInfo](r, fact, path, "")
	if !ok {
		return nil
	}
	var to measure.Allocation
	if a.Reservation != nil {
		to.Reserved = new(*a.Reservation * unit)
	}
	if a.Limit != nil { // -1: none
		to.Limited = new(*a.Limit >= 0)
		if *a.Limit >= 0 {
			to.Limit = new(*a.Limit * unit)
		}
	}
	if a.Shares != nil {
		to.Shares, to.Level = new(int64(a.Shares.Shares)), word(string(a.Shares.Level))
	}
	return &to
}

// ints converts a list.
func ints(list []int32) []int { return unit.Mapped(list, func(n int32) int { return int(n) }) }

// trafficKey reports whether an advanced setting of a machine
// (VirtualMachineConfigInfo.extraConfig) affects its traffic, its scheduling or
// its use of the host. All others are left out: they are many, and some are
// confidential.
//
//   - ethernetN.*: ctxPerDev, pnicFeatures, udpRSS, rssoffload, coalescingScheme,
//     coalescingParams, disableNetMap ...; not pciSlotNumber
//   - sched.*: CPU, memory, network and latency of the scheduler; not the path of
//     its swap file
//   - numa.*: nodes and how they are shown
//   - monitor.*, monitor_control.*: the virtual machine monitor (halt_desched,
//     disable_pvrdma, idleLoopSpinBeforeHalt ...)
//   - cpuid.*, vmxnet3.*, mainMem.*, MemTrimRate, vcpu.hotadd, mem.hotadd, vhv.enable,
//     hypervisor.cpuid.v0, tsc.*, timeTracker.*, pciPassthru.*
func trafficKey(key string) bool {
	low := strings.ToLower(key)
	if rest, is := strings.CutPrefix(low, "ethernet"); is {
		number, name, dotted := strings.Cut(rest, ".")
		_, err := strconv.Atoi(number)
		return dotted && err == nil && name != "pcislotnumber"
	}
	if slices.Contains([]string{"sched.swap.derivedname", "sched.swap.dir", "numa.autosize.cookie"}, low) {
		return false
	}
	return beginsWithAny(low, "sched.", "numa.", "monitor.", "monitor_control.", "cpuid.", "vmxnet3.", "mainmem.", "memtrimrate",
		"vcpu.hotadd", "mem.hotadd", "vhv.enable", "hypervisor.cpuid.v0", "tsc.", "timetracker.", "pcipassthru.")
}

func beginsWithAny(key string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// maxSetting limits the text of a setting.
const maxSetting = 200

// takeAdvanced reads the settings that affect traffic.
func takeAdvanced(g *measure.Guest, r *reader) {
	list, ok := value[types.ArrayOfOptionValue](r, "advanced", "config.extraConfig", "")
	if !ok {
		return
	}
	for _, b := range list.OptionValue {
		o := b.GetOptionValue()
		v, known := optionText(o.Value)
		if !known || !trafficKey(o.Key) {
			continue
		}
		measure.Put(&g.Advanced, o.Key, v)
		if strings.EqualFold(o.Key, "numa.nodeAffinity") {
			g.NUMANodes = nodeList(v)
		}
	}
}

// nodeList parses "0,1".
func nodeList(s string) []int {
	var all []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// optionText returns the value of a setting, up to maxSetting.
func optionText(v any) (string, bool) {
	switch x := v.(type) {
	case nil:
		return "", false
	case string:
		return fmt.Sprintf("%.*s", maxSetting, x), true
	case bool, int8, int16, int32, int64, uint8, float32, float64:
		return fmt.Sprint(x), true
	}
	return "", false
}
