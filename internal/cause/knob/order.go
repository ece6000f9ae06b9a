package knob

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/measure"
)

// order returns the order in which several knobs of a host are set: a ceiling before what it limits, and a knob
// that resets others before those.
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

// Ordered returns the settings of one host in the order in which they are set; undoing uses the reverse order.
// Offloads to switch off come first, each before its prerequisites.
func Ordered(settings []measure.Setting) []measure.Setting {
	ranks := order()
	first, last := slices.Index(ranks, RXChecksum), slices.Index(ranks, LRO)
	rank := func(s measure.Setting) int {
		r := slices.Index(ranks, s.Knob)
		switch {
		case r < 0:
			return 2 * len(ranks) // options of a test, and unknown knobs
		case r < first:
			return r
		case r <= last && strings.HasPrefix(s.Value, "off"):
			return first + last - r // in reverse, and before all that go on
		}
		return r + last - first + 1
	}
	return slices.SortedStableFunc(slices.Values(settings), func(a, b measure.Setting) int { return cmp.Compare(rank(a), rank(b)) })
}
