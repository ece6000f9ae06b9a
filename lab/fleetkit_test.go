package lab

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// FleetOptions are the options of a Fleet. The zero value has no hosts.
type FleetOptions struct {
	// Rates are the capacities of the hosts' uplinks, one a host, each direction, in bit/s of frames without
	// preamble and gap; 0 means unlimited.
	Rates []int64
	// Control adds a second link to every host, to a network for control traffic only. The controller is on
	// that network alone.
	Control bool
}

// Fleet is a number of hosts at one bridge. The bridge is in a host of its own, with a port for each of them:
// a switch with counters.
type Fleet struct {
	Switch     *Host
	Hosts      []*Host // h1, h2, ...
	Controller *Host   // its link is unlimited
	control    bool
}

// Networks of a Fleet: host N has the address N, the controller 100.
const (
	dataNet        = 77
	controlNet     = 78
	controllerHost = 100
)

// NewFleet builds a fleet in a lab of its own. Its congestion control is cubic.
func NewFleet(t testing.TB, o FleetOptions) *Fleet {
	t.Helper()
	l := New(t)
	f := &Fleet{Switch: l.Host("switch"), Controller: l.Host("control"), control: o.Control}
	f.bridge("data")
	if o.Control {
		f.bridge("ctl")
	}
	for i, rate := range o.Rates {
		h := l.Host(fmt.Sprintf("h%d", i+1))
		f.Hosts = append(f.Hosts, h)
		f.plug(h, DataDev, "data", dataNet, i+1)
		if rate > 0 {
			h.limit(DataDev, rate)
			f.Switch.limit(f.Port(i), rate)
		}
		if o.Control {
			f.plug(h, ControlDev, "ctl", controlNet, i+1)
		}
	}
	if o.Control {
		f.plug(f.Controller, ControlDev, "ctl", controlNet, controllerHost)
	} else {
		f.plug(f.Controller, DataDev, "data", dataNet, controllerHost)
	}
	return f
}

// Data is the data address of a host, by its index in Hosts.
func (f *Fleet) Data(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, dataNet, 0, byte(host + 1)})
}

// Control is the address that the controller listens at.
func (f *Fleet) Control() netip.Addr {
	if f.control {
		return netip.AddrFrom4([4]byte{10, controlNet, 0, controllerHost})
	}
	return netip.AddrFrom4([4]byte{10, dataNet, 0, controllerHost})
}

// Port is the switch's interface to a host's data link. It receives what the host sends, after the rate
// limit, and sends to the host.
func (f *Fleet) Port(host int) string { return fmt.Sprintf("data%d", host+1) }

// bridge adds a bridge to the switch.
func (f *Fleet) bridge(name string) {
	f.Switch.lab.t.Helper()
	f.Switch.IP("link", "add", "br-"+name, "type", "bridge")
	f.Switch.IP("link", "set", "br-"+name, "up")
}

// plug connects a host to a bridge.
func (f *Fleet) plug(h *Host, dev, bridge string, net, number int) {
	h.lab.t.Helper()
	port := fmt.Sprintf("%s%d", bridge, number)
	h.lab.must("ip", "link", "add", dev, "netns", h.netns, "type", "veth", "peer", "name", port, "netns", f.Switch.netns)
	f.Switch.IP("link", "set", port, "master", "br-"+bridge, "up")
	own := fmt.Sprintf("10.%d.0.%d", net, number)
	h.IP("addr", "add", own+"/24", "dev", dev)
	h.IP("link", "set", dev, "up")
	h.IP("route", "replace", fmt.Sprintf("10.%d.0.0/24", net), "dev", dev, "src", own, "congctl", "cubic")
}

// Reading is the counters of an interface at a moment.
type Reading struct {
	At time.Time
	Counters
}

// Watch reads the counters of the switch's data ports again and again until stop is called, which returns the
// readings of each port. It starts no program, since that takes a second on a busy machine.
func (f *Fleet) Watch(every time.Duration) (stop func() map[string][]Reading) {
	t := f.Switch.lab.t
	t.Helper()
	there, err := netns.GetFromName(f.Switch.netns)
	if err != nil {
		t.Fatalf("lab: opening the switch's namespace: %v", err)
	}
	inside, err := netlink.NewHandleAt(there)
	there.Close()
	if err != nil {
		t.Fatalf("lab: asking the switch for its counters: %v", err)
	}
	all := map[string][]Reading{}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer inside.Close()
		for {
			for i := range f.Hosts {
				port := f.Port(i)
				if link, err := inside.LinkByName(port); err == nil {
					s := link.Attrs().Statistics
					all[port] = append(all[port], Reading{time.Now(), Counters{s.RxBytes, s.TxBytes, s.RxPackets, s.TxPackets}})
				}
			}
			select {
			case <-quit:
				return
			case <-time.After(every):
			}
		}
	}()
	return func() map[string][]Reading { close(quit); <-done; return all }
}

// Payload estimates the TCP payload in counted bytes, over IPv4 with timestamps: each counted packet has one
// header, however many segments it becomes. Acknowledgements have no payload.
func Payload(bytes, packets uint64) float64 {
	const header = 14 + 20 + 32
	return float64(bytes) - header*float64(packets)
}
