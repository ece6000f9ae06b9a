package host

import (
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"

	"thru/internal/measure"
)

// link is what the kernel says of an interface without its driver.
type link struct {
	name, mac  string
	index, mtu int
	up         bool
	addrs      []string
}

// interfaces describes every interface of the calling thread's network namespace.
func (h *Host) interfaces(n *notes, virtual bool) []measure.Interface {
	read := linksOfKernel
	if h.kernel == nil {
		read = h.fs.links
	}
	links, err := read()
	if err != nil {
		n.add("interfaces", err.Error())
		return nil
	}
	var all []measure.Interface
	for _, l := range links {
		all = append(all, h.describe(n, l, virtual))
	}
	return all
}

// describe adds to a link what sysfs and the driver say.
func (h *Host) describe(n *notes, l link, virtual bool) measure.Interface {
	fact := func(key string) string { return "interfaces." + l.name + "." + key }
	i := measure.Interface{Name: l.name, MTU: &l.mtu, Up: &l.up, Addrs: l.addrs}
	if l.mac != "" {
		i.MAC = &l.mac
	} else {
		n.add(fact("mac"), "this kind of interface has none")
	}
	if h.kernel == nil {
		n.add(fact("addresses"), onlyKernel)
	}
	h.describeDriver(n, &i, fact)
	if err := h.fs.sameLink(l); err != nil {
		for _, key := range []string{"speed_bps", "duplex", "rx_queues"} {
			n.add(fact(key), err.Error())
		}
		if i.Driver != nil && paravirtual(*i.Driver, virtual) {
			i.Nominal = new(true) // whatever the speed is
		} else {
			n.add(fact("speed_is_nominal"), err.Error())
		}
		return i
	}
	i.SpeedBps = keeper[int64](n, fact("speed_bps"))(h.fs.speed(l.name))
	i.Duplex = keeper[string](n, fact("duplex"))(h.fs.duplex(l.name))
	i.Nominal = new(h.fs.nominal(l.name, virtual))
	i.Queues = keeper[int](n, fact("rx_queues"))(h.fs.rxQueues(l.name))
	return i
}

// describeDriver fills in driver, version, bus and offloads: from ethtool, or
// as far as sysfs knows them in a recorded tree.
func (h *Host) describeDriver(n *notes, i *measure.Interface, fact func(string) string) {
	ask := h.fs.driver
	if h.kernel != nil {
		ask = h.kernel.info
	}
	d, err := ask(i.Name)
	why := "the driver does not say"
	if err != nil {
		d, why = driverInfo{}, err.Error()
	}
	for _, v := range []struct {
		key, value string
		to         **string
	}{{"driver", d.driver, &i.Driver}, {"driver_version", d.version, &i.Version}, {"bus", d.bus, &i.Bus}} {
		if v.value == "" {
			n.add(fact(v.key), why)
		} else {
			*v.to = &v.value
		}
	}
	if h.kernel == nil {
		n.add(fact("offloads"), onlyKernel)
		return
	}
	features, err := h.kernel.features(i.Name)
	if err != nil {
		n.add(fact("offloads"), err.Error())
		return
	}
	i.Offloads = offloads(features)
}

// linksOfKernel asks by rtnetlink, which answers for the calling thread's
// network namespace (rtnetlink(7)).
func linksOfKernel() ([]link, error) {
	list, err := retried(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("host: asking the kernel for interfaces: %w", err)
	}
	addrs, err := retried(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("host: asking the kernel for addresses: %w", err)
	}
	of := map[int][]string{}
	for _, a := range addrs {
		of[a.LinkIndex] = append(of[a.LinkIndex], a.IPNet.String())
	}
	var links []link
	for _, l := range list {
		a := l.Attrs()
		links = append(links, link{
			name: a.Name, index: a.Index, mtu: a.MTU, mac: a.HardwareAddr.String(),
			up: a.Flags&net.FlagUp != 0, addrs: of[a.Index],
		})
	}
	return links, nil
}

// retried repeats a question whose answer was disturbed by a change.
func retried[T any](ask func() ([]T, error)) (list []T, err error) {
	for range 3 {
		if list, err = ask(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return list, err
}

// links reads the interfaces of a recorded tree.
func (f FS) links() ([]link, error) {
	names, err := f.names("sys/class/net")
	if err != nil {
		return nil, err
	}
	var links []link
	for _, name := range names {
		dir := path.Join("sys/class/net", name)
		l := link{name: name}
		if mac := f.optional(path.Join(dir, "address")); strings.Trim(mac, "0:") != "" {
			l.mac = mac // lo has an address of zeros
		}
		if l.mtu, err = f.number(path.Join(dir, "mtu")); err != nil {
			continue // "bonding_masters" is a file among the folders
		}
		l.index, _ = f.number(path.Join(dir, "ifindex"))
		flags, err := strconv.ParseUint(f.optional(path.Join(dir, "flags")), 0, 32)
		l.up = err == nil && flags&1 != 0
		links = append(links, l)
	}
	return links, nil
}

// sameLink tells whether sysfs speaks of this link. A thread that changed its
// network namespace without a new /sys sees the interfaces of the old one,
// perhaps with the same names.
func (f FS) sameLink(l link) error {
	dir := path.Join("sys/class/net", l.name)
	if !f.exists(dir) {
		return errors.New("/sys does not show it: it belongs to another network namespace")
	}
	index, err := f.number(path.Join(dir, "ifindex"))
	if err != nil {
		return err
	}
	if mac := f.optional(path.Join(dir, "address")); index != l.index || l.mac != "" && mac != "" && mac != l.mac {
		return errors.New("/sys shows another network namespace")
	}
	return nil
}

// driver is what sysfs knows of a driver.
func (f FS) driver(name string) (driverInfo, error) {
	dir := path.Join("sys/class/net", name, "device")
	if !f.exists(dir) {
		return driverInfo{}, errors.New("it is on no bus, and only the running kernel tells more")
	}
	u := f.optional(path.Join(dir, "uevent"))
	return driverInfo{
		driver:  uevent(u, "DRIVER"),
		bus:     uevent(u, "PCI_SLOT_NAME"),
		version: f.optional(path.Join(dir, "driver/module/version")),
	}, nil
}

// speed is the rate that the driver names, in bit/s. The file holds Mb/s, or
// -1 where it is not known (Documentation/ABI/testing/sysfs-class-net); old
// kernels print the -1 without a sign. An interface that is down has none.
func (f FS) speed(name string) (int64, error) {
	s, err := f.linkSetting(name, "speed")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > 100_000_000 {
		return 0, fmt.Errorf("the driver does not say (/sys has %q)", s)
	}
	return n * 1_000_000, nil
}

// linkSetting reads what only a device with a link has; others refuse with EINVAL
// (net/core/net-sysfs.c, speed_show).
func (f FS) linkSetting(name, file string) (string, error) {
	s, err := f.text(path.Join("sys/class/net", name, file))
	if errors.Is(err, syscall.EINVAL) {
		err = errors.New("it is down, or has no link of its own")
	}
	return s, err
}

// duplex is "full" or "half".
func (f FS) duplex(name string) (string, error) {
	s, err := f.linkSetting(name, "duplex")
	if err == nil && s != "full" && s != "half" {
		err = fmt.Errorf("the driver does not say (/sys has %q)", s)
	}
	return s, err
}

// rxQueues counts the receive queues in use.
func (f FS) rxQueues(name string) (int, error) {
	names, err := f.names(path.Join("sys/class/net", name, "queues"))
	if err != nil {
		return 0, err
	}
	count := 0
	for _, q := range names {
		if strings.HasPrefix(q, "rx-") {
			count++
		}
	}
	if count == 0 {
		return 0, errors.New("the kernel shows no queues") // built without CONFIG_SYSFS or RPS
	}
	return count, nil
}
