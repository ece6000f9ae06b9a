package stat

import (
	"math"

	"thru/internal/measure"
)

// The counters of a host over the measured time. A counter that was not read counts as zero here; unseen reports
// which.

// bounded64 returns a kernel's counter as a signed number.
func bounded64(n uint64) int64 { return int64(min(n, math.MaxInt64/4)) }

func hostOf(e *measure.Evidence) *measure.HostSpan {
	if e == nil {
		return nil
	}
	return e.Host
}

func nicOf(e *measure.Evidence) *measure.NICSpan {
	if h := hostOf(e); h != nil {
		return h.NIC
	}
	return nil
}

// sent and received return the drops and errors of an interface in one direction.
func sent(n *measure.NICSpan) (dropped, errors uint64)     { return n.TxDropped, n.TxErrors }
func received(n *measure.NICSpan) (dropped, errors uint64) { return n.RxDropped, n.RxErrors }

func faceDrops(e *measure.Evidence, direction func(*measure.NICSpan) (uint64, uint64)) int64 {
	n := nicOf(e)
	if n == nil {
		return 0
	}
	dropped, errors := direction(n)
	return bounded64(dropped) + bounded64(errors)
}

func faceName(e *measure.Evidence) string {
	if n := nicOf(e); n != nil && n.Name != "" {
		return " of " + n.Name
	}
	return ""
}

func ringDrops(e *measure.Evidence) int64 {
	if n := nicOf(e); n != nil && n.RxRing != nil {
		return bounded64(*n.RxRing)
	}
	return 0
}

func qdiscDrops(e *measure.Evidence) int64 {
	if h := hostOf(e); h != nil && h.Qdisc != nil {
		return bounded64(h.Qdisc.Drops)
	}
	return 0
}

func qdiscName(e *measure.Evidence) string {
	if h := hostOf(e); h != nil && h.Qdisc != nil && h.Qdisc.Kind != "" {
		return " " + h.Qdisc.Kind
	}
	return ""
}

func backlogDrops(e *measure.Evidence) int64 {
	var n int64
	if h := hostOf(e); h != nil {
		for _, c := range h.Softnet {
			addTo(&n, bounded64(c.Dropped))
		}
	}
	return n
}

// protoSum adds those protocol counters that are known.
func protoSum(e *measure.Evidence, names ...string) int64 {
	var n int64
	for _, name := range names {
		addTo(&n, bounded64(e.Protocol(name).N))
	}
	return n
}

// unseen names the places without a readable counter: loss there is attributed to the path.
func (s *summary) unseen(p pair, places []measure.LossPlace) {
	if len(places) == 0 || !isRest(places[len(places)-1].Place) {
		return
	}
	_, socketKnown := socketDrops(p.receiver)
	from, to := hostOf(p.sender), hostOf(p.receiver)
	for _, c := range []struct {
		place, side, fact string
		seen              bool
	}{
		{measure.LossSender, senderSide, "host.protocol", from != nil && from.Proto != nil},
		{measure.LossQdisc, senderSide, "host.qdisc", from != nil && from.Qdisc != nil},
		{measure.LossSendNIC, senderSide, "host.interface", nicOf(p.sender) != nil},
		{measure.LossRing, receiverSide, "host.interface.rx_ring_drops", nicOf(p.receiver) != nil && nicOf(p.receiver).RxRing != nil || s.isVirtual(p.receiver)},
		{measure.LossRecvNIC, receiverSide, "host.interface", nicOf(p.receiver) != nil},
		{measure.LossBacklog, receiverSide, "host.softnet", to != nil && len(to.Softnet) > 0},
		{measure.LossFragment, receiverSide, "host.protocol", to != nil && to.Proto != nil},
		{measure.LossSocket, receiverSide, "host.protocol", socketKnown || to != nil && to.Proto != nil},
	} {
		if !c.seen {
			s.missing("loss at the "+c.place, s.why(c.side, c.fact, "its counter was not read; loss there counts as loss on the path"))
		}
	}
}
