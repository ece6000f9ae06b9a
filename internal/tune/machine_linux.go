package tune

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/host"
	"thru/internal/knob"
)

// New returns this machine. It reads and sets what the network namespace of the
// calling thread has, by files, by the driver's ioctls (ethtool) and by
// rtnetlink. It keeps nothing open.
func New() Machine {
	h, f := host.New(), files{"/"}
	rows := fileRows(f, h, h.OwnSysfs)
	rows = append(rows, driverRows(host.Ethtool, privilege)...)
	rows = append(rows, linkRows(f)...)
	rows = append(rows, routeRow(f))
	for i, r := range rows {
		if r.knob == knob.Channels {
			rows[i].set = keepMasks(rows, r.set)
		}
		if r.link {
			rows[i].set = awaited(rows[i].set)
		}
	}
	return &machine{rows}
}

// privilege is why this process cannot change interfaces; empty: it can.
func privilege() string {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil || data[0].Effective&(1<<unix.CAP_NET_ADMIN) == 0 {
		return needsRoot
	}
	return ""
}

// carrierWait bounds how long a link may take to come back after a change: some
// negotiate their rate anew.
const carrierWait = 10 * time.Second

// awaited is a change after which a link that was there is waited for.
func awaited(set func(iface, before, value string) error) func(iface, before, value string) error {
	return func(iface, before, value string) error {
		had := running(iface)
		if err := set(iface, before, value); err != nil || !had {
			return err
		}
		for end := time.Now().Add(carrierWait); !running(iface); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				return fmt.Errorf("the link has not come back within %v", carrierWait)
			}
		}
		return nil
	}
}

// keepMasks refuses a change of the queues that would lose which CPUs somebody
// has given to them: a queue that goes takes them along, and does not bring them
// back. Drivers give transmit queues to CPUs by themselves, and again when the
// number changes; software does not.
func keepMasks(rows []row, set func(iface, before, value string) error) func(iface, before, value string) error {
	read := func(id, iface string) string {
		i := slices.IndexFunc(rows, func(r row) bool { return r.knob == id })
		value, err := rows[i].read(iface)
		if err != nil {
			return ""
		}
		return value
	}
	return func(iface, before, value string) error {
		masks := map[string]string{knob.RPS: read(knob.RPS, iface)}
		if read(knob.IRQAffinity, iface) == "" {
			masks[knob.XPS] = read(knob.XPS, iface)
		}
		rx, tx := queuesOf(before, value)
		for id, value := range masks {
			list, _ := pairs(value)
			keep := map[string]int{knob.RPS: rx, knob.XPS: tx}[id]
			for i, p := range list {
				if i >= keep && p.value != "0" {
					return fmt.Errorf("%w: queue %s would lose its CPUs (%s %s)", errRefused, p.name, id, p.value)
				}
			}
		}
		return set(iface, before, value)
	}
}

// queuesOf counts the queues of a value of knob.Channels, which may leave out what
// stays as before.
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

// errRefused is of a change that could not be undone exactly, and is not made.
var errRefused = errors.New("it could not be undone exactly")
