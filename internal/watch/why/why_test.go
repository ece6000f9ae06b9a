package why

import (
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/internal/watch/record"
)

var (
	at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ab = record.Pair{From: "a", To: "b"}
)

// path returns a path whose ends have MTU 1500, and which passes less from a to b.
func path(change func(there, back *measure.PathMTU)) *measure.Path {
	p := &measure.Path{From: "a", To: "b"}
	for d, dev := range map[*measure.DirectionFacts]string{&p.Forward: "eth0", &p.Back: "eth1"} {
		d.MTU, d.Route, d.Hops = &measure.PathMTU{Bytes: 1500, Claimed: 1500, Local: true}, &measure.Route{Interface: dev}, new(2)
	}
	p.Forward.MTU.Bytes, p.Forward.MTU.Local = 1400, false
	change(p.Forward.MTU, p.Back.MTU)
	return p
}

// TestSize: a smaller MTU is that of an interface, of a router, or of a device that drops silently.
func TestSize(t *testing.T) {
	smaller := record.Change{Pair: ab, Metric: record.MTU, Before: 1500, After: 1400}
	for _, c := range []struct {
		name          string
		path          *measure.Path
		cause, end    string
		device, words string
	}{
		{"the sender's interface", path(func(m, _ *measure.PathMTU) { m.Claimed, m.Local = 1400, true }), InterfaceMTU, "a", "eth0", "eth0 of a"},
		{"the receiver's interface", path(func(m, back *measure.PathMTU) {
			m.Silent, m.Bytes = true, 1404
			back.Bytes, back.Claimed = 1400, 1400
		}), InterfaceMTU, "b", "eth1", "MTU 1400"},
		{"a router", path(func(m, _ *measure.PathMTU) { m.Router, m.RouterAddr = new(1400), "192.0.2.1" }), HopMTU, "", "", "192.0.2.1 passes packets of at most 1400 bytes"},
		{"a router that the kernel has forgotten", path(func(m, _ *measure.PathMTU) { m.Router = new(1400) }), HopMTU, "", "", "at most 1400"},
		{"no report", path(func(m, _ *measure.PathMTU) { m.Silent = true }), SilentMTU, "", "", "above 1400 bytes"},
		{"only the way back", func() *measure.Path {
			p := path(func(m, _ *measure.PathMTU) { m.Router, m.RouterAddr = new(1400), "192.0.2.1" })
			p.Forward, p.Back = p.Back, p.Forward
			return p
		}(), HopMTU, "", "", "192.0.2.1"},
		{"it passes again", path(func(m, _ *measure.PathMTU) { m.Bytes = 1500 }), "", "", "", ""},
		{"no search", path(func(m, _ *measure.PathMTU) { m.Bytes = 0 }), "", "", "", ""},
		{"no probe", nil, "", "", "", ""},
	} {
		all := Findings([]record.Change{smaller}, c.path)
		if c.cause == "" {
			if len(all) > 0 {
				t.Errorf("%s: %+v", c.name, all)
			}
			continue
		}
		if len(all) != 1 || all[0].Cause != c.cause || all[0].Where.EndPoint != c.end || all[0].Where.Interface != c.device || !strings.Contains(all[0].Summary, c.words) || all[0].Fix == nil && c.name == "a router" {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
}

// TestDelay: a longer delay is a queue if the shortest round trip is what it was, else the path or its route is longer.
func TestDelay(t *testing.T) {
	slower := record.Change{Pair: ab, Metric: record.RTTMedian, Before: 4e6, After: 14e6, Earliest: at, Since: at, Latest: at.Add(20 * time.Minute)}
	moved := record.Change{Pair: ab, Metric: record.Hops, Before: 2, After: 5, Since: at.Add(10 * time.Minute)}
	long := moved
	long.Since = at.Add(-24 * time.Hour)
	for _, c := range []struct {
		name          string
		min, p50, p90 int64
		route         []record.Change
		hops          *int
		cause, sure   string
	}{
		{"longer", 139e5, 14e6, 15e6, nil, new(2), LongerPath, measure.Likely},
		{"longer, since a route that changed long before", 139e5, 14e6, 15e6, []record.Change{long}, new(2), LongerPath, measure.Likely},
		{"longer, and it varies", 10e6, 14e6, 20e6, nil, new(2), LongerPath, measure.Possible},
		{"longer, by an unknown route", 139e5, 14e6, 15e6, nil, nil, LongerPath, measure.Possible},
		{"another route", 139e5, 14e6, 15e6, []record.Change{moved}, new(5), LongerRoute, measure.Certain},
		{"a queue", 42e5, 13e6, 30e6, nil, new(2), Queue, measure.Likely},
		{"a queue that has emptied", 42e5, 45e5, 6e6, nil, new(2), Queue, measure.Possible},
	} {
		p := &measure.Path{From: "a", To: "b", RTT: &measure.PathRTT{Min: c.min, P50: c.p50, P90: c.p90, Samples: 100}}
		p.Forward.Hops = c.hops
		all := Findings(append([]record.Change{slower}, c.route...), p)
		if len(all) != 1 || all[0].Cause != c.cause || all[0].Confidence != c.sure || all[0].Summary == "" {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
	if all := Findings([]record.Change{slower, moved}, &measure.Path{}); len(all) > 0 {
		t.Errorf("without round trips: %+v", all)
	}
}
