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
	// firm: the route goes by it. Else it is one that could carry the traffic,
	// and nothing about it can be said to be impossible.
	Firm bool
	// below: another interface lies on it (VLAN, bond, bridge, tunnel).
	Below bool
	// member: it shares the traffic with the other members of a bond.
	Member bool
}

// mostFaces bounds the interfaces that are judged of one host.
const mostFaces = 16

// pick chooses the interfaces of a host: the one of the route with those that
// it lies on, else those that could carry the traffic.
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
	for k := 0; k < len(list); k++ { // the list grows by what lies below
		f := list[k]
		for _, name := range f.lower(h) {
			add(name, Face{Firm: f.Firm, Below: true, Member: f.Member || f.Bond != nil})
		}
	}
	return list
}

// deviceIsUp tells whether any interface with hardware (or a hypervisor's)
// behind it is up.
func deviceIsUp(all []measure.Interface) bool {
	return slices.ContainsFunc(all, func(i measure.Interface) bool { return isDevice(&i) && IsTrue(i.Up) && !IsFalse(i.Carrier) })
}

// carries tells whether an interface could carry the traffic of a test whose
// route is not known: one with a device that is up, or where the host has none
// (a container) one with an address that others can reach.
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

// isDevice tells whether hardware, or what a hypervisor shows as such, is behind an interface.
func isDevice(i *measure.Interface) bool {
	if i.Kind != nil {
		return i.IsDevice()
	}
	return i.PCI != nil || i.Bus != nil
}

// IsLoopback tells of the interface that leads back to the host itself.
func IsLoopback(i *measure.Interface) bool {
	return i.Kind != nil && *i.Kind == "loopback" || i.Name == "lo" || i.Name == "lo0"
}

// lower names the interfaces that a packet passes after this one. A bridge
// leads to every port; those with a device behind them are meant.
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

// Top is the interface that packets to the other end leave by; nil where the
// route is not known.
func (h *Host) Top() *Face {
	if h.End.Route == nil || len(h.Faces) == 0 {
		return nil
	}
	return h.Faces[0]
}

// Speed is the rate of the wire behind the interface in bit/s; 0 where none
// is known, or it is a name only.
func (f *Face) Speed() int64 {
	if f.SpeedBps == nil || *f.SpeedBps <= 0 || *f.SpeedBps > MostRate || IsTrue(f.Nominal) {
		return 0
	}
	return *f.SpeedBps
}

// MostRate bounds what a figure may say, in bit/s: more is a damaged document.
const MostRate = 1e14

// NodeCPUs are the CPUs of the adapter's node; none where that is not known.
func (f *Face) NodeCPUs() []int {
	for _, n := range f.Host.NUMA {
		if f.NUMANode != nil && n.Node == *f.NUMANode && len(n.CPUs) > 0 {
			return slices.DeleteFunc(slices.Clone(n.CPUs), func(c int) bool { return c < 0 || c >= mostCPUs })
		}
	}
	return nil
}

// Near are those, and where they are not known all CPUs of the host.
func (f *Face) Near() []int {
	if cpus := f.NodeCPUs(); cpus != nil {
		return cpus
	}
	return firstCPUs(f.Host.CPUs())
}

// RxQueues is how many receive queues are set; 0 where it is not known.
func (f *Face) RxQueues() int {
	if c := f.Channels; c != nil && c.Combined+c.RX > 0 {
		return max(c.Combined, 0) + max(c.RX, 0)
	}
	if f.Queues != nil && *f.Queues > 0 {
		return *f.Queues
	}
	return 0
}

// KindName in words, "" where it is not known.
func (f *Face) KindName() string {
	if f.Kind == nil {
		return ""
	}
	return *f.Kind
}

// DriverName is its name, "" where it is not known.
func (f *Face) DriverName() string {
	if f.Driver == nil {
		return ""
	}
	return *f.Driver
}

// Device tells whether the interface has hardware behind it, or what a
// hypervisor shows as such.
func (f *Face) Device() bool { return isDevice(f.Interface) && !IsLoopback(f.Interface) }

// Wired tells of a device whose speed is that of a wire.
func (f *Face) Wired() bool { return f.Device() && !IsTrue(f.Nominal) }

// Wanted is the rate that the interface has to carry: the stated one. Members
// of a bond share it.
func (f *Face) Wanted() int64 {
	if f.Member {
		return 0
	}
	return f.Host.Subject.LinkBps
}

// WhyNot is the reason for a fact of the interface that is lacking. One that is absent
// without a reason makes no sense for its kind, and is not told; of a real device it is.
func (f *Face) WhyNot(facts ...string) (why string, told bool) {
	own := "interfaces." + f.Name
	parent, _, _ := strings.Cut(facts[0], ".")
	why = Reason(f.Host.NotChecked, own+"."+facts[0], own+"."+parent, own+".*", own, "interfaces")
	return why, why != NotRead || f.Wired()
}

// IsTrue tells of a fact that is known and true.
func IsTrue(b *bool) bool { return b != nil && *b }

// IsFalse tells of a fact that is known and false.
func IsFalse(b *bool) bool { return b != nil && !*b }
