package host

import (
	"encoding/binary"
	"errors"
	"slices"

	"thru/internal/measure"
)

// qdisc is one queueing discipline.
type qdisc struct {
	kind           string
	index          int32  // interface number
	handle, parent uint32 // major number in the upper, minor in the lower 16 bits (tc(8))

	backlog, drops, requeues, overlimits uint64
}

// Values of rtnetlink (include/uapi/linux/rtnetlink.h, pkt_sched.h, gen_stats.h).
const (
	sizeofTcmsg   = 20
	tcaKind       = 1
	tcaStats2     = 7
	tcaStatsQueue = 3
	parentRoot    = 0xFFFFFFFF
)

// parseQdisc reads one RTM_NEWQDISC: struct tcmsg, then attributes, of which
// TCA_STATS2 holds struct gnet_stats_queue. Its counters have 32 bits.
func parseQdisc(b []byte) (qdisc, error) {
	if len(b) < sizeofTcmsg {
		return qdisc{}, errShort
	}
	u32 := binary.NativeEndian.Uint32
	q := qdisc{index: int32(u32(b[4:])), handle: u32(b[8:]), parent: u32(b[12:])}
	q.kind = cString(attr(b[sizeofTcmsg:], tcaKind))
	s := attr(attr(b[sizeofTcmsg:], tcaStats2), tcaStatsQueue)
	if q.kind == "" || len(s) < 20 {
		return q, errors.New("the kernel reports a queueing discipline without kind or counters")
	}
	// Bytes 0 to 3 are the queue length in packets.
	q.backlog, q.drops, q.requeues, q.overlimits = uint64(u32(s[4:])), uint64(u32(s[8:])), uint64(u32(s[12:])), uint64(u32(s[16:]))
	return q, nil
}

// queueing adds up the counters of all disciplines of one interface, each
// packet once.
//
// Drops and backlog: a classful discipline includes the drops of its
// children, both when they refuse a packet (tbf_enqueue, htb_enqueue and so
// on) and when they drop one later (qdisc_tree_reduce_backlog); mq and mqprio
// show the sum of their children. So the root has the total. Some do not pass
// all drops up (taprio, offloaded disciplines, old kernels): then the sum of
// the root's children is larger and is used.
//
// Overlimits and requeues are counted where they happen. queueing sums them
// over all disciplines but mq and mqprio, which show sums.
//
// Disciplines for received packets (ingress, clsact) are no queues and are
// left out.
//
// A drop is one kernel buffer: with segmentation offload that may be many
// packets on the wire. A packet that the queue refuses also counts as
// Udp.SndbufErrors (Udp6) and Ip.OutDiscards, though the send call succeeds
// (net/ipv4/udp.c, udp_send_skb, without IP_RECVERR). So does a non-blocking
// call that finds the socket buffer full (udp_sendmsg, SOCK_NOSPACE), where
// no packet is lost: those two counters do not measure loss.
func queueing(all []qdisc) (measure.Qdisc, error) {
	var sum measure.Qdisc
	var root *qdisc
	for i := range all {
		if all[i].parent == parentRoot {
			root = &all[i]
		}
	}
	if root == nil {
		return sum, errors.New("the kernel reports no root queueing discipline: the interface may be down")
	}
	var drops, backlog uint64 // sums over the root's children
	for _, q := range all {
		if q.kind == "ingress" || q.kind == "clsact" {
			continue
		}
		if q.parent != parentRoot && q.parent>>16 == root.handle>>16 {
			drops, backlog = drops+q.drops, backlog+q.backlog
		}
		if q.kind != "mq" && q.kind != "mqprio" {
			sum.Overlimits += q.overlimits
			sum.Requeues += q.requeues
		}
	}
	sum.Kind, sum.Drops, sum.Backlog = root.kind, max(root.drops, drops), max(root.backlog, backlog)
	return sum, nil
}

// kindsBelow returns the kinds of discipline below the root of an interface,
// in order and each once.
func kindsBelow(all []qdisc, index int32) []string {
	root := -1
	for i, q := range all {
		if q.index == index && q.parent == parentRoot {
			root = i
		}
	}
	var kinds []string
	for i, q := range all {
		if root >= 0 && i != root && q.index == index && q.parent>>16 == all[root].handle>>16 && !slices.Contains(kinds, q.kind) {
			kinds = append(kinds, q.kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}
