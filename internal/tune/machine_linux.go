package tune

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"thru/internal/cause/knob"
	"thru/internal/host"
	"thru/internal/host/tree"
)

// New returns this machine. It reads and sets the network namespace of the
// calling thread, by files, by the driver's ioctls (ethtool) and by
// rtnetlink. It keeps nothing open.
func New() Machine {
	h, f := host.New(), files{tree.Tree{Root: "/"}}
	rows := fileRows(f, h, h.OwnSysfs)
	rows = append(rows, driverRows(host.Ethtool, privilege)...)
	rows = append(rows, linkRows(f)...)
	rows = append(rows, routeRow(f))
	for i, r := range rows {
		switch r.knob {
		case knob.Channels:
			rows[i].set = kept(f, h.OwnSysfs, r.set)
		case knob.LRO:
			rows[i].set = single(r.set)
		}
		if r.link {
			rows[i].set = awaited(rows[i].set)
		}
	}
	return &machine{rows, func(iface string) error { _, _, err := linkOf(iface); return err }}
}

// privilege returns why this process cannot change interfaces; empty where it
// can.
func privilege() string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil || data[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0 {
		return needsRoot
	}
	return ""
}

// carrierWait limits the wait for a link to come back after a change: some
// negotiate their rate anew.
const carrierWait = 10 * time.Second

// awaited makes a change and waits for the link to come back, if it was up.
func awaited(set func(iface, before, value string) error) func(iface, before, value string) error {
	return func(iface, before, value string) error {
		had := running(iface)
		if err := set(iface, before, value); err != nil || !had {
			return err
		}
		for end := time.Now().Add(carrierWait); !running(iface); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				return fmt.Errorf("the link is still down after %v", carrierWait)
			}
		}
		return nil
	}
}

// kept refuses a change of the number of queues that would lose what somebody
// has set for a queue: a queue that goes loses its settings for good. Drivers
// assign their transmit queues to CPUs by themselves, and again when the
// number changes; software does not. Where /sys shows another network
// namespace, kept cannot check.
func kept(f files, own func(string) error, set func(iface, before, value string) error) func(iface, before, value string) error {
	return func(iface, before, value string) error {
		if plainName(iface, own) != nil {
			return set(iface, before, value)
		}
		dir := path.Join("sys/class/net", iface)
		ofTx := []string{"xps_rxqs", "tx_maxrate"}
		if !f.Exists(path.Join(dir, "device")) {
			ofTx = append(ofTx, "xps_cpus")
		}
		rx, tx := queuesOf(before, value)
		err := f.unset(path.Join(dir, "queues"), "rx-", rx, "rps_cpus", "rps_flow_cnt")
		if err == nil {
			err = f.unset(path.Join(dir, "queues"), "tx-", tx, ofTx...)
		}
		if err != nil {
			return err
		}
		return set(iface, before, value)
	}
}

// unset returns an error where a queue from number from on has a value in
// these files.
func (f files) unset(dir, prefix string, from int, names ...string) error {
	queues, err := f.numbered(dir, prefix)
	if err != nil {
		return err
	}
	for _, q := range queues[min(from, len(queues)):] {
		for _, name := range names {
			if text, err := f.Text(path.Join(dir, q, name)); err == nil && strings.Trim(text, "0,") != "" {
				return fmt.Errorf("%w: queue %s would lose its %s (%s)", errRefused, q, name, text)
			}
		}
	}
	return nil
}

// single refuses a change of an interface with lower interfaces: where it
// loses a feature, the kernel takes the feature from those too, and does not
// give it back (net/core/dev.c, netdev_sync_lower_features).
func single(set func(iface, before, value string) error) func(iface, before, value string) error {
	return func(iface, before, value string) error {
		a, l, err := linkOf(iface)
		if err != nil {
			return err
		}
		all, err := netlink.LinkList()
		if err != nil {
			return err
		}
		below := slices.Contains(followers(), l.Type())
		for _, o := range all {
			below = below || o.Attrs().MasterIndex == a.Index
		}
		if below {
			return fmt.Errorf("%w: its lower interfaces would lose the feature too", errRefused)
		}
		return set(iface, before, value)
	}
}

// queuesOf returns the numbers of queues in a value of knob.Channels, which
// may leave out unchanged ones.
func queuesOf(before, value string) (rx, tx int) {
	n := map[string]int{}
	for _, text := range []string{before, value} {
		list, _ := pairs(text)
		for _, p := range list {
			n[p.name], _ = strconv.Atoi(p.value)
		}
	}
	return n["rx"] + n["combined"], n["tx"] + n["combined"]
}

// errRefused means a change that could not be undone exactly, and is not
// made.
var errRefused = errors.New("thru could not revert it exactly")
