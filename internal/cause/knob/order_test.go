package knob

import (
	"slices"
	"testing"

	"thru/internal/measure"
)

// TestOrder: every knob of a host has a place in the order.
func TestOrder(t *testing.T) {
	ranks := order()
	for _, k := range Table() {
		if n := len(slices.DeleteFunc(slices.Clone(ranks), func(id string) bool { return id != k.ID })); k.Scope != OfTest && n != 1 || k.Scope == OfTest && n != 0 {
			t.Errorf("%s stands %d times in the order", k.ID, n)
		}
	}
}

func TestOrdered(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings [][2]string // knob, value
		want     []string
	}{
		{"ceilings first", [][2]string{{TCPRmem, "4096 131072 75000000"}, {RmemMax, "75000000"}}, []string{RmemMax, TCPRmem}},
		{"bbr after its qdisc", [][2]string{{Congestion, "bbr"}, {Qdisc, "fq"}}, []string{Qdisc, Congestion}},
		{"what others need goes on first", [][2]string{{TSO, "on"}, {ScatterGather, "on"}, {TXChecksum, "on"}}, []string{TXChecksum, ScatterGather, TSO}},
		{"and off last", [][2]string{{TXChecksum, "off"}, {ScatterGather, "off"}, {TSO, "off tx-tcp-segmentation=off"}}, []string{TSO, ScatterGather, TXChecksum}},
		{"off before on", [][2]string{{GRO, "on"}, {LRO, "off"}}, []string{LRO, GRO}},
		{"queues before what is of each queue", [][2]string{{RPS, "rx-0 3"}, {RSSTable, "0 1"}, {Channels, "combined 2"}, {MTU, "9000"}}, []string{MTU, Channels, RSSTable, RPS}},
		{"the length before the qdisc", [][2]string{{Qdisc, "pfifo_fast"}, {TxQueueLen, "2000"}}, []string{TxQueueLen, Qdisc}},
		{"options of a test last", [][2]string{{Streams, "4"}, {"no-such-knob", "1"}, {Governor, "performance"}}, []string{Governor, Streams, "no-such-knob"}},
	} {
		var list []measure.Setting
		for _, s := range c.settings {
			list = append(list, measure.Setting{Knob: s[0], Value: s[1]})
		}
		before := slices.Clone(list)
		var got []string
		for _, s := range Ordered(list) {
			got = append(got, s.Knob)
		}
		if !slices.Equal(got, c.want) || !slices.Equal(list, before) {
			t.Errorf("%s: %q, want %q; the list given is %+v", c.name, got, c.want, list)
		}
	}
}
