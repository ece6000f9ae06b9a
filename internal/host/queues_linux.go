package host

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"thru/internal/measure"
	"thru/internal/unit"
)

// maxQueues limits how many queues are read; a NIC may have thousands, and
// the first ones are representative.
const maxQueues = 512

// describeQueues counts the queues, and reads the CPUs that software spreads
// their packets to. It skips the latter for veth and tap, of which a host may
// have a thousand.
func (u *subject) describeQueues() {
	if u.up {
		c, err := ask(u, kernel.channels)
		switch {
		case err == nil:
			u.out.Channels = &c
		case u.hardware() || errors.Is(err, syscall.ENODEV):
			u.miss("channels", err)
		}
	}
	many := paired(u.kind) || u.kind == "tun"
	if c := u.out.Channels; c != nil && (many || u.sysfs != nil) {
		u.out.Queues, u.out.TxQueues = new(c.RX+c.Combined), new(c.TX+c.Combined)
	} else {
		u.countQueues()
	}
	switch {
	case many || !u.up:
	case u.sysfs == nil:
		u.describeSteering()
	case u.hardware():
		u.miss("rps", u.sysfs)
		u.miss("xps", u.sysfs)
	}
}

// countQueues counts the folders of the queues in use.
func (u *subject) countQueues() {
	if u.sysfs != nil {
		u.miss("rx_queues", u.sysfs)
		return
	}
	names, err := u.fs.Names(path.Join("sys/class/net", u.name, "queues"))
	rx, tx := 0, 0
	for _, q := range names {
		switch {
		case strings.HasPrefix(q, "rx-"):
			rx++
		case strings.HasPrefix(q, "tx-"):
			tx++
		}
	}
	if err == nil && rx == 0 {
		err = errors.New("the kernel shows no queues") // built without CONFIG_SYSFS or RPS
	}
	if err != nil {
		u.miss("rx_queues", err)
		return
	}
	u.out.Queues = &rx
	if tx > 0 {
		u.out.TxQueues = &tx
	}
}

// describeSteering reads RPS, XPS and RFS where they are set
// (Documentation/networking/scaling.rst).
func (u *subject) describeSteering() {
	dir := path.Join("sys/class/net", u.name, "queues")
	flows, known := 0, false
	for i := range min(measure.Value(u.out.Queues), maxQueues) {
		q := "rx-" + strconv.Itoa(i)
		u.steer("rps", &u.out.RPS, q, path.Join(dir, q, "rps_cpus"))
		if n, err := u.fs.Number(path.Join(dir, q, "rps_flow_cnt")); err == nil && n >= 0 {
			flows, known = flows+n, true
		}
	}
	if known && (flows > 0 || u.hardware()) {
		u.out.RFS = &flows
	}
	tx := measure.Value(u.out.TxQueues)
	for i := range min(tx, maxQueues) {
		if tx == 1 {
			break // a single queue: no choice
		}
		q := "tx-" + strconv.Itoa(i)
		u.steer("xps", &u.out.XPS, q, path.Join(dir, q, "xps_cpus"))
	}
	if n := max(measure.Value(u.out.Queues), tx); n > maxQueues {
		u.miss("queues", fmt.Errorf("only the first %d of %d were read", maxQueues, n))
	}
}

// steer reads the CPUs of one queue, if any are set. A kernel without the
// feature has no such file, and a single queue has no XPS.
func (u *subject) steer(key string, to *map[string]string, queue, file string) {
	s, err := u.fs.Text(file)
	if err != nil {
		return
	}
	cpus, err := parseCPUMask(s)
	if err != nil {
		u.miss(key, fmt.Errorf("/%s: %w", file, err))
		return
	}
	if len(cpus) == 0 {
		return
	}
	measure.Put(to, queue, unit.List(cpus))
}

// describeDevice reads the facts that only a device has.
func (u *subject) describeDevice() {
	u.out.Rings = kept[measure.Rings](u, "rings")(ask(u, kernel.rings))
	u.out.Coalesce = kept[measure.Coalesce](u, "coalescing")(ask(u, kernel.coalescing))
	if u.vnic == "" {
		u.out.Pause = kept[measure.Pause](u, "pause")(ask(u, kernel.pause))
	}
	u.out.RSS = kept[measure.RSS](u, "rss")(ask(u, kernel.rss))
}

// describeCounters reads the packets and errors of each queue. Where the
// driver's own counters have no queues, it reads the kernel's.
func (u *subject) describeCounters() {
	c, err := ask(u, kernel.counters)
	if err == nil {
		u.out.Counters = queueCounters(c)
		for name, n := range driverErrors(c) {
			if u.out.Errors == nil {
				u.out.Errors = map[string]uint64{}
			}
			if _, taken := u.out.Errors[name]; !taken {
				u.out.Errors[name] = n
			}
		}
	}
	if len(u.out.Counters) == 0 && (err == nil || errors.Is(err, errUnknown)) {
		u.out.Counters, err = ask(u, func(k kernel, _ string) ([]measure.QueueCounter, error) { return k.queueStats(u.index) })
	}
	if err != nil {
		u.miss("queue_counters", err)
	}
	u.out.Counters = u.bounded(u.out.Counters)
}

// bounded limits the list to the first queues of each direction.
func (u *subject) bounded(all []measure.QueueCounter) []measure.QueueCounter {
	seen := map[string]int{}
	list := slices.DeleteFunc(all, func(c measure.QueueCounter) bool {
		seen[c.Queue[:2]]++
		return seen[c.Queue[:2]] > maxQueues
	})
	if n := max(seen["rx"], seen["tx"]); n > maxQueues {
		u.miss("queue_counters.*", fmt.Errorf("only the first %d of %d were read", maxQueues, n))
	}
	return list
}
