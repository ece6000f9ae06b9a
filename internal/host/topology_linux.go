package host

import (
	"errors"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Allowed lists the CPUs that this process may use, in order
// (sched_getaffinity(2) of its main thread, which package native binds to
// none); nil where the kernel does not report them.
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

// OwnSysfs returns an error where /sys does not show the interface of that
// name in this thread's network namespace. A recorded tree does.
func (h *Host) OwnSysfs(iface string) error {
	if h.kernel == nil {
		return nil
	}
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return err
	}
	if i.Flags&net.FlagLoopback != 0 {
		return h.ownNeighbour()
	}
	return h.fs.sameLink(linkOf(i))
}

// ownNeighbour decides by another interface whether /sys is that of this
// network namespace: the loopback looks equal in all.
func (h *Host) ownNeighbour() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	err = errors.New("no interface but loopback, which is the same in all network namespaces: the namespace of /sys is not known")
	for i := range all {
		if all[i].Flags&net.FlagLoopback == 0 && len(all[i].HardwareAddr) > 0 {
			if err = h.fs.sameLink(linkOf(&all[i])); err != nil {
				return err
			}
		}
	}
	return err
}

func linkOf(i *net.Interface) link {
	return link{name: i.Name, index: i.Index, mac: i.HardwareAddr.String()}
}

// nominal reports whether the speed of an interface is only nominal: no wire
// of that rate exists. This holds for software (veth, tun, bridge, dummy, lo)
// and for virtual NICs. VLANs, bonds and the like follow their lower
// interfaces.
func (u *subject) nominal() *bool {
	is, err := u.nominalOf(u, maxStack)
	if err != nil {
		u.miss("speed_is_nominal", err)
		return nil
	}
	return &is
}

func (s *survey) nominalOf(u *subject, depth int) (bool, error) {
	if u.hardware() {
		if u.info.driver == "" {
			return false, errors.New("its driver is not known")
		}
		return u.vnic != "", nil
	}
	if u.sysfs != nil && s.kernel == nil {
		return false, u.sysfs
	}
	if !slices.Contains([]string{"vlan", "bond", "team", "macvlan", "ipvlan", "macsec"}, u.kind) {
		return true, nil
	}
	if u.elsewhere {
		return false, errors.New("its lower interface is in another network namespace")
	}
	if len(u.lower) == 0 || depth == 0 {
		return true, nil
	}
	for _, name := range u.lower {
		l := s.named[name]
		if l == nil {
			continue
		}
		if is, err := s.nominalOf(s.subject(*l), depth-1); is || err != nil {
			return is, err
		}
	}
	return false, nil
}
