// Package plan converts a request to a validated, deterministic list of measure.Spec: which flows run, which
// of them at the same time, in which order, and how often. It does no I/O: the same request gives the same
// plan on every machine.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Plan is a list of steps, run in order. The whole list runs once per repetition, which spreads the
// repetitions of one cell over time.
type Plan struct {
	Command string
	Steps   []Step
	Repeat  Repeat

	// The fields of a plan file; empty if the flags of a command made the plan.
	Name        string
	Order       string // OrderSequential, OrderSimultaneous, OrderInterleaved, OrderBlocks or OrderThereAndBack
	Seed        uint64 // of the order of blocks, for OrderInterleaved
	EndPoints   []EndPoint
	Targets     []Target
	ManualSteps []ManualStep // bring variants into force
	Hypervisors []string     // URLs of those that may run the end points
	Gates       string       // GatesOff: do not judge gates; GatesForce: judge them, and measure even if one fails
	Link        Link         // nominal rate of the path
	Warnings    []string     // what the author of the plan should know
}

// Orders of a plan.
const (
	OrderSequential   = "sequential"   // one pair after the other
	OrderSimultaneous = "simultaneous" // all pairs at once
	OrderInterleaved  = "interleaved"  // the steps are variants, A B B A, in blocks
)

// Values of Plan.Gates.
const (
	GatesOff   = "off"
	GatesForce = "force"
)

// Link is a nominal rate in bit/s, and the layer of its bytes (unit.ParseLinkRate). A rate of 0: unknown.
type Link struct {
	RateBps int64
	Layer   string
}

// EndPoint is an end point of a plan, and how to reach it.
type EndPoint struct {
	Name     string            // in the plan and in the result
	At       string            // as for `thru test`: a joined name, HOST[:PORT], ssh://, iperf3://, CONTROLLER/NAME; empty: Name
	Labels   map[string]string // of the plan; in addition to the agent's own
	DataAddr string            // where it receives data, if not at the address that it reports
}

// Target is a requirement of a plan for its groups or their pairs.
type Target struct {
	Of     string         // TargetTotal, TargetPair or TargetHost
	Where  []measure.Axis // only groups with these values; none: all groups
	Rung   string         // only of this rung
	Figure string         // "goodput_bps", "share_pct" of the ceiling, "rtt_loaded_ns", "loss_pct", "jain_fairness"
	Wanted float64
	AtMost bool // else at least
}

// Values of Target.Of.
const (
	TargetTotal = "total" // the aggregate of a group
	TargetPair  = "pair"  // each pair
	TargetHost  = "host"  // each host's sent or received rate, the lower of the two
)

// Step is a set of flows that run at the same time: one flow, two for bidirectional traffic, or those of many
// pairs.
type Step struct {
	Label    string
	Specs    []measure.Spec
	Baseline bool // a short reference measurement, run once

	Rung   string         // of a ladder
	Axes   []measure.Axis // what distinguishes this step from the others
	Labels []string       // of each of Specs; empty: Label, or the direction
	// Independent is set if the flows belong to independent pairs: if one fails the others continue, and all
	// start at the same time.
	Independent bool
	Link        Link // of this step's path; a rate of 0: the plan's
}

// Repeat sets when to stop: after Max runs, or after Min once the interval's half-width is at most
// PrecisionPct of the mean (0: run exactly Max).
type Repeat struct {
	Min, Max     int
	PrecisionPct float64
}

// Setup estimates the time to connect and to collect results of a run.
const Setup = 200 * time.Millisecond

// fetching estimates the time to fetch captures and analyze their connections.
const fetching = 2 * time.Second

// meeting estimates the time to compare the clocks and agree on a common start, flowsAtOnce the number of
// flows that are prepared concurrently.
const (
	meeting     = time.Second
	flowsAtOnce = 64
)

// Time returns how long the plan takes at most, without the extension of ramps on paths with a long RTT.
func (p Plan) Time() time.Duration { return p.TimeOf(p.Schedule()) }

// TimeOf returns the time of some runs of the plan, such as those left after an interruption.
func (p Plan) TimeOf(turns []Turn) time.Duration {
	var t time.Duration
	for _, x := range turns {
		t += p.Steps[x.Step].Time()
	}
	return t
}

// Time returns the time of one run of the step.
func (s Step) Time() time.Duration {
	var longest time.Duration
	for _, x := range s.Specs {
		t := Ramp(x, 0) + time.Duration(x.Duration) + Setup
		if x.Capture > 0 {
			t += fetching
		}
		longest = max(longest, t)
	}
	if s.Independent {
		longest += meeting + time.Duration(len(s.Specs)/flowsAtOnce)*Setup
	}
	return longest
}

// Limits of the ramp, which is not counted.
const (
	leastRamp = time.Second
	mostRamp  = 10 * time.Second
	rampRTTs  = 20
)

// Ramp returns the time before the measured time: what the Spec sets, else 20 round trips, at least 1 s and
// at most 10 s. In 20 round trips slow start doubles the window 20 times, from 14 KB to more than the largest
// possible window.
func Ramp(s measure.Spec, rtt time.Duration) time.Duration {
	if s.Ramp > 0 || s.NoRamp {
		return time.Duration(s.Ramp)
	}
	return min(max(leastRamp, rampRTTs*rtt), mostRamp)
}

// Request is what the command line or a plan file asks for: local is the end that runs the command, peer the
// other one.
type Request struct {
	Local, Peer         string // end point names
	Engine              string // "" is measure.Native
	LocalCPUs, PeerCPUs int    // number of their CPUs, for the default of streams
	Streams             int    // 0: default
	Window, Length      measure.Pair
	Duration            time.Duration
	Ramp                time.Duration // 0: by RTT
	RampSet             bool          // -O was given, perhaps as 0
	Interval            time.Duration
	Reverse, Bidir      bool
	OneWay              bool
	Family              int
	Congestion          string
	MSS                 int
	NoDelay             bool
	DSCP                int
	LocalCPU, PeerCPU   *int
	CPUs                int // CPUs of each end that the test may use, from 0 up; 0: all
	EndPoints           int `json:",omitempty"` // parallel flows of a pair, each with its own workers; 0: one
	BindAddr, BindDev   string
	BindPort            int
	DataAddr            string
	IO                  string
	IOForced            bool    // fail if that data path is not available
	Protocol            string  // "" is TCP
	Traffic             string  // measure.Bulk, RR or CRR
	Rate                int64   // bit/s of payload of each stream; 0: unlimited
	RateSet             bool    // -b was given, perhaps as 0
	TotalRate           int64   // of all streams together, instead of Rate
	Amount              int64   // bytes of all streams, instead of a duration
	Blocks              int64   // the same in send calls or datagrams
	PerSecond           float64 // requests a second of each stream; 0: back to back
	Verify, Unplaced    bool
	DontFragment        bool
	OneConnection       bool  // both directions at once on the same connections
	Search              bool  // search for the capacity of the path, by UDP
	Latency             bool  // also measure latency
	RRUL                bool  // flent's test: four streams in each direction at once, each in its own class, and Latency
	Capture             int64 // packets to capture at each end, at most; 0: none
	Together            bool
	EachStream          bool   // live figures of each stream
	FarOutput           bool   // iperf3: fetch the output of the far end
	Title, Extra        string // iperf3: title of the test, and extra data stored with it
	Login               Login  `json:"-"`
	Repeat              int
	PrecisionPct        float64
	Acceptance          bool
	Link                Link `json:",omitzero"` // nominal rate of the path

	either bool // if the local end cannot connect, the peer tries
}

// Login is the user for an iperf3 server, and the server's public key.
type Login struct {
	User, PublicKey string
	PKCS1           bool // the older padding
}

// Directions of a request, with the words of plan files: from the local end to the peer, back, one after the
// other, or at the same time.
const (
	Forward        = "forward"
	Reverse        = "reverse"
	BothDirections = "both"
	Bidir          = "bidir"
)

// Direction returns the direction of the request.
func (r Request) Direction() string {
	switch {
	case r.Bidir:
		return Bidir
	case r.Reverse:
		return Reverse
	case r.OneWay:
		return Forward
	}
	return BothDirections
}

// DefaultStreams returns half the CPUs of the end with fewer, since one connection keeps two threads busy
// (B-15): at least 1, at most 8.
func DefaultStreams(cpusA, cpusB int) int {
	return min(max(min(cpusA, cpusB)/2, 1), 8)
}

// Default time to measure each direction: as in iperf3, and for each cell of a ladder (B-09).
const (
	TestTime   = 10 * time.Second
	LadderTime = 60 * time.Second
)

// baselineTime limits the single-stream baseline of a test with several streams.
const baselineTime = 3 * time.Second

// Test returns the plan of `thru test`: each direction by itself unless the request asks for one or for both
// at once, and a short single-stream baseline.
func Test(r Request) (Plan, error) {
	if r.Acceptance {
		r.Duration, r.Repeat, r.OneWay, r.Reverse = max(r.Duration, AcceptanceTime), max(r.Repeat, AcceptanceRuns), false, false
	}
	r, err := r.settled()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Command: "test", Repeat: r.Repeats()}
	main := r.directions()
	p.Steps = main
	if r.Latency {
		p.Steps = withLatency(main, r)
	}
	if r.Streams > 1 && r.Traffic == measure.Bulk && r.Protocol != measure.UDP && !r.limited() && !r.RRUL {
		p.Steps = append(p.Steps, baseline(main[0]))
	}
	return p, nil
}

// settled fills in defaults, and refuses what cannot be measured.
func (r Request) settled() (Request, error) {
	if r.Streams == 0 {
		r.Streams = DefaultStreams(r.LocalCPUs, r.PeerCPUs)
		if r.CPUs > 0 {
			r.Streams = DefaultStreams(r.CPUs, r.CPUs)
		}
		if r.Traffic != measure.Bulk || r.Protocol == measure.UDP || r.RRUL {
			r.Streams = 1 // the latency of one client, the rate of one sender
		}
	}
	if r.Protocol == measure.UDP && r.Traffic == measure.Bulk && !r.RateSet && !r.Search && r.TotalRate == 0 {
		r.Rate = DefaultDatagramRate
	}
	if r.Blocks > 0 && r.Length.Send == 0 {
		r.Length.Send = r.block() // so that the number of calls is as requested
	}
	return r, r.check()
}

// DefaultDatagramRate is the default rate of UDP in bit/s of each stream: as in iperf3, low enough to harm no
// network.
const DefaultDatagramRate = 1_000_000

// limited reports whether the request limits the traffic, so that a single-stream baseline has no meaning.
func (r Request) limited() bool { return r.Amount > 0 || r.Blocks > 0 || r.Rate > 0 || r.TotalRate > 0 }

// directions returns the steps of the traffic itself.
func (r Request) directions() []Step {
	forward, back := r.spec(true), r.spec(false)
	switch {
	case r.RRUL:
		return []Step{{Label: "four streams in each direction, each with its own DSCP", Specs: classes(forward, back)}}
	case r.Bidir:
		back.FirstStream = forward.Streams
		if r.engine() == measure.IPerf3 {
			forward.Duplex, back.Duplex = true, true
			return []Step{{Label: "both directions at once", Specs: []measure.Spec{forward, back}}}
		}
		if r.OneConnection {
			forward.Duplex, back.Duplex = true, true
			back.DialFrom, back.FirstStream = false, 0
			return []Step{{Label: "both directions at once, on one connection", Specs: []measure.Spec{forward, back}}}
		}
		return []Step{{Label: "both directions at once", Specs: []measure.Spec{forward, back}}}
	case r.Reverse:
		return []Step{{Label: "reverse", Specs: []measure.Spec{back}}}
	case r.OneWay || r.Local == r.Peer && !r.Acceptance || r.Traffic != measure.Bulk:
		// On one host both directions are the same path, and a round trip covers both directions.
		return []Step{{Label: "forward", Specs: []measure.Spec{forward}}}
	default:
		return []Step{{Label: "forward", Specs: []measure.Spec{forward}}, {Label: "reverse", Specs: []measure.Spec{back}}}
	}
}

// Labels of the cells that --latency adds.
const (
	IdleLatency   = "latency, idle"
	LoadedLatency = "latency, loaded"
)

// Latency under load uses few requests, so that they add no load themselves.
const (
	probesPerSecond = 200
	idleTime        = 3 * time.Second
)

// withLatency adds requests on their own connection to each step's traffic, and a step on the idle path
// before all others.
func withLatency(steps []Step, r Request) []Step {
	probe := r.spec(true)
	probe.Protocol, probe.Traffic, probe.Streams = measure.TCP, measure.RR, 1
	probe.Length, probe.Window, probe.IO, probe.IOForced = measure.Pair{Send: 1, Recv: 1}, measure.Pair{}, "", false
	probe.PerSecond, probe.Rate, probe.Amount, probe.Verify, probe.Search, probe.DontFragment, probe.BindPort = probesPerSecond, 0, 0, false, false, false, 0
	probe.SenderCPU, probe.ReceiverCPU, probe.SenderCPUs, probe.ReceiverCPUs, probe.Capture = nil, nil, "", "", 0
	probe.LatencyProbe = true
	probe.Unplaced = true // it must wait for the traffic as any other program does
	idle := probe
	idle.Duration = min(idle.Duration, int64(idleTime))
	out := []Step{{Label: IdleLatency, Specs: []measure.Spec{idle}, Baseline: true}}
	for _, s := range steps {
		s.Specs = append(slices.Clone(s.Specs), probe)
		out = append(out, s)
	}
	return out
}

// Settings of --acceptance.
const (
	AcceptanceTime = 60 * time.Second
	AcceptanceRuns = 5
)

// baseline returns the short single-stream baseline of a step's first flow.
func baseline(s Step) Step {
	one := s.Specs[0]
	one.Streams = 1
	one.Duration = min(one.Duration, int64(baselineTime))
	one.Capture = 0
	return Step{Label: "single stream", Specs: []measure.Spec{one}, Baseline: true}
}

// Limits of the runs with --precision. With fewer than 5 runs the interval is too often narrow by chance, and
// the test ends too early (docs/statistics.md).
const (
	leastRuns = 5
	maxRuns   = 15
)

// Repeats returns how often to measure the request.
func (r Request) Repeats() Repeat {
	n := max(r.Repeat, 1)
	if r.PrecisionPct > 0 {
		return Repeat{Min: max(leastRuns, r.Repeat), Max: max(maxRuns, r.Repeat), PrecisionPct: r.PrecisionPct}
	}
	return Repeat{Min: n, Max: n}
}

// spec returns one flow, from the local end or towards it. The local end dials in both directions, since a
// firewall usually allows that.
func (r Request) spec(forward bool) measure.Spec {
	s := measure.Spec{
		From: r.Local, To: r.Peer, DialFrom: forward, Engine: r.engine(), Protocol: r.Protocol, Traffic: r.Traffic, IO: r.IO, IOForced: r.IOForced,
		Rate: r.rate(), PerSecond: r.PerSecond, Amount: r.amount(), Verify: r.Verify, DontFragment: r.DontFragment, Search: r.Search, Unplaced: r.Unplaced,
		Streams: r.Streams, Window: r.Window, Length: r.Length,
		Duration: int64(r.Duration), Ramp: int64(r.Ramp), NoRamp: r.RampSet && r.Ramp == 0, Interval: int64(r.Interval), Family: r.Family,
		EachStream: r.EachStream, FarOutput: r.FarOutput, Title: r.Title, Extra: r.Extra, Capture: r.Capture,
		Congestion: r.Congestion, MSS: r.MSS, NoDelay: r.NoDelay, DSCP: r.DSCP,
		SenderCPU: r.LocalCPU, ReceiverCPU: r.PeerCPU, SenderCPUs: firstCPUs(r.CPUs), ReceiverCPUs: firstCPUs(r.CPUs), Either: r.either,
		BindAddr: r.BindAddr, BindDev: r.BindDev, BindPort: r.BindPort, DataAddr: r.DataAddr, Together: r.Together,
	}
	s.Protocol = cmp.Or(s.Protocol, measure.TCP)
	if s.Amount > 0 {
		s.Duration, s.Ramp, s.NoRamp = int64(AmountLimit), 0, true
	}
	if r.engine() != measure.Native && s.Protocol == measure.UDP && !r.RampSet { // datagrams at a fixed rate need no ramp, and both ends count the same time
		s.NoRamp = true
	}
	if !forward {
		s.From, s.To = s.To, s.From
		s.SenderCPU, s.ReceiverCPU = s.ReceiverCPU, s.SenderCPU
	}
	return s
}

// firstCPUs returns the first n CPUs of a host in the kernel's list format: "0-3".
func firstCPUs(n int) string {
	switch {
	case n < 1:
		return ""
	case n == 1:
		return "0"
	default:
		return fmt.Sprintf("0-%d", n-1)
	}
}

// AmountLimit ends a test of a fixed amount that takes too long.
const AmountLimit = 6 * time.Hour

// engine returns the engine that carries the traffic.
func (r Request) engine() string { return cmp.Or(r.Engine, measure.Native) }

// rate returns the rate of all streams together in bit/s.
func (r Request) rate() int64 {
	switch {
	case r.TotalRate > 0:
		return r.TotalRate
	case r.Rate > 0:
		return r.Rate * int64(r.Streams)
	default:
		return 0
	}
}

// amount returns the bytes of all streams.
func (r Request) amount() int64 {
	if r.Blocks == 0 {
		return r.Amount
	}
	return r.Blocks * r.block()
}

// block returns the bytes of one block of -k.
func (r Request) block() int64 {
	switch {
	case r.Length.Send > 0:
		return r.Length.Send
	case r.Protocol == measure.UDP:
		return usualDatagram
	default:
		return measure.DefaultLength
	}
}

// usualDatagram fits a link of MTU 1500 with IPv4 and IPv6: the default block of -k.
const usualDatagram = 1500 - 40 - 8

// check refuses options that cannot be combined; the limits of each option are in the table (option).
func (r Request) check() error {
	for _, c := range []struct {
		bad        bool
		hint, text string
	}{
		{r.Streams < 1 || r.Streams > measure.MaxStreams, fmt.Sprintf("{streams} takes 1 to %d", measure.MaxStreams), fmt.Sprintf("%d streams cannot be measured", r.Streams)},
		{r.Duration < measure.MinDuration || r.Duration > measure.MaxDuration, "{time} takes 0.1 to 86400 seconds", fmt.Sprintf("a test of %v cannot be measured", r.Duration)},
		{r.BindPort+r.Streams > 65536, "{client_port} takes the first of as many ports as there are streams", fmt.Sprintf("source ports from %d do not fit %d streams", r.BindPort, r.Streams)},
		{r.RRUL && r.Local == r.Peer && r.Local != "", "name the other end point", "{rrul} needs two hosts"},
		{unit.Trues(r.Reverse, r.Bidir, r.OneWay) > 1, "take one of {direction=reverse}, {direction=bidir} and {direction=forward}; without any, both directions are measured one after the other", "the directions contradict each other"},
	} {
		if c.bad {
			return Refuse(c.hint, c.text)
		}
	}
	return r.checkKind()
}

// badSize reports a size outside the limits; 0 is an unset side and is allowed.
func badSize(p measure.Pair, least, most int64) bool {
	for _, v := range []int64{p.Send, p.Recv} {
		if v != 0 && v < least || v > most || v < 0 {
			return true
		}
	}
	return false
}

// Runs returns the largest number of runs of the plan.
func (p Plan) Runs() int { return len(p.Schedule()) }
