package tune

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"thru/internal/cause/knob"
)

// linkRows returns the knobs of an interface that rtnetlink sets.
func linkRows(f files) []row {
	return []row{mtuRow(f), lengthRow(), qdiscRow(f)}
}

// linkOf looks up an interface by its primary name, not an alternative one.
func linkOf(iface string) (*netlink.LinkAttrs, netlink.Link, error) {
	l, err := netlink.LinkByName(iface)
	if err != nil {
		var none netlink.LinkNotFoundError
		if errors.As(err, &none) {
			err = fmt.Errorf("%w: %w", err, errNone)
		}
		return nil, nil, err
	}
	if l.Attrs().Name != iface {
		return nil, nil, fmt.Errorf("%.80q is an alternative name of %s: use that", iface, l.Attrs().Name)
	}
	return l.Attrs(), l, nil
}

// running reports whether an interface is up with carrier, and the kernel has
// processed both: IFF_LOWER_UP is the driver's report, IFF_RUNNING the
// result.
func running(iface string) bool {
	const all = unix.IFF_UP | unix.IFF_RUNNING | unix.IFF_LOWER_UP
	a, _, err := linkOf(iface)
	return err == nil && a.RawFlags&all == all
}

// privileged is the state function of a row that allows any value.
func privileged(string, string) (possible, refused string) { return "", privilege() }

// linkRow returns the row of a number of an interface.
func linkRow(id string, of func(*netlink.LinkAttrs) int, set func(netlink.Link, int) error) row {
	return row{
		knob: id, scope: knob.OfInterface, form: amounts(1), states: privileged,
		read: func(iface string) (string, error) {
			a, _, err := linkOf(iface)
			if err != nil {
				return "", err
			}
			return strconv.Itoa(of(a)), nil
		},
		set: func(iface, _, value string) error {
			_, l, err := linkOf(iface)
			if err != nil {
				return err
			}
			n, err := strconv.ParseUint(value, 10, 31)
			if err != nil {
				return err
			}
			return set(l, int(n))
		},
	}
}

// lengthRow returns the row of txqueuelen.
func lengthRow() row {
	return linkRow(knob.TxQueueLen, func(a *netlink.LinkAttrs) int { return a.TxQLen }, netlink.LinkSetTxQLen)
}

// Minimum MTUs, in bytes: what every IPv4 host must accept in one piece (RFC
// 791), and the minimum of IPv6 (RFC 8200), below which the kernel removes
// the IPv6 addresses from an interface and does not give them back.
const leastMTU, leastMTU6 = 576, 1280

// mtuRow returns the row of the MTU.
func mtuRow(f files) row {
	r := linkRow(knob.MTU, func(a *netlink.LinkAttrs) int { return a.MTU }, func(l netlink.Link, mtu int) error {
		if err := persistent(f, l, mtu); err != nil {
			return err
		}
		return netlink.LinkSetMTU(l, mtu)
	})
	r.link = true
	r.states = func(iface, _ string) (possible, refused string) {
		if most := greatestMTU(iface); most > 0 {
			possible = strconv.Itoa(most)
		}
		return possible, privilege()
	}
	return r
}

// greatestMTU returns the largest MTU that the driver accepts (IFLA_MAX_MTU);
// 0: not known.
func greatestMTU(iface string) int {
	const maxMTU = 51 // since Linux 4.19
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(iface)))
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil || len(answers) == 0 || len(answers[0]) < unix.SizeofIfInfomsg {
		return 0
	}
	attrs, err := attributes(answers[0][unix.SizeofIfInfomsg:])
	if v := at(attrs, maxMTU); err == nil && len(v) == 4 {
		return int(nl.NativeEndian().Uint32(v))
	}
	return 0
}

// persistent refuses an MTU that would change other settings too: what the
// kernel removes or moves with it does not come back with the old MTU.
func persistent(f files, l netlink.Link, mtu int) error {
	a, six := l.Attrs(), f.Exists("proc/sys/net/ipv6")
	switch {
	case min(mtu, a.MTU) < leastMTU:
		return fmt.Errorf("%w: IPv4 may fail below %d bytes", errRefused, leastMTU)
	case six && (mtu < leastMTU6) != (a.MTU < leastMTU6):
		return fmt.Errorf("%w: below %d bytes an interface loses its IPv6 addresses", errRefused, leastMTU6)
	}
	if err := uppers(l, mtu); err != nil || !six || mtu < leastMTU6 {
		return err
	}
	conf := path.Join("proc/sys/net/ipv6/conf", a.Name, "mtu")
	if text, err := f.Text(conf); err == nil && text != strconv.Itoa(a.MTU) {
		return fmt.Errorf("%w: it would lose its separate IPv6 MTU (%s in /%s)", errRefused, text, conf)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return routes6(a, mtu)
}

// uppers refuses an MTU that upper interfaces would have to follow: VLANs are
// made smaller with it, but not larger again.
func uppers(below netlink.Link, mtu int) error {
	a := below.Attrs()
	all, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, l := range all {
		u := l.Attrs()
		switch {
		case u.ParentIndex == a.Index && u.NetNsID < 0 && slices.Contains(followers(), l.Type()) && u.MTU > mtu:
			return fmt.Errorf("%w: its upper interface %s would lose its MTU of %d bytes", errRefused, u.Name, u.MTU)
		case u.MasterIndex == a.Index && slices.Contains([]string{"bond", "team"}, below.Type()) && u.MTU != a.MTU:
			return fmt.Errorf("%w: its member %s would lose its MTU of %d bytes", errRefused, u.Name, u.MTU)
		}
	}
	return nil
}

// followers lists the kinds of interfaces with one lower interface.
func followers() []string { return []string{"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"} }

// routes6 refuses an MTU with which the kernel would also change that of an
// IPv6 route (net/ipv6/route.c, rt6_mtu_change_route).
func routes6(a *netlink.LinkAttrs, mtu int) error {
	list, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{LinkIndex: a.Index, Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.MTU != 0 && !r.MTULock && r.MTU != a.MTU && r.MTU >= mtu {
			return fmt.Errorf("%w: the route to %v would lose its MTU of %d", errRefused, r.Dst, r.MTU)
		}
	}
	return nil
}

// ownHandle is the handle of disciplines that thru creates ("7475:"). It
// distinguishes them from those of somebody else, which thru never replaces.
const ownHandle = 0x7475 << 16

// discipline is a queueing discipline of an interface.
type discipline struct {
	kind           string
	handle, parent uint32
	below          string // for mq: the discipline of its queues
}

// qdiscRow returns the row of the root discipline. Its value is the name
// alone where the kernel chose the discipline or thru created it without
// options; otherwise name and handle.
func qdiscRow(f files) row {
	return row{
		knob: knob.Qdisc, scope: knob.OfInterface, form: qdiscForm,
		read: func(iface string) (string, error) {
			root, err := rootQdisc(iface)
			return root.text(), err
		},
		set: func(iface, _, value string) error { return setQdisc(f, iface, value) },
		states: func(iface, value string) (string, string) {
			root, err := rootQdisc(iface)
			if err == nil {
				err = replaceable(f, root)
			}
			if err != nil {
				return "", err.Error()
			}
			return privileged(iface, value)
		},
	}
}

// qdiscForm accepts a name, or a name and a handle.
func qdiscForm(value string) (string, error) {
	name, handle, more := strings.Cut(strings.TrimSpace(value), " ")
	if _, err := word(name); err != nil || more && handle == "" {
		return "", fmt.Errorf("%.80q is not a queueing discipline", value)
	}
	if name == "blackhole" || name == "plug" { // it would cut the host off
		return "", fmt.Errorf("%q drops or holds back all traffic", name)
	}
	if !more {
		return name, nil
	}
	return name + " " + handle, nil
}

// text returns the value of a root discipline.
func (d discipline) text() string {
	if d.handle == 0 || d.handle == ownHandle {
		return d.kind
	}
	return fmt.Sprintf("%s %x:", d.kind, d.handle>>16)
}

// rootQdisc returns the root discipline of an interface. For mq with
// disciplines that somebody has set for its queues, the handle is that of the
// first of those.
func rootQdisc(iface string) (discipline, error) {
	a, _, err := linkOf(iface)
	if err != nil {
		return discipline{}, err
	}
	list, err := disciplines(int32(a.Index))
	if err != nil {
		return discipline{}, err
	}
	i := slices.IndexFunc(list, func(d discipline) bool { return d.parent == netlink.HANDLE_ROOT })
	if i < 0 {
		return discipline{}, errNone
	}
	root := list[i]
	for _, d := range list {
		if d.parent == netlink.HANDLE_ROOT || d.parent == netlink.HANDLE_INGRESS {
			continue
		}
		if root.below = d.kind; root.handle == 0 {
			root.handle = d.handle
		}
	}
	return root, nil
}

// disciplines requests the disciplines of an interface.
func disciplines(index int32) ([]discipline, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
	req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: index})
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
	if err != nil {
		return nil, err
	}
	var list []discipline
	for _, b := range answers {
		if len(b) < nl.SizeofTcMsg {
			return nil, errors.New("the kernel's answer is too short")
		}
		m := nl.DeserializeTcMsg(b)
		attrs, err := attributes(b[nl.SizeofTcMsg:])
		if err != nil {
			return nil, err
		}
		if m.Ifindex == index { // the kernel lists those of all interfaces
			list = append(list, discipline{kind: unix.ByteSliceToString(at(attrs, nl.TCA_KIND)), handle: m.Handle, parent: m.Parent})
		}
	}
	return list, nil
}

// replaceable returns an error for a root discipline that would not come back
// once its replacement is removed; the kernel then creates its default anew.
func replaceable(f files, root discipline) error {
	switch {
	case root.handle == ownHandle || root.handle == 0 && root.kind == "noqueue":
		return nil
	case root.handle != 0:
		return fmt.Errorf("%w: %s was configured by someone else", errRefused, root.text())
	case root.kind == "noop":
		return errors.New("the interface is down")
	}
	kind := root.kind
	if kind == "mq" {
		kind = root.below
	}
	if usual, err := f.Text("proc/sys/net/core/default_qdisc"); err == nil && kind != usual {
		return fmt.Errorf("%w: it has %s, but the host's default is now %s", errRefused, kind, usual)
	}
	return nil
}

// setQdisc removes thru's own discipline and creates one, unless the kernel's
// default is wanted.
func setQdisc(f files, iface, value string) error {
	a, _, err := linkOf(iface)
	if err != nil {
		return err
	}
	root, err := rootQdisc(iface)
	if err == nil {
		err = replaceable(f, root)
	}
	if err != nil {
		return err
	}
	q := netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: a.Index, Parent: netlink.HANDLE_ROOT}, QdiscType: value}
	if root.handle == ownHandle {
		if err := netlink.QdiscDel(&q); err != nil {
			return err
		}
		if root, err = rootQdisc(iface); err != nil || root.text() == value {
			return err
		}
	}
	if value == "noqueue" || value == "mq" || value == "noop" {
		return fmt.Errorf("only the kernel assigns %s, and it assigns %s", value, root.text())
	}
	q.Handle = ownHandle
	err = netlink.QdiscReplace(&q)
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("this kernel has no discipline %q: %w", value, err)
	}
	return err
}
