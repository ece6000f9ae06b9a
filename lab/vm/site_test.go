package vm

import (
	"fmt"
	"testing"

	"thru/lab"
)

// Bridge is the name of the site's bridge, in the namespace of its switch.
const Bridge = "br0"

// siteNet is the site's network, 10.77.0.0/24: the switch has the address 1, the
// peer 2, and VM N has N.
const siteNet = 77

// FirstNumber is the lowest number of a VM: those below belong to hosts.
const FirstNumber = 10

// jumbo is the MTU of the bridge and of its ports, so that only the MTU of a host or VM limits a packet.
const jumbo = "9000"

// Site is a bridge with a host and VMs at it.
type Site struct {
	Switch *lab.Host // has the bridge and runs QEMU, as a hypervisor does
	Peer   *lab.Host // at the bridge by a veth, lab.DataDev, like a host outside the hypervisor
	Link   lab.Link  // addresses: A4 is the switch's, B4 the peer's
	image  *Image
}

// NewSite makes a site that is removed when the test ends, with all VMs in it.
func NewSite(t testing.TB, image *Image) *Site {
	t.Helper()
	lab.Require(t, lab.Program(emulator))
	p := lab.NewPair(t, lab.Options{})
	s := &Site{Switch: p.A, Peer: p.B, Link: p.Data, image: image}
	s.Switch.IP("addr", "flush", "dev", lab.DataDev)
	s.Switch.IP("link", "add", Bridge, "mtu", jumbo, "type", "bridge")
	s.Switch.IP("link", "set", lab.DataDev, "mtu", jumbo, "master", Bridge)
	s.Switch.IP("addr", "add", s.Link.A4.String()+"/24", "dev", Bridge)
	s.Switch.IP("link", "set", Bridge, "up")
	return s
}

// plug makes the port of a VM. Closing the VM removes it.
func (s *Site) plug(spec Spec) error {
	for _, words := range [][]string{
		{"tuntap", "add", "dev", spec.Tap(), "mode", "tap"},
		{"link", "set", spec.Tap(), "mtu", jumbo, "master", Bridge, "up"},
	} {
		if _, err := s.Switch.Output("ip", words...); err != nil {
			return fmt.Errorf("vm: making the port of %s: %w", spec.Name, err)
		}
	}
	return nil
}

// unplug removes the port of a VM.
func (s *Site) unplug(spec Spec) error {
	if _, err := s.Switch.Output("ip", "link", "delete", spec.Tap()); err != nil {
		return fmt.Errorf("vm: removing the port of %s: %w", spec.Name, err)
	}
	return nil
}
