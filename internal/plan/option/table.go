package option

import (
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// Table returns the options in the order of the help.
func Table() []Option { return table }

var table = slices.Concat(traffic, amounts, ends, sockets, cpus, runs)

// Groups of the help.
const (
	ofTraffic = "Traffic"
	ofAmounts = "How much"
	ofEnds    = "Ends and directions"
	ofSockets = "Sockets"
	ofCPU     = "CPU"
	ofIPerf   = "iperf end points"
	ofOutput  = "Output"
)

// traffic holds the options that choose the kind of traffic.
var traffic = []Option{
	{ID: "protocol", Key: OfTraffic, Value: words(func(r *plan.Request) *string { return &r.Protocol }, measure.TCP, measure.UDP),
		Flags: []Flag{fixed(ofTraffic, "-u --udp", measure.UDP, "UDP: packet loss and where, reordering, jitter; 1 Mb/s per stream unless -b is given.")},
		IPerf: []Flag{fixed("", "-u --udp", measure.UDP, "UDP")}},
	{ID: "kind", Key: OfTraffic, Value: kind(),
		Flags: []Flag{
			fixed(ofTraffic, "--rr", measure.RR, "Requests and responses: latency. -l REQUEST/RESPONSE in bytes (default 1/1); with -u over UDP."),
			fixed(ofTraffic, "--crr", measure.CRR, "Connect, request, response, close, repeatedly."),
		}},
	{ID: "latency", Key: OfTraffic, Value: truth(func(r *plan.Request) *bool { return &r.Latency }), Flags: []Flag{yes(ofTraffic, "--latency", "Also measure latency, idle and under load.")}},
	{ID: "rrul", Value: oneOf(func(r *plan.Request, _ string) { r.RRUL, r.Latency = true, true }, "true"), Flags: []Flag{yes(ofTraffic, "--rrul", "Like flent's RRUL: four streams in each direction at once, each with its own DSCP (0, CS1, CS5, EF), and the latency under load, graded.")}},
	{ID: "search", Key: OfTraffic, Value: truth(func(r *plan.Request) *bool { return &r.Search }), Flags: []Flag{yes(ofTraffic, "--search", "With -u: find the capacity (RFC 9097), then the highest rate without loss.")}},
	{ID: "verify", Key: OfTraffic, Value: truth(func(r *plan.Request) *bool { return &r.Verify }), Flags: []Flag{yes(ofTraffic, "--verify", "Compare every byte at the receiver with what was sent.")}},
}

// amounts holds the options of rate, amount and duration.
var amounts = []Option{
	{ID: "bitrate", Key: OfTraffic, Either: "rate", Value: parsed("500M, 2.5G or 0", unit.ParseRate, func(r *plan.Request, n int64) { r.Rate, r.RateSet, r.TotalRate = n, true, 0 }),
		Flags: []Flag{flag(ofAmounts, "-b --bitrate --bandwidth", "RATE", "Payload rate of each stream, such as 500M; 0 is unlimited (default: 1M with -u, else 0).")},
		IPerf: []Flag{reads(evenRate, "-b --bitrate --bandwidth", "RATE", "of each stream; 0: no limit (default; UDP 1M)")}},
	{ID: "total_bitrate", Key: OfTraffic, Either: "rate", Value: parsed("500M or 2.5G", Positive(unit.ParseRate), func(r *plan.Request, n int64) { r.TotalRate, r.Rate, r.RateSet = n, 0, false }), Flags: []Flag{flag(ofAmounts, "--total-bitrate", "RATE", "Payload rate of all streams together.")}},
	{ID: "bytes", Key: OfTraffic, Either: "amount", Value: parsed("10G or 64M", Positive(unit.ParseSize), func(r *plan.Request, n int64) { r.Amount, r.Blocks = n, 0 }),
		Flags: []Flag{flag(ofAmounts, "-n --bytes --num", "SIZE", "End after this many bytes instead of a time.")},
		IPerf: []Flag{flag("", "-n --bytes", "SIZE", "to send, instead of a time")}},
	{ID: "blocks", Key: OfTraffic, Either: "amount", Value: parsed("1000", Positive(count), func(r *plan.Request, n int64) { r.Blocks, r.Amount = n, 0 }),
		Flags: []Flag{flag(ofAmounts, "-k --blockcount", "N", "End after this many calls or datagrams of -l bytes.")},
		IPerf: []Flag{reads(manyBlocks, "-k --blockcount", "N", "of blocks to send, instead of a time")}},
	{ID: "rate", Key: OfTraffic, Value: parsed("1000", perSecond, func(r *plan.Request, n float64) { r.PerSecond = n }), Flags: []Flag{flag(ofAmounts, "--rate", "N", "Requests per second of each stream (default: back to back). A late request counts from its due time.")}},
	{ID: "streams", Key: OfTraffic, Value: whole(1, measure.MaxStreams, func(r *plan.Request) *int { return &r.Streams }),
		Flags: []Flag{flag(ofAmounts, "-P --streams --parallel", "N", "Parallel connections (default: half the CPUs of the smaller end, 1 to 8).")},
		IPerf: []Flag{flag("", "-P --parallel", "N", "streams")}},
	{ID: "time", Key: OfTraffic, Either: "amount", Value: boundedTime("10s, 0.5 or 1m", measure.MinDuration, measure.MaxDuration, func(r *plan.Request, d time.Duration) { r.Duration, r.Amount, r.Blocks = d, 0, 0 }),
		Flags: []Flag{flag(ofAmounts, "-t --time", "SECONDS", "Measured time of a run, after the ramp.")},
		IPerf: []Flag{reads(endless, "-t --time", "SECONDS", "to send (default 10; 0 until it is ended)")}},
	{ID: "length", Key: OfTraffic, Value: sizes("64K, 1M or 64K/128K", measure.MaxLength, func(r *plan.Request) *measure.Pair { return &r.Length }),
		Flags: []Flag{flag(ofAmounts, "-l --length --len", "SIZE", "Bytes per send and receive call, or SEND/RECEIVE (default 128K).")},
		IPerf: []Flag{reads(oneSize(func(r *plan.Request) *measure.Pair { return &r.Length }), "-l --length", "SIZE", "of a block or a datagram")}},
	{ID: "ramp", Key: OfTraffic, Value: boundedTime("2s or 0.5", 0, measure.MaxRamp, func(r *plan.Request, d time.Duration) { r.Ramp, r.RampSet = d, true }),
		Flags: []Flag{flag(ofAmounts, "-O --omit", "SECONDS", "Ramp that is not counted (default: 20 round trips, at least 1 s; explain: 0.4 s).")},
		IPerf: []Flag{flag("", "-O --omit", "SECONDS", "at the beginning that are not counted")}},
	{ID: "repeat", Key: OfPlan, Value: whole(1, 1000, func(r *plan.Request) *int { return &r.Repeat }), Flags: []Flag{orNone(flag(ofAmounts, "--repeat", "N", "Runs of each cell (default 1)."))}},
	{ID: "precision", Key: OfPlan, Value: parsed("2.5%", share, func(r *plan.Request, pct float64) { r.PrecisionPct = pct }), Flags: []Flag{orNone(flag(ofAmounts, "--precision", "PCT", "Repeat until the 95% interval is this narrow, such as 2.5%: 5 to 15 runs."))}},
	{ID: "acceptance", Value: truth(func(r *plan.Request) *bool { return &r.Acceptance }), Flags: []Flag{yes(ofAmounts, "--acceptance", "60 s x 5 in both directions, for an acceptance record.")}},
}

// ends holds the options of direction and addresses.
var ends = []Option{
	{ID: "one_connection", Key: OfTraffic, Value: truth(func(r *plan.Request) *bool { return &r.OneConnection }), Flags: []Flag{yes(ofEnds, "--one-connection", "With --bidir: both directions on the same connections.")}},
	{ID: "together", Key: OfTraffic, Value: truth(func(r *plan.Request) *bool { return &r.Together }), Flags: []Flag{yes(ofEnds, "--together", "Run at the same time as other clients of the end point with --together.")}},
	{ID: "direction", Key: OfTraffic, Value: direction(),
		Flags: []Flag{
			fixed(ofEnds, "-R --reverse", plan.Reverse, "Only from the end point to here."),
			fixed(ofEnds, "--one-way", plan.Forward, "Only from here to the end point."),
			fixed(ofEnds, "--bidir", plan.Bidir, "Both directions at the same time."),
		},
		IPerf: []Flag{fixed("", "-R --reverse", plan.Reverse, "the server sends"), fixed("", "--bidir", plan.Bidir, "both send")}},
	{ID: "source_address", Value: text("10.0.0.1", func(r *plan.Request) *string { return &r.BindAddr }),
		Flags: []Flag{flag(ofEnds, "-B --bind", "ADDRESS", "Source address of the connections.")},
		IPerf: []Flag{served(reads(addressAndDevice, "-B --bind", "ADDR[%DEV]", "source address, and device"))}},
	{ID: "device", Value: text("eth0", func(r *plan.Request) *string { return &r.BindDev }),
		Flags: []Flag{flag(ofEnds, "--bind-dev", "DEVICE", "Device or VRF of the connections.")},
		IPerf: []Flag{served(flag("", "--bind-dev", "DEV", "device or VRF"))}},
	{ID: "client_port", Key: OfTraffic, Value: whole(1, 65535, func(r *plan.Request) *int { return &r.BindPort }),
		Flags: []Flag{orNone(flag(ofEnds, "--cport", "PORT", "First source port; stream n uses PORT+n."))},
		IPerf: []Flag{flag("", "--cport", "PORT", "source port of the first stream")}},
	{ID: "data_address", Value: text("10.0.0.1", func(r *plan.Request) *string { return &r.DataAddr }), Flags: []Flag{flag(ofEnds, "--data-addr", "ADDRESS", "Address for data connections (default: that for control).")}},
	{ID: "end_points", Key: OfTraffic, Value: whole(1, 1<<20, func(r *plan.Request) *int { return &r.EndPoints })},
}

// sockets holds the socket options.
var sockets = []Option{
	{ID: "dont_fragment", Key: OfTraffic, Value: truth(func(r *plan.Request) *bool { return &r.DontFragment }),
		Flags: []Flag{yes(ofSockets, "--dont-fragment", "With -u: refuse datagrams above the path's MTU.")},
		IPerf: []Flag{yes("", "--dont-fragment", "with -u: no datagram above the path's MTU")}},
	{ID: "window", Key: OfTraffic, Value: sizes("800K, 4M or 1M/256K", measure.MaxWindow, func(r *plan.Request) *measure.Pair { return &r.Window }),
		Flags: []Flag{flag(ofSockets, "-w --window", "SIZE", "Socket buffer of both ends, or SENDER/RECEIVER (default: the kernel tunes it).")},
		IPerf: []Flag{reads(oneSize(func(r *plan.Request) *measure.Pair { return &r.Window }), "-w --window", "SIZE", "of the socket buffers")}},
	{ID: "congestion", Key: OfTraffic, Value: parsed("bbr", congestion, func(r *plan.Request, name string) { r.Congestion = name }),
		Flags: []Flag{flag(ofSockets, "-C --congestion --linux-congestion --tcp-congestion", "NAME", "Congestion control of both ends, such as cubic, reno or bbr.")},
		IPerf: []Flag{flag("", "-C --congestion --linux-congestion", "NAME", "congestion control")}},
	{ID: "mss", Key: OfTraffic, Value: whole(88, 32767, func(r *plan.Request) *int { return &r.MSS }),
		Flags: []Flag{orNone(flag(ofSockets, "-M --set-mss --mss", "BYTES", "Maximum segment size."))},
		IPerf: []Flag{orNone(flag("", "-M --set-mss", "BYTES", "maximum segment size"))}},
	{ID: "no_delay", Key: OfTraffic, Value: truth(func(r *plan.Request) *bool { return &r.NoDelay }),
		Flags: []Flag{yes(ofSockets, "-N --no-delay --nodelay", "Disable Nagle's algorithm.")},
		IPerf: []Flag{yes("", "-N --no-delay", "no Nagle's algorithm")}},
	{ID: "dscp", Key: OfTraffic, Value: parsed("46, ef or af41", plan.ParseDSCP, func(r *plan.Request, n int) { r.DSCP = n }),
		Flags: []Flag{flag(ofSockets, "--dscp", "VALUE", "0 to 63, or a name such as ef, af41, cs1.")},
		IPerf: []Flag{flag("", "--dscp", "VALUE", "code point, or its name"), reads(typeOfService, "-S --tos", "BYTE", "type of service: four times the code point")}},
	{ID: "ip", Key: OfTraffic, Value: family(),
		Flags: []Flag{fixed(ofSockets, "-4 --version4", "4", "Only IPv4."), fixed(ofSockets, "-6 --version6", "6", "Only IPv6.")},
		IPerf: []Flag{served(fixed("", "-4 --version4", "4", "only IPv4")), served(fixed("", "-6 --version6", "6", "only IPv6"))}},
}

// cpus holds the options of data path and CPU placement.
var cpus = []Option{
	{ID: "io", Key: OfTraffic, Value: dataPath(),
		Flags: []Flag{
			fixed(ofCPU, "-Z --zerocopy", measure.IOSendfile, "Send without copying (sendfile), as iperf3 does."),
			fixed(ofCPU, "--lean", measure.IOLean, "Copy at neither end: a sender without copies, and a receiver that discards the data. Shows what the path carries without copying at the hosts."),
			{Names: "--io", Place: "NAME", Group: ofCPU, Help: "Force a data path: copy, sendfile, lean or portable; with -u gso, mmsg or portable.", Set: forcedPath},
		},
		IPerf: []Flag{fixed("", "-Z --zerocopy", measure.IOSendfile, "send without copying")}},
	{ID: "affinity", Key: OfTraffic, Value: Value{Like: `0, "0,1" or off`, Set: bothCPUs}, Flags: []Flag{{Names: "-A --affinity", Place: "N[,M]", Group: ofCPU, Help: "CPU of the local end, and of the peer; off leaves both to the scheduler.", Set: localCPU}},
		IPerf: []Flag{served(reads(leadingCPUs, "-A --affinity", "N[,M]", "CPU of this end, and of the server's"))}},
	{ID: "cpus", Key: OfTraffic, Value: whole(1, 1024, func(r *plan.Request) *int { return &r.CPUs })},
}

// runs holds the options of reporting and repeating.
var runs = []Option{
	{ID: "interval", Value: interval(time.Hour),
		Flags: []Flag{last(flag(ofOutput, "-i --interval", "SECONDS", "Interval of the live figures; 0 for none."))},
		IPerf: []Flag{served(reads(interval(time.Minute).Set, "-i --interval", "SECONDS", "between reports; 0 for none"))}},
	{ID: "user", Value: text("anna", func(r *plan.Request) *string { return &r.Login.User }),
		Flags: []Flag{flag(ofIPerf, "--username", "NAME", "User name for an iperf3 server with logins; the password comes from IPERF3_PASSWORD or a prompt.")},
		IPerf: []Flag{flag("", "--username", "USER", "to log in; password: $IPERF3_PASSWORD or asked")}},
	{ID: "public_key", Value: text("server.pem", func(r *plan.Request) *string { return &r.Login.PublicKey }),
		Flags: []Flag{flag(ofIPerf, "--rsa-public-key-path", "FILE", "Public RSA key of that server.")},
		IPerf: []Flag{flag("", "--rsa-public-key-path", "FILE", "key of the server")}},
	{ID: "older_padding", Value: truth(func(r *plan.Request) *bool { return &r.Login.PKCS1 }),
		Flags: []Flag{yes(ofIPerf, "--use-pkcs1-padding", "Use the padding of iperf3 before 3.17.")},
		IPerf: []Flag{served(yes("", "--use-pkcs1-padding", "for servers before 3.17: the older padding"))}},
	{ID: "title", Value: text("uplink", func(r *plan.Request) *string { return &r.Title }), IPerf: []Flag{flag("", "-T --title", "TEXT", "before every line")}},
	{ID: "extra_data", Value: text("rack 4", func(r *plan.Request) *string { return &r.Extra }), IPerf: []Flag{flag("", "--extra-data", "TEXT", "to store in the JSON document")}},
	{ID: "server_output", Value: truth(func(r *plan.Request) *bool { return &r.FarOutput }),
		Flags: []Flag{yes(ofIPerf, "--get-server-output", "Fetch the output of an iperf3 server, and store it in the result.")},
		IPerf: []Flag{yes("", "--get-server-output", "print the server's report too")}},
	{ID: "link_rate", Key: OfPlan, Value: link(), Flags: []Flag{first(flag(ofOutput, "--link-rate", "RATE", "Nominal rate of the link, such as 10G, for ceiling and verdict (1G/l2: counted in frames, as shapers do). With several rungs: that of the topmost, or RUNG=RATE,RUNG=RATE."))}},
	{ID: "capture", Value: Value{Kind: Truth, Set: func(r *plan.Request, _ string) error { r.Capture = measure.DefaultCapture; return nil }},
		Flags: []Flag{{Names: "--capture", Value: "true", Group: "Packets", First: true, Help: "Capture the test's packets at both ends, as evidence: needs root at both, and the join string of thru serve --allow capture (thru help capture)."}}},
	{ID: "capture_packets", Value: whole(1, measure.MaxCapture, func(r *plan.Request) *int64 { return &r.Capture }), Flags: []Flag{last(flag("Packets", "--capture-packets", "N", "Most packets to capture at each end (default 300000)."))}},
}

func flag(group, names, place, help string) Flag {
	return Flag{Names: names, Place: place, Group: group, Help: help}
}

func fixed(group, names, value, help string) Flag {
	return Flag{Names: names, Value: value, Group: group, Help: help}
}

func yes(group, names, help string) Flag { return fixed(group, names, "true", help) }

// reads returns a flag of iperf3 whose value differs from thru's.
func reads(set func(*plan.Request, string) error, names, place, help string) Flag {
	return Flag{Names: names, Place: place, Help: help, Set: set}
}

// served marks a flag that iperf3's server accepts, too.
func served(f Flag) Flag {
	f.Serve = true
	return f
}

func last(f Flag) Flag {
	f.Last = true
	return f
}

// first marks a flag that comes before the command's own flags of its group; repeated flags add up.
func first(f Flag) Flag {
	f.First, f.Many = true, true
	return f
}

// orNone marks a flag whose value 0 means not given.
func orNone(f Flag) Flag {
	f.None = true
	return f
}
