package host

import (
	"encoding/binary"
	"fmt"
	"strings"
)

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
