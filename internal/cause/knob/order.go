package knob

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/measure"
)

// order is the one in which several knobs of a host are set: a ceiling before
// what it bounds, and what resets others before these.
func order() []string {
	return slices.Concat([]string{
		RmemMax, WmemMax, TCPRmem, TCPWmem,
		WindowScaling, SACK, Timestamps, MTUProbing, SlowStartIdle, NoMetricsSave, Backlog, Budget,
		MTU, RXRing, TXRing, Channels, Pause, // a driver may reset the adapter, and with it what follows
	}, Offloads(), []string{
		Coalescing, RSSHash, RSSTable, RPS, XPS, IRQAffinity,
		TxQueueLen, DefaultQdisc, Qdisc, // a qdisc takes its length from the interface when it is made
		Congestion, RouteCongestion, // bbr wants its qdisc
		Governor,
	})
}

// Ordered are the settings of one host in the order in which they are set; to
// undo them the order is the reverse one. Of offloads those that go off come
// first, each before what it needs.
func Ordered(settings []measure.Setting) []measure.Setting {
	ranks := order()
	first, last := slices.Index(ranks, RXChecksum), slices.Index(ranks, LRO)
	rank := func(s measure.Setting) int {
		r := slices.Index(ranks, s.Knob)
		switch {
		case r < 0:
			return 2 * len(ranks) // options of a test, and what is not known
		case r < first:
			return r
		case r <= last && strings.HasPrefix(s.Value, "off"):
			return first + last - r // turned round, and before all that go on
		}
		return r + last - first + 1
	}
	return slices.SortedStableFunc(slices.Values(settings), func(a, b measure.Setting) int { return cmp.Compare(rank(a), rank(b)) })
}
