package scene

import (
	"net/netip"
	"slices"
	"strings"

	"thru/internal/measure"
)

// Face is an interface of a host that the traffic passes.
type Face struct {
	*measure.Interface
	Host *Host
	// Firm: the route uses this interface. Otherwise it is one that could carry the traffic, and it never proves
	// that something is impossible.
	Firm bool
	// Below: another interface is stacked on it (VLAN, bond, bridge, tunnel).
	Below bool
	// Member: it shares the traffic with the other members of a bond.
	Member bool
}

// mostFaces limits how many interfaces of a host are judged.
const mostFaces = 16

// pick chooses the interfaces of a host: that of the route and those under it, or else all that could carry the
// traffic.
func (h *Host) pick() []*Face {
	var list []*Face
	add := func(name string, on Face) {
		i := h.Interface(name)
		seen := slices.ContainsFunc(list, func(f *Face) bool { return f.Name == name })
		if i != nil && !seen && len(list) < mostFaces {
			on.Interface, on.Host = i, h
			list = append(list, &on)
		}
	}
	if r := h.End.Route; r != nil {
		add(r.Interface, Face{Firm: true})
	} else {
		devices := deviceIsUp(h.Interfaces)
		for i := range h.Interfaces {
			if carries(&h.Interfaces[i], devices) {
				add(h.Interfaces[i].Name, Face{})
			}
		}
	}
	for k := 0; k < len(list); k++ { // the list grows by the lower interfaces
		f := list[k]
		for _, name := range f.lower(h) {
			add(name, Face{Firm: f.Firm, Below: true, Member: f.Member || f.Bond != nil})
		}
	}
	return list
}

// deviceIsUp reports whether any interface with hardware (or a hypervisor's device) is up.
func deviceIsUp(all []measure.Interface) bool {
	return slices.ContainsFunc(all, func(i measure.Interface) bool { return isDevice(&i) && IsTrue(i.Up) && !IsFalse(i.Carrier) })
}

// carries reports whether an interface could carry the traffic of a test whose route is not known: a device that
// is up or, on a host without devices (a container), an interface with an address that others can reach.
func carries(i *measure.Interface, devices bool) bool {
	if !IsTrue(i.Up) || IsFalse(i.Carrier) || IsLoopback(i) {
		return false
	}
	if devices {
		return isDevice(i)
	}
	return i.Bridge == nil && slices.ContainsFunc(i.Addrs, func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && !p.Addr().IsLinkLocalUnicast() && !p.Addr().IsLoopback()
	})
}

// isDevice reports whether an interface has hardware, or a hypervisor's virtual hardware.
func isDevice(i *measure.Interface) bool {
	if i.Kind != nil {
		return i.IsDevice()
	}
	return i.PCI != nil || i.Bus != nil
}

// IsLoopback reports whether an interface is the loopback.
func IsLoopback(i *measure.Interface) bool {
	return i.Kind != nil && *i.Kind == "loopback" || i.Name == "lo" || i.Name == "lo0"
}

// lower returns the names of the interfaces that a packet passes after this one. For a bridge these are the ports
// with a device.
func (f *Face) lower(h *Host) []string {
	names := slices.Clone(f.Lower)
	if f.Tunnel != nil && f.Tunnel.Lower != "" {
		names = append(names, f.Tunnel.Lower)
	}
	if f.Bond != nil {
		for _, m := range f.Bond.Members {
			names = append(names, m.Name)
		}
	}
	if f.Bridge != nil {
		names = slices.DeleteFunc(append(names, f.Bridge.Ports...), func(name string) bool {
			port := h.Interface(name)
			return port == nil || !isDevice(port) && port.Bond == nil && port.VLAN == nil
		})
	}
	return names
}

// Top returns the interface by which packets to the other end leave; nil if the route is not known.
func (h *Host) Top() *Face {
	if h.End.Route == nil || len(h.Faces) == 0 {
		return nil
	}
	return h.Faces[0]
}

// Speed returns the wire rate of the interface in bit/s; 0 if it is not known or only nominal.
func (f *Face) Speed() int64 {
	if f.SpeedBps == nil || *f.SpeedBps <= 0 || *f.SpeedBps > MostRate || IsTrue(f.Nominal) {
		return 0
	}
	return *f.SpeedBps
}

// MostRate is the highest credible rate in bit/s: a higher one means a damaged document.
const MostRate = 1e14

// NodeCPUs returns the CPUs of the adapter's NUMA node; none if that is not known.
func (f *Face) NodeCPUs() []int {
	for _, n := range f.Host.NUMA {
		if f.NUMANode != nil && n.Node == *f.NUMANode && len(n.CPUs) > 0 {
			return slices.DeleteFunc(slices.Clone(n.CPUs), func(c int) bool { return c < 0 || c >= mostCPUs })
		}
	}
	return nil
}

// Near returns NodeCPUs, or all CPUs of the host if those are not known.
func (f *Face) Near() []int {
	if cpus := f.NodeCPUs(); cpus != nil {
		return cpus
	}
	return firstCPUs(f.Host.CPUs())
}

// RxQueues returns the configured number of receive queues; 0 if it is not known.
func (f *Face) RxQueues() int {
	if c := f.Channels; c != nil && c.Combined+c.RX > 0 {
		return max(c.Combined, 0) + max(c.RX, 0)
	}
	if f.Queues != nil && *f.Queues > 0 {
		return *f.Queues
	}
	return 0
}

// KindName returns the kind of the interface in words, "" if it is not known.
func (f *Face) KindName() string {
	if f.Kind == nil {
		return ""
	}
	return *f.Kind
}

// DriverName returns the driver's name, "" if it is not known.
func (f *Face) DriverName() string {
	if f.Driver == nil {
		return ""
	}
	return *f.Driver
}

// Device reports whether the interface has hardware, or a hypervisor's virtual hardware.
func (f *Face) Device() bool { return isDevice(f.Interface) && !IsLoopback(f.Interface) }

// Wired reports whether it is a device whose speed is that of a wire.
func (f *Face) Wired() bool { return f.Device() && !IsTrue(f.Nominal) }

// Wanted returns the rate that the interface has to carry: the stated one, divided among the members of a bond.
func (f *Face) Wanted() int64 {
	if f.Member {
		return 0
	}
	return f.Host.Subject.LinkBps
}

// WhyNot returns why a fact of the interface is missing. A fact that is absent without a reason makes no sense for
// the interface's kind and is not reported, except on a real device.
func (f *Face) WhyNot(facts ...string) (why string, reported bool) {
	own := "interfaces." + f.Name
	parent, _, _ := strings.Cut(facts[0], ".")
	why = Reason(f.Host.NotChecked, own+"."+facts[0], own+"."+parent, own+".*", own, "interfaces")
	return why, why != NotRead || f.Wired()
}

// IsTrue reports whether a fact is known and true.
func IsTrue(b *bool) bool { return b != nil && *b }

// IsFalse reports whether a fact is known and false.
func IsFalse(b *bool) bool { return b != nil && !*b }
