package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"thru/internal/measure"
)

// links requests all interfaces and their addresses. It leaves out virtual
// functions, which take long to list, by not asking for them (IFLA_EXT_MASK).
func (running) links() ([]link, error) {
	answers, err := retried(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	})
	if err != nil {
		return nil, fmt.Errorf("host: reading interfaces from the kernel: %w", err)
	}
	addrs, err := retried(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("host: reading addresses from the kernel: %w", err)
	}
	of := map[int][]string{}
	for _, a := range addrs {
		of[a.LinkIndex] = append(of[a.LinkIndex], a.IPNet.String())
	}
	var links []link
	for _, b := range answers {
		l, err := parseLink(b)
		if err != nil {
			return nil, fmt.Errorf("host: reading the kernel's description of an interface: %w", err)
		}
		l.addrs = of[l.index]
		links = append(links, l)
	}
	resolve(links)
	routeTunnels(links)
	return links, nil
}

// routeTunnels finds the interface that a tunnel's packets leave by, for
// tunnels that are bound to none: by the route to the remote end.
func routeTunnels(links []link) {
	names := map[int]string{}
	for _, l := range links {
		names[l.index] = l.name
	}
	for _, l := range links {
		t := l.tunnel
		if t == nil || t.Lower != "" || t.Remote == "" || !l.up || l.elsewhere {
			continue
		}
		remote, err := netip.ParseAddr(t.Remote)
		if err != nil {
			continue
		}
		local, _ := netip.ParseAddr(t.Local)
		if r, err := lookup(remote, local, ""); err == nil {
			t.Lower = names[r.LinkIndex]
		}
	}
}

// qdiscs requests the queueing disciplines of all interfaces.
func (running) qdiscs() ([]qdisc, error) { return listQdiscs(0) }

// listQdiscs requests queueing disciplines. The kernel can only list those of
// all interfaces; listQdiscs picks those of one where index is not 0.
func listQdiscs(index int32) ([]qdisc, error) {
	answers, err := retried(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
		req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: index})
		return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
	})
	if err != nil {
		return nil, err
	}
	var list []qdisc
	for _, b := range answers {
		q, err := parseQdisc(b)
		if index != 0 && q.index != index {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// queueStats requests the kernel's counters of the queues of an interface.
func (running) queueStats(index int) ([]measure.QueueCounter, error) {
	family, err := netlink.GenlFamilyGet(netdevFamily)
	if err != nil {
		return nil, errors.New("the driver has no such counters, nor has the kernel before Linux 6.9")
	}
	req := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_DUMP)
	req.AddData(genlHeader{cmdQstatsGet, 1, 0, 0})
	req.AddData(nl.NewRtAttr(qstatsIfindex, nl.Uint32Attr(uint32(index))))
	req.AddData(nl.NewRtAttr(qstatsScope, nl.Uint32Attr(scopeQueue)))
	var list []measure.QueueCounter
	err = dump(req, func(b []byte) error {
		c, err := parseQstats(b)
		list = append(list, c)
		return err
	})
	if err != nil {
		return nil, answered(err)
	}
	if len(list) == 0 {
		return nil, errUnknown
	}
	slices.SortStableFunc(list, byQueue)
	return list, nil
}

// dump sends a request to a generic netlink family and passes on each answer.
// The family "netdev" does not mark its answers as parts of many
// (NLM_F_MULTI), so that nl's own Execute ends after the first.
func dump(req *nl.NetlinkRequest, each func([]byte) error) error {
	s, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.SetReceiveTimeout(&unix.Timeval{Sec: 5}); err != nil {
		return err
	}
	if err := s.Send(req); err != nil {
		return err
	}
	for {
		messages, _, err := s.Receive()
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return nil
			case unix.NLMSG_ERROR:
				return unix.Errno(-int32(number32(m.Data)))
			}
			if err := each(m.Data); err != nil {
				return err
			}
		}
	}
}

// genlHeader is struct genlmsghdr: command, version, and two bytes that must
// be zero. nl.Genlmsg of v1.3.1 cannot be used, since it sends adjacent
// memory as these two bytes, which the kernel refuses.
type genlHeader [sizeofGenl]byte

func (g genlHeader) Len() int          { return len(g) }
func (g genlHeader) Serialize() []byte { return g[:] }

// retried repeats a request whose answer was interrupted by a change.
func retried[T any](ask func() ([]T, error)) (list []T, err error) {
	for range 3 {
		if list, err = ask(); !errors.Is(err, netlink.ErrDumpInterrupted) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return list, err
}

// links reads the interfaces of a recorded tree.
func (f FS) links() ([]link, error) {
	names, err := f.Names("sys/class/net")
	if err != nil {
		return nil, err
	}
	var links []link
	for _, name := range names {
		if l, ok := f.link(name); ok {
			links = append(links, l)
		}
	}
	resolve(links)
	for i := range links {
		l := &links[i]
		if len(l.lower) == 0 {
			l.lower = f.lower(l.name)
		}
	}
	return links, nil
}

// link reads one interface; "bonding_masters" is a file among the folders.
func (f FS) link(name string) (l link, ok bool) {
	dir := path.Join("sys/class/net", name)
	l.name = name
	var err error
	if l.mtu, err = f.Number(path.Join(dir, "mtu")); err != nil {
		return l, false
	}
	if mac := f.Optional(path.Join(dir, "address")); strings.Trim(mac, "0:") != "" {
		l.mac = mac // the address of lo is all zeros
	}
	l.index, _ = f.Number(path.Join(dir, "ifindex"))
	l.masterIndex, _ = f.Number(path.Join(dir, "master/ifindex"))
	if flags, err := strconv.ParseUint(f.Optional(path.Join(dir, "flags")), 0, 32); err == nil {
		l.up, l.loop = flags&iffUp != 0, flags&iffLoop != 0
	}
	if n, err := f.Number(path.Join(dir, "carrier")); err == nil {
		l.carrier = new(n != 0)
	}
	if n, err := f.Number(path.Join(dir, "tx_queue_len")); err == nil {
		l.txLength = &n
	}
	l.kind = uevent(f.Optional(path.Join(dir, "uevent")), "DEVTYPE")
	if f.Exists(path.Join(dir, "tun_flags")) {
		l.kind = "tun"
	}
	if l.kind == "bridge" {
		l.bridge = &measure.Bridge{
			Ports: []string{}, STP: f.optionalFlag(path.Join(dir, "bridge/stp_state")), VLANs: f.optionalFlag(path.Join(dir, "bridge/vlan_filtering")),
			Netfilter: f.optionalFlag(path.Join(dir, "bridge/nf_call_iptables")),
		}
	}
	l.counters = map[string]uint64{}
	for _, c := range linkCounters() {
		if n, err := f.Number(path.Join(dir, "statistics", c)); c != "" && err == nil && n > 0 {
			l.counters[c] = uint64(n)
		}
	}
	return l, true
}

// optionalFlag reads whether a file holds a value other than 0; nil where it
// cannot be read.
func (f FS) optionalFlag(name string) *bool {
	n, err := f.Number(name)
	if err != nil {
		return nil
	}
	return new(n != 0)
}

// sameLink returns an error where sysfs shows another interface than this
// link. A thread that changed its network namespace without a new /sys sees
// the interfaces of the old one, perhaps with the same names.
func (f FS) sameLink(l link) error {
	dir := path.Join("sys/class/net", l.name)
	if !f.Exists(dir) {
		return errors.New("/sys does not show it: it belongs to another network namespace")
	}
	index, err := f.Number(path.Join(dir, "ifindex"))
	if err != nil {
		return err
	}
	if mac := f.Optional(path.Join(dir, "address")); index != l.index || l.mac != "" && mac != "" && mac != l.mac {
		return errors.New("/sys shows another network namespace")
	}
	return nil
}

// driver returns what sysfs knows about the driver of a device.
func (f FS) driver(device string) driverInfo {
	u := f.Optional(path.Join(device, "uevent"))
	return driverInfo{
		driver:  uevent(u, "DRIVER"),
		bus:     uevent(u, "PCI_SLOT_NAME"),
		version: f.Optional(path.Join(device, "driver/module/version")),
	}
}

// speed returns the link speed by the driver, in bit/s. The file holds Mb/s,
// or -1 where it is not known (Documentation/ABI/testing/sysfs-class-net);
// old kernels print the -1 without a sign. An interface that is down has
// none.
func (f FS) speed(name string) (int64, error) {
	s, err := f.linkSetting(name, "speed")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > 100_000_000 {
		return 0, fmt.Errorf("the driver does not report it (/sys has %q)", s)
	}
	return n * 1_000_000, nil
}

// linkSetting reads a file that only a device with a link has; others refuse
// with EINVAL (net/core/net-sysfs.c, speed_show).
func (f FS) linkSetting(name, file string) (string, error) {
	s, err := f.Text(path.Join("sys/class/net", name, file))
	if errors.Is(err, syscall.EINVAL) {
		err = errors.New("it is down, or has no physical link")
	}
	return s, err
}

// duplex returns "full" or "half".
func (f FS) duplex(name string) (string, error) {
	s, err := f.linkSetting(name, "duplex")
	if err == nil && s != "full" && s != "half" {
		return "", fmt.Errorf("the driver does not report it (/sys has %q)", s)
	}
	return s, err
}

// lookup requests the kernel's route to dst: from src where that is valid,
// and by a device where one is named.
func lookup(dst, src netip.Addr, device string) (netlink.Route, error) {
	o := routeOptions(src, device)
	routes, err := netlink.RouteGetWithOptions(net.IP(dst.AsSlice()), &o)
	if err == nil && len(routes) == 0 {
		err = syscall.ENETUNREACH
	}
	if err != nil {
		return netlink.Route{}, err
	}
	return routes[0], nil
}

// routeOptions returns the options of a lookup for a socket bound to src and
// device.
func routeOptions(src netip.Addr, device string) netlink.RouteGetOptions {
	o := netlink.RouteGetOptions{Oif: device}
	if src.IsValid() {
		o.SrcAddr = net.IP(src.Unmap().AsSlice())
	}
	return o
}
