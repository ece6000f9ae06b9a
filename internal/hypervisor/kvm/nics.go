package kvm

import (
	"cmp"
	"net"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// nic is an adapter of a command line, with the path of its packets.
type nic struct {
	measure.GuestNIC
	backend string // "tap", "bridge", "user", "vhost-user", "stream", "" where there is none
	ifname  string // of a tap that QEMU opened by its name
	fds     []int  // file descriptors that it was given instead
	pci     string // of a device of the host that the guest has: "0000:3b:02.1"
}

// adapters returns the adapters of a command line in all of its four forms:
// -device with -netdev, -nic, and -net nic with -net tap on the old hub.
func (c commandLine) adapters() (all []nic) {
	var hub []props
	for _, p := range c.of("net") {
		if kind := p.get("type"); kind != "nic" && kind != "none" {
			hub = append(hub, p)
		}
	}
	for _, d := range c.of("device") {
		if id := d.get("netdev"); id != "" {
			all = append(all, newNIC(d, c.byID("netdev", "id", id)))
		} else if strings.HasPrefix(d.get("driver"), "vfio-pci") && d.first("host", "sysfsdev") != "" {
			all = append(all, passedThrough(d))
		}
	}
	for _, p := range c.of("nic") {
		if p.get("type") != "none" {
			all = append(all, newNIC(p, p))
		}
	}
	for _, p := range c.of("net") {
		if p.get("type") != "nic" {
			continue
		}
		end := c.byID("netdev", "id", p.get("netdev"))
		if end == nil && len(hub) > 0 {
			end, hub = hub[0], hub[1:]
		}
		all = append(all, newNIC(p, end))
	}
	for i := range all {
		n := &all[i]
		n.Name = cmp.Or(n.Name, "nic"+strconv.Itoa(i))
		n.Key = n.Name
	}
	return all
}

// newNIC makes an adapter from the settings of its device and of its back
// end.
func newNIC(device, end props) nic {
	n := nic{backend: end.get("type"), ifname: end.get("ifname")}
	n.Name = clean(cmp.Or(device.get("id"), device.get("netdev"), device.get("name"), end.get("id")))
	driver := device.get("driver")
	if _, ok := device.find("type"); ok { // for -nic and -net
		driver = device.get("model")
	}
	n.Model = known(model(driver))
	n.MAC = mac(device.first("mac", "macaddr"))
	for _, list := range []string{end.get("fd"), end.get("fds")} {
		for fd := range strings.SplitSeq(list, ":") {
			if number, err := strconv.Atoi(fd); err == nil && number >= 0 {
				n.fds = append(n.fds, number)
			}
		}
	}
	queues := max(len(n.fds), 1)
	if q, ok := end.number("queues"); ok && q > 0 {
		queues = q
	}
	if driver != "" && !device.on("mq") && strings.HasPrefix(driver, "virtio") {
		queues = 1 // the tap's other queues stay unused
	}
	n.Queues = &queues
	switch n.backend {
	case "tap", "bridge":
		n.Vhost = new(end.on("vhost") || end.on("vhostforce") || end.first("vhostfd", "vhostfds") != "")
	case "vhost-user", "vhost-vdpa":
		n.Network = new(n.backend)
	default:
		n.Network = known(n.backend)
	}
	return n
}

// passedThrough returns a host device that is passed through to the guest;
// /sys shows later whether it is a network device.
func passedThrough(d props) nic {
	at := d.get("host")
	if at == "" {
		at = d.get("sysfsdev")
		at = at[strings.LastIndexByte(at, '/')+1:]
	}
	if strings.Count(at, ":") == 1 {
		at = "0000:" + at
	}
	n := nic{backend: "vfio", pci: clean(at)}
	n.Name = clean(cmp.Or(d.get("id"), at))
	return n
}

// model returns an adapter's model in other hypervisors' names.
func model(driver string) string {
	for _, m := range [][2]string{{"virtio", "virtio"}, {"e1000e", "e1000e"}, {"e1000", "e1000"}, {"pcnet", "pcnet32"}, {"vmxnet3", "vmxnet3"}, {"rtl8139", "rtl8139"}} {
		if strings.HasPrefix(driver, m[0]) {
			return m[1]
		}
	}
	return driver
}

// mac returns an address in lower case; nil for anything else.
func mac(s string) *string {
	m, err := net.ParseMAC(s)
	if err != nil {
		return nil
	}
	return new(m.String())
}
