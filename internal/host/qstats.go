package host

import (
	"encoding/binary"
	"errors"
	"fmt"

	"thru/internal/measure"
)

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
