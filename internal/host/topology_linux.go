package host

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Allowed lists the CPUs that this process may use, in order
// (sched_getaffinity(2) of its main thread, which package native binds to
// none); nil where the kernel does not say.
func Allowed() []int {
	set := unix.NewCPUSet(maxCPU + 1)
	if err := unix.SchedGetaffinityDynamic(os.Getpid(), set); err != nil {
		return nil
	}
	var cpus []int
	for cpu := range maxCPU + 1 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// PlacementFacts reads what Placement needs to know of an interface. It takes
// about a millisecond.
func (h *Host) PlacementFacts(iface string) PlacementFacts {
	var n notes
	var p PlacementFacts
	if err := h.OwnSysfs(iface); err != nil {
		n.add("interface", err.Error())
	} else {
		p = h.fs.placement(&n, iface)
	}
	p.Allowed, p.Missing = Allowed(), n
	return p
}

// OwnSysfs tells whether /sys speaks of the interface of that name that this
// thread sees. A recorded tree does.
func (h *Host) OwnSysfs(iface string) error {
	if h.kernel == nil {
		return nil
	}
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	return h.fs.sameLink(link{name: i.Name, index: i.Index, mac: i.HardwareAddr.String()})
}
