package host

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
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

// newQueueNames knows, by the drivers that have them:
//
//	rx_queue_0_packets                     ixgbe, igb, ice, hv_netvsc, virtio_net
//	rx0_packets, rx_0_packets, rxq0_packets mlx5, mlx4, virtio_net; mana; hns3
//	rx-0.packets, rx-0.rx_packets          i40e, iavf, older ice, sfc
//	queue_0_rx_cnt                         ena
//	[0]: rx_ucast_packets                  bnxt, bnx2x (and mcast, bcast)
//	rx_packets[0]                          gve
//	rvec_0_rx_pkts                         nfp
//	Rx Queue#0 ucast pkts rx               vmxnet3 (see driverCounters)
func newQueueNames() queueNames {
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
}

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
	return gatherQueues(driver, newQueueNames().read)
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
	bad := regexp.MustCompile(`(?i)err|drop|discard|fail|crc|miss(ed|es)|no_?buf|no_mem|no_space|oob|overrun|overflow|fifo|out_of|ring full|runt|oversize|undersize|jabber|fragments|time_?out|exceeded|collision`)
	good := regexp.MustCompile(`(?i)xdp|corrected|err_lane|last_error|pause`)
	all := map[string]uint64{}
	for name, n := range driver {
		if n != 0 && bad.MatchString(name) && !good.MatchString(name) {
			all[name] = n
		}
	}
	return all
}
