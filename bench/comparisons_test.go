//go:build linux

package bench

// comparison is one shape of traffic for all tools, with the requirements that thru must meet.
type comparison struct {
	name  string
	title string
	shape shape
	bars  []bar
}

// bar is a requirement: one of its claims must hold.
type bar struct {
	text   string
	claims []claim
}

// claim is one ratio of thru to another tool with its minimum (for costs, its maximum).
type claim struct {
	of      metric
	against string // "ceiling", "best" of the peers, "every" peer, or a tool by its prefix
	bound   float64
}

// metric is a property of a run.
type metric int

// Metrics. For the last two less is better.
const (
	figure metric = iota
	p99
	cost // CPU seconds of both ends per GB
)

func (m metric) String() string { return [...]string{"figure", "p99", "CPU s/GB"}[m] }

// Names of tools that bars mention.
const (
	ceilingName = "ceiling"
	bestPeer    = "best"
	everyPeer   = "every"
	iperf3Name  = "iperf3"
	netperfName = "netperf"
)

func over(against string, bound float64) claim { return claim{figure, against, bound} }

// comparisons returns all comparisons, in the order in which they run.
func comparisons() []comparison {
	copying := bar{"the best peer, or 0.97 of the ceiling", []claim{over(bestPeer, 1), over(ceilingName, 0.97)}}
	cheap := bar{"fewer CPU s/GB than every peer", []claim{{cost, everyPeer, 1}}}
	nearLimit := bar{"0.95 of the ceiling", []claim{over(ceilingName, 0.95)}}
	udpBest := bar{"the best peer", []claim{over(bestPeer, 1)}}
	return []comparison{
		{"tcp-1", "TCP copying, 1 stream, 128K", shape{kind: tcpCopy, streams: 1, length: 128 << 10, place: sameCPU}, []bar{copying}},
		{"tcp-4", "TCP copying, 4 streams, 128K", shape{kind: tcpCopy, streams: 4, length: 128 << 10, place: free}, []bar{copying}},
		{"tcp-1-plain", "TCP copying, 1 stream, 128K", shape{kind: tcpCopy, streams: 1, length: 128 << 10, place: asCome}, nil},
		{"lean-1", "TCP lean, 1 stream, calls as long as each tool's default", shape{kind: tcpLean, streams: 1, place: sameCPU},
			[]bar{{"1.05 of iperf3 -Z --skip-rx-copy", []claim{over(iperf3Name, 1.05)}}, nearLimit, cheap}},
		{"lean-1-128k", "TCP lean, 1 stream, 128K", shape{kind: tcpLean, streams: 1, length: 128 << 10, place: sameCPU}, []bar{nearLimit}},
		{"lean-pairs", "TCP lean, one pair a CPU, 2 streams, calls as long as each tool's default", shape{kind: tcpLean, streams: 2, place: paired},
			[]bar{{"1.3 of iperf3 -Z --skip-rx-copy", []claim{over(iperf3Name, 1.3)}}, cheap}},
		{"lean-pairs-128k", "TCP lean, one pair a CPU, 2 streams, 128K", shape{kind: tcpLean, streams: 2, length: 128 << 10, place: paired}, nil},
		{"udp-64-gso", "UDP, GSO and GRO, 64 B", shape{kind: udpGSO, streams: 1, length: 64, place: sameCPU},
			[]bar{{"1.8 of iperf3 --gsro", []claim{over(iperf3Name, 1.8)}}, nearLimit}},
		{"udp-1400-gso", "UDP, GSO and GRO, 1400 B", shape{kind: udpGSO, streams: 1, length: 1400, place: sameCPU},
			[]bar{{"1.25 of iperf3 --gsro", []claim{over(iperf3Name, 1.25)}}, nearLimit}},
		{"udp-64", "UDP, 64 B", shape{kind: udpBatch, streams: 1, length: 64, place: sameCPU}, []bar{udpBest}},
		{"udp-1400", "UDP, 1400 B", shape{kind: udpBatch, streams: 1, length: 1400, place: sameCPU}, []bar{udpBest}},
		// On two CPUs a virtual machine's wake-ups alternate between two levels, for every tool: no bar
		// depends on that.
		{"udp-64-gso-two", "UDP, GSO and GRO, 64 B", shape{kind: udpGSO, streams: 1, length: 64, place: twoCPUs}, nil},
		{"udp-1400-gso-two", "UDP, GSO and GRO, 1400 B", shape{kind: udpGSO, streams: 1, length: 1400, place: twoCPUs}, nil},
		{"udp-64-two", "UDP, 64 B", shape{kind: udpBatch, streams: 1, length: 64, place: twoCPUs}, nil},
		{"udp-1400-two", "UDP, 1400 B", shape{kind: udpBatch, streams: 1, length: 1400, place: twoCPUs}, nil},
		{"rr", "TCP request and response, 1 byte", shape{kind: requests, streams: 1, length: 1, place: sameCPU},
			[]bar{{"netperf, or 0.97 of the ceiling", []claim{over(netperfName, 1), over(ceilingName, 0.97)}},
				{"p99 no worse than netperf's", []claim{{p99, netperfName, 1}}}}},
		{"crr", "TCP connect, request, response, close", shape{kind: connects, streams: 1, length: 1, place: sameCPU},
			[]bar{{"netperf, or 0.97 of the ceiling", []claim{over(netperfName, 1), over(ceilingName, 0.97)}}}},
		{"crr-plain", "TCP connect, request, response, close", shape{kind: connects, streams: 1, length: 1, place: asCome},
			[]bar{{"1.5 of netperf or neper", []claim{over(netperfName, 1.5), over("neper", 1.5)}}}},
	}
}
