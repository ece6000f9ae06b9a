package faults

import (
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// memberFaults: paths of several links, of which a flow uses one.
func memberFaults() []Fault {
	path := measure.AtPath
	return []Fault{
		{Name: "lag-one-member", About: "two routes of 500 Mb/s to one address", Forward: is("lag-one-member", path),
			Args: flags("-P 1 --link-rate 1G/l2"), Build: twoRoutes},
		{Name: "lag-four-members", About: "four links of 100 Mb/s, 10 ms away", Forward: is("lag-one-member", path), Args: flags("-P 1 --link-rate 400M/l2"),
			Build: overWire(both(symmetric(0, 10*time.Millisecond), func(w *wire.Impairment) { w.Members, w.MemberRate = 4, 100_000_000 }))},
		{Name: "cap-per-flow", About: "a cloud gives each flow 150 Mb/s", Forward: is("lag-one-member", path), Args: flags("-P 1 --link-rate 1G/l2"),
			Build: overWire(both(symmetric(1_000_000_000, 4*time.Millisecond), func(w *wire.Impairment) { w.PerFlowRate = 150_000_000 }))},
	}
}

// twoRoutes reaches the server over two links; a hash of the flow's ports selects one.
func twoRoutes(t testing.TB) *Scene {
	t.Helper()
	const address = "10.99.0.2"
	p := lab.NewPair(t, lab.Options{Rate: 500_000_000, Control: true})
	for _, h := range []*lab.Host{p.A, p.B} {
		h.Must("tc", flags("qdisc replace dev %s root tbf rate 500mbit burst 256kb limit 1500kb", lab.ControlDev)...)
	}
	p.B.IP("addr", "add", address+"/32", "dev", "lo")
	p.A.Sysctl("net.ipv4.fib_multipath_hash_policy", "1") // hash addresses and ports
	p.A.IP(flags("route add %s congctl cubic nexthop via %s dev %s nexthop via %s dev %s", address, p.Data.B4, lab.DataDev, p.Control.B4, lab.ControlDev)...)
	s := between(p)
	s.Target = address
	return s
}
