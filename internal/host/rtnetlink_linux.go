package host

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"thru/internal/measure"
)

// running is the kernel that this program runs on. It asks drivers by ethtool
// and the rest by rtnetlink, which answers for the calling thread's network
// namespace (rtnetlink(7)). Each request opens and closes a socket.
type running struct{ ethtool }

func runningKernel() kernel { return running{} }

// rxRing requests the statistics of one interface. It leaves out the virtual
// functions of a NIC, which take long to list, by not asking for them
// (IFLA_EXT_MASK).
func (running) rxRing(name string) (uint64, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return 0, fmt.Errorf("host: reading the kernel's counters of %s: %w", name, err)
	}
	if len(answers) == 0 {
		return 0, errors.New("the kernel does not answer")
	}
	return parseRxRing(answers[0])
}

// qdisc adds up the queueing disciplines of one interface.
func (r running) qdisc(name string) (measure.Qdisc, error) {
	index, err := r.index(name)
	if err != nil {
		return measure.Qdisc{}, err
	}
	own, err := listQdiscs(index)
	if err != nil {
		return measure.Qdisc{}, fmt.Errorf("host: reading the queueing discipline of %s: %w", name, err)
	}
	return queueing(own)
}

// index returns the number of an interface (netdevice(7), SIOCGIFINDEX).
func (r running) index(name string) (index int32, err error) {
	err = withSocket(func(fd int) error {
		i, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, i); err != nil {
			return err
		}
		index = int32(i.Uint32())
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("host: looking up the index of interface %s: %w", name, err)
	}
	return index, nil
}
