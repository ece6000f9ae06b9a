package host

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// parseRxRing reads from one RTM_NEWLINK how many received packets an
// interface had no room for, by struct rtnl_link_stats64.
//
// rx_missed_errors are packets for which no buffer was free. rx_over_errors
// and rx_fifo_errors "were used interchangeably" (if_link.h), and some drivers
// raise both for one event: the larger counts. Of software interfaces only
// bond, team and veth say something of a ring: the first two add up the
// counters of their members, the last has none to overflow. Others count
// other things there (GRE: packets out of order), or their ring is that of
// the interface below.
func parseRxRing(b []byte) (uint64, error) {
	if len(b) < sizeofIfinfomsg {
		return 0, errShort
	}
	kind := cString(attr(attr(b[sizeofIfinfomsg:], iflaLinkinfo), iflaInfoKind))
	switch kind {
	case "", "bond", "team", "veth":
	default:
		return 0, fmt.Errorf("a %.20s has no ring of its own", kind)
	}
	s := attr(b[sizeofIfinfomsg:], iflaStats64)
	const over, fifo, missed = 11, 14, 15 // numbers of the fields, 8 bytes each
	if len(s) < 8*(missed+1) {
		return 0, fmt.Errorf("the kernel shows no rx_missed_errors (IFLA_STATS64, since Linux 2.6.35)")
	}
	field := func(n int) uint64 { return binary.NativeEndian.Uint64(s[8*n:]) }
	return field(missed) + max(field(over), field(fifo)), nil
}

// driverRing is what vmxnet3 lost for want of buffers, which is in none of the
// common counters (drivers/net/vmxnet3/vmxnet3_ethtool.c, pktsRxOutOfBuf).
func driverRing(driver map[string]uint64) uint64 {
	var sum uint64
	for name, n := range driver {
		if strings.HasSuffix(name, "pkts rx OOB") {
			sum += n
		}
	}
	return sum
}
