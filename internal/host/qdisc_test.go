package host

import (
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"thru/internal/measure"
)

// recorded returns the kernel's answers about qdiscs by name.
func recorded(t testing.TB) map[string][]byte { return recordedIn(t, "netlink") }

// recordedIn returns answers of the kernel by name, from a file of testdata.
func recordedIn(t testing.TB, file string) map[string][]byte {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", file+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range a.Files {
		b, err := hex.DecodeString(strings.ReplaceAll(string(f.Data), "\n", ""))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		all[f.Name] = b
	}
	return all
}

// attribute builds one attribute of netlink.
func attribute(kind uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

func TestParseQdisc(t *testing.T) {
	rec := recorded(t)
	for name, want := range map[string]qdisc{
		"noqueue":   {kind: "noqueue", index: 1, parent: parentRoot},
		"1-mq":      {kind: "mq", index: 2, handle: 0x10000, parent: parentRoot, backlog: 7294, drops: 2949, overlimits: 3006},
		"2-pfifo":   {kind: "pfifo", index: 2, handle: 0x210000, parent: 0x200001, backlog: 7294, drops: 2949},
		"4-tbf":     {kind: "tbf", index: 2, handle: 0x200000, parent: 0x10002, backlog: 7294, drops: 2949, overlimits: 3006},
		"6-ingress": {kind: "ingress", index: 2, handle: 0xFFFF0000, parent: 0xFFFFFFF1},
	} {
		if got, err := parseQdisc(rec[name]); got != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	head := make([]byte, sizeofTcmsg)
	stats := attribute(tcaStats2, append(attribute(1, make([]byte, 16)...), attribute(tcaStatsQueue, 9, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 6, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0)...)...)
	kind := attribute(tcaKind, []byte("fq_codel\x00")...)
	if got, err := parseQdisc(append(append(head[:sizeofTcmsg:sizeofTcmsg], kind...), stats...)); err != nil || got.kind != "fq_codel" || got.drops != 7 || got.requeues != 6 {
		t.Errorf("longer counters of a kernel to come: %+v, %v", got, err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "half a head": head[:10], "no attributes": head,
		"no kind":     append(head[:sizeofTcmsg:sizeofTcmsg], stats...),
		"no counters": append(head[:sizeofTcmsg:sizeofTcmsg], kind...),
		"too short":   append(append(head[:sizeofTcmsg:sizeofTcmsg], kind...), attribute(tcaStats2, attribute(tcaStatsQueue, 1, 2, 3)...)...),
	} {
		if got, err := parseQdisc(b); err == nil {
			t.Errorf("%s gave %+v", name, got)
		}
	}
}

// Measured on Linux 6.18 with tc(8): every level counts a packet once,
// overlimits are counted only where they happen.
func TestQueueing(t *testing.T) {
	rec := recorded(t)
	var tree []qdisc
	for _, name := range []string{"1-mq", "2-pfifo", "3-tbf", "4-tbf", "5-pfifo", "6-ingress"} {
		q, err := parseQdisc(rec[name])
		if err != nil {
			t.Fatal(err)
		}
		tree = append(tree, q)
	}
	root := func(kind string, drops, overlimits uint64) qdisc {
		return qdisc{kind: kind, handle: 0x10000, parent: parentRoot, drops: drops, overlimits: overlimits}
	}
	for _, c := range []struct {
		name string
		all  []qdisc
		want measure.Qdisc
	}{
		{"mq, recorded", tree, measure.Qdisc{Kind: "mq", Drops: 2949, Overlimits: 3006, Backlog: 7294}},
		{"noqueue", []qdisc{{kind: "noqueue", parent: parentRoot}}, measure.Qdisc{Kind: "noqueue"}},
		{"tbf, its child hidden", []qdisc{root("tbf", 2920, 3025)}, measure.Qdisc{Kind: "tbf", Drops: 2920, Overlimits: 3025}},
		{"htb over tbf over bfifo", []qdisc{root("htb", 2939, 20),
			{kind: "tbf", handle: 0x100000, parent: 0x10010, drops: 2939, overlimits: 2675, backlog: 5},
			{kind: "bfifo", handle: 0x200000, parent: 0x100001, drops: 2939, backlog: 5}},
			measure.Qdisc{Kind: "htb", Drops: 2939, Overlimits: 2695, Backlog: 5}},
		{"default mq, whose children have its handle", []qdisc{
			{kind: "mq", parent: parentRoot, drops: 9, requeues: 5, backlog: 30},
			{kind: "fq_codel", parent: 1, drops: 4, requeues: 2, backlog: 10}, {kind: "fq_codel", parent: 2, drops: 5, requeues: 3, backlog: 20}},
			measure.Qdisc{Kind: "mq", Drops: 9, Requeues: 5, Backlog: 30}},
		{"a root that does not hear of all", []qdisc{root("taprio", 1, 0),
			{kind: "pfifo", parent: 0x10001, drops: 4}, {kind: "pfifo", parent: 0x10002, drops: 5}},
			measure.Qdisc{Kind: "taprio", Drops: 9}},
		{"received packets", []qdisc{root("fq", 3, 0), {kind: "clsact", handle: 0xFFFF0000, parent: 0xFFFFFFF1, drops: 50, overlimits: 7}},
			measure.Qdisc{Kind: "fq", Drops: 3}},
	} {
		got, err := queueing(c.all)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, diff)
		}
	}
	if got, err := queueing([]qdisc{{kind: "ingress", parent: 0xFFFFFFF1}}); err == nil {
		t.Errorf("no root gave %+v", got)
	}
}

func TestParseRxRing(t *testing.T) {
	if got, err := parseRxRing(recorded(t)["link"]); got != 0 || err != nil {
		t.Errorf("recorded veth: %d, %v", got, err)
	}
	link := func(kind string, over, fifo, missed byte) []byte {
		b := make([]byte, sizeofIfinfomsg)
		s := make([]byte, 25*8)
		s[11*8], s[14*8], s[15*8] = over, fifo, missed
		b = append(b, attribute(3, []byte("eth0\x00")...)...)
		b = append(b, attribute(iflaStats64, s...)...)
		if kind != "" {
			b = append(b, attribute(iflaLinkinfo, attribute(iflaInfoKind, append([]byte(kind), 0)...)...)...)
		}
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		want uint64
	}{
		{"missed", link("", 0, 0, 7), 7},
		{"missed and fifo apart", link("", 0, 5, 7), 12},
		{"one event as fifo and as over", link("", 5, 5, 0), 5},
		{"over holds fifo", link("", 9, 5, 1), 10},
		{"bond", link("bond", 1, 2, 3), 5},
	} {
		if got, err := parseRxRing(c.b); got != c.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "no counters": make([]byte, sizeofIfinfomsg), "packets out of order": link("gre", 0, 5, 0), "vlan": link("vlan", 0, 0, 0),
		"short counters": append(make([]byte, sizeofIfinfomsg), attribute(iflaStats64, make([]byte, 15*8)...)...),
	} {
		if got, err := parseRxRing(b); err == nil {
			t.Errorf("%s gave %d", name, got)
		}
	}
}

func TestSpanOfQueues(t *testing.T) {
	at := func(kind string, drops, ring, oob uint64) Snapshot {
		return Snapshot{
			Qdisc: &measure.Qdisc{Kind: kind, Drops: drops, Overlimits: 2 * drops, Backlog: drops + 1},
			NIC:   &measure.NICSpan{Name: "eth0", RxRing: &ring, Driver: map[string]uint64{"Rx Queue#1 pkts rx OOB": oob}},
		}
	}
	s := Span(at("tbf", 10, 4, 100), at("tbf", 15, 6, 130), at("", 0, 0, 0).Taken)
	if diff := cmp.Diff(&measure.Qdisc{Kind: "tbf", Drops: 5, Overlimits: 10, Backlog: 16}, s.Qdisc); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if show(s.NIC.RxRing) != uint64(32) || len(s.Missing) != 0 {
		t.Errorf("ring %v, missing %v; want 2 of the kernel and 30 of the driver", show(s.NIC.RxRing), s.Missing)
	}
	s = Span(at("tbf", 10, 4, 0), at("fq", 15, 3, 0), at("", 0, 0, 0).Taken)
	if s.Qdisc != nil || s.NIC == nil || s.NIC.RxRing != nil || !noted(s.Missing, "qdisc") || !noted(s.Missing, "interface.rx_ring_drops") {
		t.Errorf("a discipline replaced, a ring reset: %+v", s)
	}
	s = Span(at("fq", 10, 4, 0), at("fq", 9, 4, 0), at("", 0, 0, 0).Taken)
	if s.Qdisc != nil || !noted(s.Missing, "qdisc.drops_packets") {
		t.Errorf("a discipline made anew: %+v", s)
	}
}

func FuzzNetlink(f *testing.F) {
	for _, b := range recorded(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := parseQdisc(b); err == nil {
			if q.kind == "" {
				t.Error("a discipline without kind")
			}
			if sum, err := queueing([]qdisc{q}); err == nil && (sum.Kind != q.kind || sum.Drops != q.drops) {
				t.Errorf("%+v became %+v", q, sum)
			}
		}
		_, _ = parseRxRing(b)
	})
}
