package host

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// queueCount is one counter of one queue.
type queueCount struct {
	direction string // "rx" or "tx"
	queue     int
	what      string // "packets", "bytes" or "drops"
}

// queueNames reads the names that drivers give to the counters of a queue
// (`ethtool -S`). Counters of XDP are left out: they count programs, not
// packets of the wire.
type queueNames struct{ forms []*regexp.Regexp }

// driversQueueNames knows, by the drivers that have them:
//
//	rx_queue_0_packets                     ixgbe, igb, ice, hv_netvsc, virtio_net
//	rx0_packets, rx_0_packets, rxq0_packets mlx5, mlx4, virtio_net; mana; hns3
//	rx-0.packets, rx-0.rx_packets          i40e, iavf, older ice, sfc
//	queue_0_rx_cnt                         ena
//	[0]: rx_ucast_packets                  bnxt, bnx2x (and mcast, bcast)
//	rx_packets[0]                          gve
//	rvec_0_rx_pkts                         nfp
//	Rx Queue#0 ucast pkts rx               vmxnet3 (see driverCounters)
var driversQueueNames = unit.Once(func() queueNames {
	const what = `(?P<what>packets|pkts|cnt|frames|bytes|drops?|dropped|discards)`
	const direction, queue = `(?P<dir>rx|tx)`, `(?P<queue>\d{1,5})`
	var q queueNames
	for _, form := range []string{
		direction + `_queue_` + queue + `_` + what,
		direction + `(?:q|_)?` + queue + `_` + what,
		direction + `-` + queue + `\.(?:rx_|tx_)?` + what,
		`queue_` + queue + `_` + direction + `_` + what,
		`\[` + queue + `\]: ` + direction + `_(?:[umb]cast_)?` + what,
		direction + `_` + what + `\[` + queue + `\]`,
		`rvec_` + queue + `_` + direction + `_` + what,
		`(?P<dir>Rx|Tx) Queue#` + queue + ` (?:[umb]cast )?(?P<what>pkts|bytes) (?:rx|tx)`,
		`(?P<dir>Rx|Tx) Queue#` + queue + ` (?P<what>pkts rx OOB|pkts tx discard|drv dropped (?:rx|tx) total)`,
	} {
		q.forms = append(q.forms, regexp.MustCompile(`^`+form+`$`))
	}
	return q
})

// read returns what a counter counts, and whether it belongs to a queue.
func (q queueNames) read(name string) (queueCount, bool) {
	for _, form := range q.forms {
		m := form.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[form.SubexpIndex("queue")])
		if err != nil {
			continue
		}
		c := queueCount{direction: strings.ToLower(m[form.SubexpIndex("dir")]), queue: n, what: "drops"}
		switch m[form.SubexpIndex("what")] {
		case "packets", "pkts", "cnt", "frames":
			c.what = "packets"
		case "bytes":
			c.what = "bytes"
		}
		return c, true
	}
	return queueCount{}, false
}

// queueCounters returns the counters of queues, receive queues first, each in
// order. It leaves out queues without a packet counter.
func queueCounters(driver map[string]uint64) []measure.QueueCounter {
	return gatherQueues(driver, driversQueueNames().read)
}

// gatherQueues is queueCounters with a function that parses the name of a
// counter.
func gatherQueues(driver map[string]uint64, read func(string) (queueCount, bool)) []measure.QueueCounter {
	all, counted := map[string]*measure.QueueCounter{}, map[string]bool{}
	for name, n := range driver {
		c, ok := read(name)
		if !ok {
			continue
		}
		q := fmt.Sprintf("%s-%d", c.direction, c.queue)
		if all[q] == nil {
			all[q] = &measure.QueueCounter{Queue: q}
		}
		switch c.what {
		case "packets":
			counted[q] = true
			all[q].Packets += n
		case "bytes":
			add(&all[q].Bytes, n)
		default:
			add(&all[q].Drops, n)
		}
	}
	var list []measure.QueueCounter
	for q := range counted {
		list = append(list, *all[q])
	}
	slices.SortFunc(list, byQueue)
	return list
}

// byQueue orders counters as queueCounters does.
func byQueue(a, b measure.QueueCounter) int {
	number := func(c measure.QueueCounter) int { n, _ := strconv.Atoi(c.Queue[3:]); return n }
	return cmp.Or(strings.Compare(a.Queue[:2], b.Queue[:2]), number(a)-number(b))
}

// add adds n to a number that may be nil.
func add(to **uint64, n uint64) {
	if *to == nil {
		*to = new(uint64)
	}
	**to += n
}

// driverErrors returns the driver counters that mean errors or drops and are
// not zero. It leaves out drops by programs (XDP), errors that forward error
// correction fixed, and values that are no counts (fcoe_last_error).
func driverErrors(driver map[string]uint64) map[string]uint64 {
	all := map[string]uint64{}
	for name, n := range driver {
		if n != 0 && badCounter().MatchString(name) && !goodCounter().MatchString(name) {
			all[name] = n
		}
	}
	return all
}

// badCounter matches names of counters of errors and drops, goodCounter those of them that are no such.
var (
	badCounter  = unit.Pattern(`(?i)err|drop|discard|fail|crc|miss(ed|es)|no_?buf|no_mem|no_space|oob|overrun|overflow|fifo|out_of|ring full|runt|oversize|undersize|jabber|fragments|time_?out|exceeded|collision`)
	goodCounter = unit.Pattern(`(?i)xdp|corrected|err_lane|last_error|pause`)
)

// QueueReader reads the packet counters of each queue of one interface
// repeatedly. It parses the names of the driver's counters once, which costs
// more than reading the values. It is for one goroutine.
type QueueReader struct {
	host  *Host
	iface string
	names queueNames
	known map[string]queueCount // the names of queue counters
	other map[string]bool
}

// Queues returns a reader of an interface's queues.
func (h *Host) Queues(iface string) *QueueReader {
	return &QueueReader{host: h, iface: iface, names: driversQueueNames(), known: map[string]queueCount{}, other: map[string]bool{}}
}

// Read returns the counters of all queues since the driver was loaded,
// receive queues first; an error where the driver has none.
func (r *QueueReader) Read() ([]measure.QueueCounter, error) {
	if r.host.kernel == nil {
		return nil, errors.New("only the running kernel reports them")
	}
	driver, err := r.host.kernel.counters(r.iface)
	if err != nil {
		return nil, err
	}
	all := gatherQueues(driver, r.read)
	if len(all) == 0 {
		return nil, errors.New("its driver has no such counters")
	}
	return all, nil
}

// read is queueNames.read with a cache.
func (r *QueueReader) read(name string) (queueCount, bool) {
	if c, ok := r.known[name]; ok || r.other[name] {
		return c, ok
	}
	c, ok := r.names.read(name)
	if ok {
		r.known[name] = c
	} else {
		r.other[name] = true
	}
	return c, ok
}

// Values of the netlink family "netdev" (include/uapi/linux/netdev.h): the
// kernel's own queue counters, since Linux 6.9, for drivers that support them
// (virtio_net, gve, bnxt).
const (
	netdevFamily    = "netdev"
	cmdQstatsGet    = 12
	qstatsIfindex   = 1
	qstatsQueueType = 2
	qstatsQueueID   = 3
	qstatsScope     = 4
	qstatsRxPackets = 8
	qstatsRxBytes   = 9
	qstatsTxPackets = 10
	qstatsTxBytes   = 11
	qstatsRxDrops   = 13
	qstatsTxDrops   = 24
	scopeQueue      = 1
	sizeofGenl      = 4
)

// parseQstats reads one answer to NETDEV_CMD_QSTATS_GET: the counters of one
// queue, after struct genlmsghdr.
func parseQstats(b []byte) (c measure.QueueCounter, err error) {
	if len(b) < sizeofGenl {
		return c, errShort
	}
	b = b[sizeofGenl:]
	id, kind := attr(b, qstatsQueueID), attr(b, qstatsQueueType)
	if len(id) < 4 || len(kind) < 4 {
		return c, errShort
	}
	direction, packets, bytes, drops := "rx", uint16(qstatsRxPackets), uint16(qstatsRxBytes), uint16(qstatsRxDrops)
	if number32(kind) == 1 {
		direction, packets, bytes, drops = "tx", qstatsTxPackets, qstatsTxBytes, qstatsTxDrops
	}
	c.Queue = fmt.Sprintf("%s-%d", direction, number32(id))
	n := unsigned(attr(b, packets))
	if n == nil {
		return c, errors.New("the kernel has no packet counters of " + c.Queue)
	}
	c.Packets, c.Bytes, c.Drops = *n, unsigned(attr(b, bytes)), unsigned(attr(b, drops))
	return c, nil
}

// unsigned returns a number of 4 or 8 bytes (netlink's "uint"); nil where
// there is none.
func unsigned(b []byte) *uint64 {
	switch len(b) {
	case 4:
		return new(uint64(binary.NativeEndian.Uint32(b)))
	case 8:
		return new(binary.NativeEndian.Uint64(b))
	}
	return nil
}

// parseRxRing reads from one RTM_NEWLINK how many received packets were
// dropped since the receive ring was full, by struct rtnl_link_stats64.
//
// rx_missed_errors are packets for which no buffer was free. rx_over_errors
// and rx_fifo_errors "were used interchangeably" (if_link.h), and some
// drivers raise both for one event: the larger counts. Of software interfaces
// only bond, team and veth report ring drops: bond and team add up the
// counters of their members, and veth has no ring that can overflow. Others
// use the field for other counts (GRE: packets out of order), or their ring
// is that of the lower interface.
func parseRxRing(b []byte) (uint64, error) {
	if len(b) < sizeofIfinfomsg {
		return 0, errShort
	}
	kind := cString(attr(attr(b[sizeofIfinfomsg:], iflaLinkinfo), iflaInfoKind))
	switch kind {
	case "", "bond", "team", "veth":
	default:
		return 0, fmt.Errorf("a %.20s has no receive ring", kind)
	}
	s := attr(b[sizeofIfinfomsg:], iflaStats64)
	const over, fifo, missed = 11, 14, 15 // field numbers, 8 bytes each
	if len(s) < 8*(missed+1) {
		return 0, fmt.Errorf("the kernel reports no rx_missed_errors (IFLA_STATS64, since Linux 2.6.35)")
	}
	field := func(n int) uint64 { return binary.NativeEndian.Uint64(s[8*n:]) }
	return field(missed) + max(field(over), field(fifo)), nil
}

// driverRing returns the packets that vmxnet3 dropped for want of buffers,
// which no common counter includes (drivers/net/vmxnet3/vmxnet3_ethtool.c,
// pktsRxOutOfBuf).
func driverRing(driver map[string]uint64) uint64 {
	var sum uint64
	for name, n := range driver {
		if strings.HasSuffix(name, "pkts rx OOB") {
			sum += n
		}
	}
	return sum
}
