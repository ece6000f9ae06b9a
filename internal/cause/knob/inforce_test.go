package knob

import (
	"testing"

	"thru/internal/measure"
)

// tried is a change of one knob, with a run before it and one with it.
func tried(s, was measure.Setting, before, with func(sender, receiver *measure.Evidence)) Tried {
	cell := func(change func(sender, receiver *measure.Evidence)) *measure.Cell {
		end := func(name string, sends bool) *measure.Evidence {
			return &measure.Evidence{
				EndPoint: name, Sends: sends, MeasuredNs: 1e9, Bytes: 1e6, Streams: []measure.Stream{{MSS: 1000, TCP: &measure.TCPInfo{SendMSS: new(uint32(1000))}, Timeline: &measure.Timeline{}}},
				Host: &measure.HostSpan{NIC: &measure.NICSpan{Name: "eth0"}},
			}
		}
		f := measure.Flow{From: "a", To: "b", Sender: end("a", true), Receiver: end("b", false)}
		if change != nil {
			change(f.Sender, f.Receiver)
		}
		return &measure.Cell{From: "a", To: "b", Protocol: measure.TCP, Runs: []measure.Run{{Flows: []measure.Flow{f}}}}
	}
	return Tried{Proposal: &measure.Proposal{Settings: []measure.Setting{s}, Before: []measure.Setting{was}}, Before: cell(before), With: cell(with)}
}

func window(bytes, full float64) func(sender, receiver *measure.Evidence) {
	return func(s, r *measure.Evidence) {
		r.Streams[0].Timeline.RecvWnd = &measure.Spread{Max: bytes}
		s.Streams[0].Timeline.WndFull = &full
	}
}

func socket(segments, bytes float64) func(sender, receiver *measure.Evidence) {
	return func(s, _ *measure.Evidence) {
		s.Streams[0].Timeline.InFlight, s.Streams[0].Timeline.NotSent = &measure.Spread{Max: segments}, &measure.Spread{Max: bytes}
	}
}

func packets(bytes, n uint64) func(sender, receiver *measure.Evidence) {
	return func(s, _ *measure.Evidence) { s.Host.NIC.TxBytes, s.Host.NIC.TxPackets = bytes, n }
}

func control(name string) func(sender, receiver *measure.Evidence) {
	return func(s, r *measure.Evidence) { s.Streams[0].Congestion, r.Streams[0].Congestion = name, "reno" }
}

func queueCounts(counts map[string]uint64) func(sender, receiver *measure.Evidence) {
	return func(_, r *measure.Evidence) { r.Host.NIC.Driver = counts }
}

func cpus(counts ...uint64) func(sender, receiver *measure.Evidence) {
	return func(_, r *measure.Evidence) {
		for i, n := range counts {
			r.Host.Softnet = append(r.Host.Softnet, measure.Softnet{Core: i, Processed: n})
			r.Host.IRQs = append(r.Host.IRQs, measure.IRQSpan{Core: i, Count: n})
		}
	}
}

// The effect of a setting shows in the evidence; an effect that does not show is not checked.
func TestInForce(t *testing.T) {
	at := func(end, k, value string) measure.Setting {
		return measure.Setting{EndPoint: end, Knob: k, Value: value, Interface: "eth0"}
	}
	scaled := func(on bool) func(sender, receiver *measure.Evidence) {
		return func(s, _ *measure.Evidence) { s.Streams[0].TCP.WScaleOK = &on }
	}
	disc := func(kind string) func(sender, receiver *measure.Evidence) {
		return func(s, _ *measure.Evidence) { s.Host.Qdisc = &measure.Qdisc{Kind: kind} }
	}
	yes, no := new(true), new(false)
	for name, tt := range map[string]struct {
		set, was     measure.Setting
		before, with func(sender, receiver *measure.Evidence)
		want         *bool
	}{
		"the window grew":            {at("b", TCPRmem, "4096 131072 8000000"), at("b", TCPRmem, "4096 131072 100000"), window(50e3, 99), window(3e6, 0), yes},
		"tuned, but not past it":     {at("b", TCPRmem, "4096 131072 8000000"), at("b", TCPRmem, "4096 131072 6000000"), window(1e6, 0), window(2e6, 0), nil},
		"of windows asked for":       {at("b", RmemMax, "8000000"), at("b", RmemMax, "200000"), window(1e5, 0), window(3e6, 0), nil},
		"a bound never reached":      {at("b", TCPRmem, "4096 131072 4000000"), at("b", TCPRmem, "4096 131072 6000000"), window(1e6, 0), window(1.01e6, 0), nil},
		"larger than it allows":      {at("b", TCPRmem, "4096 131072 4000000"), at("b", TCPRmem, "4096 131072 6000000"), window(5e6, 0), window(5e6, 0), no},
		"the socket held that much":  {at("a", TCPWmem, "4096 16384 8000000"), at("a", TCPWmem, "4096 16384 6000000"), socket(400, 0), socket(800, 0), nil},
		"queues by chance":           {at("b", RSSHash, "tcp4 sdfn udp4 sdfn"), at("b", RSSHash, "tcp4 sdfn udp4 sd"), queueCounts(map[string]uint64{"rx0_packets": 9}), queueCounts(map[string]uint64{"rx0_packets": 5, "rx1_packets": 5}), nil},
		"queues by ports":            {at("b", RSSHash, "tcp4 sdfn"), at("b", RSSHash, "tcp4 sd"), queueCounts(map[string]uint64{"rx0_packets": 9}), queueCounts(map[string]uint64{"rx0_packets": 5, "rx1_packets": 5}), yes},
		"a table of more queues":     {at("b", RSSTable, "0 1"), at("b", RSSTable, "0 0"), queueCounts(map[string]uint64{"rx0_packets": 9}), queueCounts(map[string]uint64{"rx0_packets": 5, "rx1_packets": 5}), yes},
		"CPUs by chance":             {at("b", RPS, "rx-0 7"), at("b", RPS, "rx-0 3"), cpus(100, 0), cpus(50, 60), nil},
		"it was not needed":          {at("b", TCPRmem, "4096 131072 8000000"), at("b", TCPRmem, "4096 131072 100000"), window(50e3, 0), window(50e3, 0), nil},
		"it is as small as before":   {at("b", TCPRmem, "4096 131072 8000000"), at("b", TCPRmem, "4096 131072 100000"), window(50e3, 99), window(50e3, 99), no},
		"a smaller one":              {at("b", TCPRmem, "4096 131072 100000"), at("b", TCPRmem, "4096 131072 8000000"), window(3e6, 0), window(50e3, 99), yes},
		"no window is told":          {at("b", TCPRmem, "1 2 3"), at("b", TCPRmem, "1 2 2"), nil, nil, nil},
		"at the sender":              {at("a", TCPRmem, "1 2 3"), at("a", TCPRmem, "1 2 2"), window(50e3, 99), window(50e3, 99), nil},
		"the socket holds more":      {at("a", TCPWmem, "4096 16384 8000000"), at("a", TCPWmem, "4096 16384 60000"), socket(40, 0), socket(400, 1e5), yes},
		"it needs no more":           {at("a", TCPWmem, "4096 16384 8000000"), at("a", TCPWmem, "4096 16384 60000"), socket(40, 0), socket(40, 0), nil},
		"at the receiver":            {at("b", TCPWmem, "1 2 3"), at("b", TCPWmem, "1 2 2"), socket(40, 0), socket(40, 0), nil},
		"scaling":                    {at("b", WindowScaling, "1"), at("b", WindowScaling, "0"), scaled(false), scaled(true), yes},
		"no scaling, the other end":  {at("b", WindowScaling, "1"), at("b", WindowScaling, "0"), scaled(false), scaled(false), no},
		"scaling off":                {at("b", WindowScaling, "0"), at("b", WindowScaling, "1"), scaled(true), scaled(false), yes},
		"scaling is not told":        {at("b", SACK, "1"), at("b", SACK, "0"), nil, nil, nil},
		"control":                    {at("a", Congestion, "bbr"), at("a", Congestion, "cubic"), control("cubic"), control("bbr"), yes},
		"a route has another":        {at("a", Congestion, "bbr"), at("a", Congestion, "cubic"), control("cubic"), control("cubic"), no},
		"the control of a receiver":  {at("b", Congestion, "bbr"), at("b", Congestion, "cubic"), control("cubic"), control("cubic"), nil},
		"no route control":           {at("a", RouteCongestion, ""), at("a", RouteCongestion, "cubic"), control("cubic"), control("bbr"), nil},
		"large packets":              {at("a", TSO, "on"), at("a", TSO, "off"), packets(1e6, 900), packets(1e6, 20), yes},
		"the interface splits them":  {at("a", TSO, "on"), at("a", TSO, "off"), packets(1e6, 900), packets(1e6, 900), nil},
		"small packets":              {at("a", TSO, "off"), at("a", TSO, "on"), packets(1e6, 20), packets(1e6, 900), yes},
		"large packets all the same": {at("a", TSO, "off"), at("a", TSO, "on"), packets(1e6, 20), packets(1e6, 20), no},
		"queues":                     {at("b", Channels, "combined 2"), at("b", Channels, "combined 1"), queueCounts(map[string]uint64{"rx_queue_0_packets": 100}), queueCounts(map[string]uint64{"rx_queue_0_packets": 50, "rx_queue_1_packets": 50, "rx_queue_1_bytes": 9}), yes},
		"one queue":                  {at("b", Channels, "combined 2"), at("b", Channels, "combined 1"), queueCounts(map[string]uint64{"rx0_packets": 100}), queueCounts(map[string]uint64{"rx0_packets": 99, "rx1_packets": 1}), nil},
		"no counters":                {at("b", RSSTable, "0 1"), at("b", RSSTable, "0 0"), nil, nil, nil},
		"more CPUs":                  {at("b", RPS, "rx-0 3"), at("b", RPS, "rx-0 0"), cpus(100, 0), cpus(50, 60), yes},
		"interrupts there":           {at("b", IRQAffinity, "24 1 25 1"), at("b", IRQAffinity, "24 0 25 0"), cpus(100, 0), cpus(3, 97), yes},
		"interrupts elsewhere":       {at("b", IRQAffinity, "24 1"), at("b", IRQAffinity, "24 0"), cpus(100, 0), cpus(97, 3), no},
		"another interrupt's":        {at("b", IRQAffinity, "24 0"), at("b", IRQAffinity, "24 2 25 1"), cpus(3, 97), cpus(3, 97), nil},
		"interrupts there before":    {at("b", IRQAffinity, "24 1"), at("b", IRQAffinity, "24 0-1"), cpus(3, 97), cpus(3, 97), nil},
		"some moved":                 {at("b", IRQAffinity, "25 1"), at("b", IRQAffinity, "24 0 25 0"), cpus(100, 0), cpus(60, 40), yes},
		"interrupts of a bad list":   {at("b", IRQAffinity, "24 x"), at("b", IRQAffinity, "24 0"), cpus(100, 0), cpus(97, 3), nil},
		"qdisc":                      {at("a", Qdisc, "fq"), at("a", Qdisc, "fq_codel"), disc("fq_codel"), disc("fq"), yes},
		"another qdisc":              {at("a", Qdisc, "fq"), at("a", Qdisc, "fq_codel"), disc("fq_codel"), disc("fq_codel"), no},
		"nothing tells":              {at("a", TxQueueLen, "1"), at("a", TxQueueLen, "2"), nil, nil, nil},
		"a knob that nobody knows":   {at("a", "x", "1"), at("a", "x", "2"), nil, nil, nil},
		"a host that nobody knows":   {at("c", Qdisc, "fq"), at("c", Qdisc, "pfifo"), disc("fq"), disc("fq"), nil},
		"a probed size":              {at("a", MTUProbing, "1"), at("a", MTUProbing, "0"), nil, func(s, _ *measure.Evidence) { s.Host.Proto = map[string]uint64{"TcpExt.TCPMTUPSuccess": 2} }, yes},
	} {
		got := InForce(tried(tt.set, tt.was, tt.before, tt.with))
		if len(got) != 1 || got[0].Fact == "" || got[0].What == "" || !same(got[0].Holds, tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	x := tried(at("b", TCPRmem, "4096 131072 8000000"), at("b", TCPRmem, "4096 131072 100000"), window(5e4, 0), window(2e6, 0))
	x.Proposal.Settings = append([]measure.Setting{at("a", Qdisc, "fq")}, x.Proposal.Settings...) // its value before is not known
	if got := InForce(x); len(got) != 2 || !same(got[1].Holds, yes) {
		t.Errorf("the value before of another knob: %+v", got)
	}
	x = tried(at("b", RmemMax, "8000000"), at("b", RmemMax, "200000"), window(1e5, 0), window(3e6, 0))
	x.With.Spec.Window.Recv = 4e6
	if got := InForce(x); !same(got[0].Holds, yes) {
		t.Errorf("a window that was asked for: %+v", got)
	}
	if got := InForce(Tried{Proposal: &measure.Proposal{Settings: []measure.Setting{at("a", TCPRmem, "1")}}}); len(got) != 1 || got[0].Holds != nil {
		t.Errorf("without any run: %+v", got)
	}
}

func same(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// An MTU is in force if packets of its size pass, and none vanish in either direction.
func TestInForceMTU(t *testing.T) {
	direction := func(bytes, claimed int, silent bool) measure.DirectionFacts {
		return measure.DirectionFacts{MTU: &measure.PathMTU{Bytes: bytes, Claimed: claimed, Silent: silent}}
	}
	yes, no := new(true), new(false)
	for name, tt := range map[string]struct {
		end, value    string
		forward, back measure.DirectionFacts
		want          *bool
	}{
		"it passes":               {"a", "9000", direction(9000, 9000, false), direction(9000, 9000, false), yes},
		"it vanishes":             {"a", "9000", direction(1500, 9000, true), direction(9000, 9000, false), no},
		"it vanishes towards it":  {"b", "9000", direction(1500, 9000, true), direction(9000, 9000, false), no},
		"a router says no":        {"a", "9000", direction(1500, 9000, false), direction(1500, 9000, false), no},
		"lowered":                 {"b", "1500", direction(1500, 1500, false), direction(1500, 1500, false), yes},
		"the route has less":      {"b", "9000", direction(1400, 1400, false), direction(1400, 1400, false), yes},
		"the probe found nothing": {"a", "9000", measure.DirectionFacts{}, direction(9000, 9000, false), nil},
	} {
		x := tried(measure.Setting{EndPoint: tt.end, Knob: MTU, Interface: "eth0", Value: tt.value}, measure.Setting{}, nil, nil)
		x.PathNow = &measure.Path{From: "a", To: "b", Forward: tt.forward, Back: tt.back}
		if got := InForce(x); len(got) != 1 || !same(got[0].Holds, tt.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	x := tried(measure.Setting{EndPoint: "b", Knob: MTU, Interface: "eth0", Value: "1400"}, measure.Setting{}, nil, nil)
	x.PathWas = &measure.Path{From: "a", To: "b", Forward: direction(1400, 1500, true), Back: direction(1400, 1500, true)}
	x.PathNow = &measure.Path{From: "a", To: "b", Forward: direction(1400, 1500, true), Back: direction(1400, 1400, false)}
	if got := InForce(x); !same(got[0].Holds, yes) {
		t.Errorf("what vanished before is held against the cure: %+v", got)
	}
	if got := InForce(tried(measure.Setting{EndPoint: "a", Knob: MTU, Value: "9000"}, measure.Setting{}, nil, nil)); got[0].Holds != nil {
		t.Errorf("without a probe: %+v", got)
	}
}

// Options of the test show in what the ends used.
func TestOptionsInForce(t *testing.T) {
	o := &measure.TestOptions{Streams: 1, Congestion: "bbr", IO: measure.IOLean, SenderCPU: new(1), ReceiverCPU: new(2), Window: &measure.Pair{Send: 1 << 20}}
	used := func(cc, io string, cpu int) func(sender, receiver *measure.Evidence) {
		return func(s, r *measure.Evidence) {
			s.Streams[0].Congestion, s.IO, s.Streams[0].CPU, r.Streams[0].CPU = cc, io, &cpu, new(2)
		}
	}
	for _, tt := range []struct {
		with func(sender, receiver *measure.Evidence)
		want []*bool
	}{
		{used("bbr", measure.IOSendfile, 1), []*bool{new(true), new(true), new(true), new(true), new(true), nil}},
		{used("cubic", measure.IOCopy, 0), []*bool{new(true), new(false), new(false), new(false), new(true), nil}},
		{func(s, r *measure.Evidence) { s.Streams, r.Streams = nil, nil }, []*bool{new(false), nil, new(false), nil, nil, nil}},
	} {
		x := tried(measure.Setting{}, measure.Setting{}, nil, tt.with)
		x.Proposal = &measure.Proposal{Test: o}
		got := InForce(x)
		for i := range got {
			if len(got) != len(tt.want) || !same(got[i].Holds, tt.want[i]) {
				t.Errorf("%+v", got)
			}
		}
	}
	if got := InForce(Tried{Proposal: &measure.Proposal{Test: o}}); len(got) == 0 || got[0].Holds != nil {
		t.Errorf("without any run: %+v", got)
	}
}
