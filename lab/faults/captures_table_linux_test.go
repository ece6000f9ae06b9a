package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab/wire"
)

// Captured is a path on which tcpdump captures at both ends while iperf3 sends data, with the causes that the
// captures must show. A cause that one capture point cannot see must not be found there.
type Captured struct {
	Fault             // Build and Needs of it; its wants of a live test are not used
	Traffic  []string // arguments of iperf3's client, without the time
	Seconds  int      // duration of the traffic; 0 means usualSeconds
	Explain  []string // arguments of thru explain
	Stops    bool     // the receiver's program is stopped most of the time
	Sender   *Want    // from the sender's capture alone; nil: nothing may be found
	Receiver *Want    // from the receiver's capture alone; nil: nothing may be found
	Both     *Want    // from both captures; nil: nothing may be found
	True     []string // causes that are true as well, and may be certain in any capture
}

// usualSeconds is the duration that shows most faults.
const usualSeconds = 4

// Reversed reports whether the server sends the data.
func (c Captured) Reversed() bool { return slices.Contains(c.Traffic, "-R") }

// Captures returns the table of captured paths.
func Captures() []Captured {
	return slices.Concat(windowCaptures(), rateCaptures(), lossCaptures(), orderCaptures(), sizeCaptures(), optionCaptures(), toolCaptures(), healthyCaptures())
}

// known returns the fault of that name from the table of live tests.
func known(name string) Fault {
	all := All()
	if n := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name }); n >= 0 {
		return all[n]
	}
	return Fault{} // TestCapturesTable refuses it
}

// made is a fault that only the captures use.
func made(name, about string, build func(testing.TB) *Scene) Fault {
	return Fault{Name: name, About: about, Build: build}
}

// named returns a row under another name.
func named(c Captured, name string) Captured {
	c.Name = name
	return c
}

// each wants the same from every capture point.
func (c Captured) each(w *Want) Captured {
	c.Sender, c.Receiver, c.Both = w, w, w
	return c
}

// anywhere wants a cause at any place.
func anywhere(cause string) *Want { return &Want{Cause: cause} }

// silent wants no finding, but accepts some causes as suspected.
func silent(why string, causes ...string) *Want { return (&Want{}).or(why, causes...) }

// windowCaptures: windows and buffers that are too small.
func windowCaptures() []Captured {
	window := func(name string, traffic ...string) Captured {
		return Captured{Fault: known(name), Traffic: traffic}.each(is("receive-window", measure.AtReceiver))
	}
	const alike = "in packets a window that a program asked for is like one that the system allows"
	fixed := window("fixed-window", "-w", "64K").each(is("receive-window", measure.AtReceiver).or(alike, "fixed-window"))
	v6 := named(window("receive-window"), "receive-window-v6")
	v6.Build = overIPv6(v6.Build)
	unlike := silent("data under way that stops below the window says that it is the sender, but not why; and iperf3 writes so much at once that a queue fills", "send-buffer", "app-limited", "paced", "shaper")
	off := func(f Fault, end string, sender, receiver *Want) Captured {
		return Captured{Fault: f, Sender: sender, Receiver: receiver, Both: is("window-scaling-off", end), True: []string{"window-scaling-off", "receive-window"}}
	}
	scaling := "window-scaling-off"
	return []Captured{
		window("receive-window"), window("receive-window-1g"), window("receive-window-back", "-R"), v6, fixed,
		{Fault: known("send-buffer"), Sender: unlike, Receiver: unlike, Both: unlike, True: []string{"send-buffer"}},
		Captured{Fault: known("slow-reader"), Stops: true, True: []string{"receive-window"}}.each(is("slow-reader", measure.AtReceiver)),
		off(known(scaling), measure.AtSender, is(scaling, measure.AtSender), anywhere(scaling)),
		off(made("window-scaling-off-server", "the server does not scale windows", overWire(usual(), server("net.ipv4.tcp_window_scaling", "0"))),
			measure.AtReceiver, anywhere(scaling), is(scaling, measure.AtReceiver)),
		off(known("window-scaling-stripped"), measure.AtPath, anywhere(scaling), anywhere(scaling)),
	}
}

// rateCaptures: paths that carry less than their links.
func rateCaptures() []Captured {
	const lost = "what a policer drops is loss too, and its rate may not show in so short a time"
	policer := is("policer", measure.AtPath).or(lost, "loss")
	plateau := silent("a flat rate may be a shaper's", "shaper")
	full := []string{"loss"} // causes of the full queue
	bucket := made("token-bucket-short", "100 MB at 500 Mb/s, then 50 Mb/s", overWire(forward(symmetric(0, usualRTT), func(w *wire.Impairment) {
		w.PeakRate, w.Rate, w.Burst, w.Queue = 500_000_000, 50_000_000, 100<<20, 2<<20
	})))
	return []Captured{
		Captured{Fault: known("shaper"), Explain: flags("--link-rate 1G/l2"), True: full}.each(is("shaper", measure.AtPath)),
		Captured{Fault: known("shaper-one-way"), Explain: flags("--link-rate 400M/l2"), True: full}.each(is("shaper", measure.AtPath)),
		Captured{Fault: known("shaper-own"), Explain: flags("--link-rate 1G/l2"), True: []string{"shaper"}}.each(plateau),
		Captured{Fault: known("cap-per-flow"), Explain: flags("--link-rate 1G/l2"), True: full}.each(is("shaper", measure.AtPath)),
		Captured{Fault: known("policer"), Explain: flags("--link-rate 1G/l2"), True: full}.each(policer),
		Captured{Fault: known("policer-fast"), True: full}.each(policer),
		Captured{Fault: bucket, Seconds: 8, True: []string{"loss", "shaper"}}.each(is("token-bucket", measure.AtPath).or("the lower level is a shaper", "shaper")),
	}
}

// lossCaptures: packet loss.
func lossCaptures() []Captured {
	lossy := func(name string, traffic ...string) Captured {
		return Captured{Fault: known(name), Traffic: traffic, Sender: anywhere("loss"), Receiver: anywhere("loss"), Both: is("loss", measure.AtPath)}
	}
	v6 := named(lossy("loss-0.1"), "loss-0.1-v6")
	v6.Build = overIPv6(v6.Build)
	streams := named(lossy("loss-0.1", "-P", "4"), "loss-0.1-streams")
	burst := lossy("loss-burst")
	one := anywhere("loss").or("one end sees that many are lost in a row, as before a policer", "policer")
	burst.Sender, burst.Receiver = one, one
	slow := lossy("loss-0.01")
	slow.Explain = flags("--link-rate 1G/l2")
	return []Captured{
		slow, lossy("loss-0.1"), lossy("loss-1"), burst, lossy("loss-one-way", "-R"), v6, streams,
		Captured{Fault: made("loss-of-acks", "one acknowledgement in fifty is lost, which costs nothing",
			overWire(swap(forward(usual(), func(w *wire.Impairment) { w.Loss, w.Seed = 0.02, 7 })))), Explain: flags("--link-rate 200M/l2")}.each(well()),
	}
}

// orderCaptures: packets that are reordered or duplicated.
func orderCaptures() []Captured {
	order := func(name string) Captured {
		return Captured{Fault: known(name)}.each(is("reordering", measure.AtPath))
	}
	often := order("reordering-often")
	often.Sender = anywhere("reordering").or("the link is all but full", "shaper")
	mixed := forward(usual(), late(0.01, 300*time.Microsecond))
	mixed.AtoB.Loss = 0.005
	loss := anywhere("loss")
	v6 := lateBy("reordering-5-60ms-v6", 200_000_000, usualRTT, 0.05, 60*time.Millisecond)
	v6.Build = overIPv6(v6.Build)
	return []Captured{
		order("reordering"), often, v6,
		lateBy("reordering-5-18ms", 20_000_000, 5*time.Millisecond, 0.05, 18*time.Millisecond),
		lateBy("reordering-5-12ms", 100_000_000, 2*time.Millisecond, 0.05, 12*time.Millisecond),
		lateBy("reordering-5-60ms", 200_000_000, usualRTT, 0.05, 60*time.Millisecond),
		lateBy("reordering-1-100ms", 1_000_000_000, usualRTT, 0.01, 100*time.Millisecond),
		Captured{Fault: made("reordering-borne", "one packet in twenty is 30 packets late, and the link is full all the same",
			overWire(forward(symmetric(100_000_000, usualRTT), late(0.05, 3600*time.Microsecond)))), Explain: flags("--link-rate 100M/l2"), True: []string{"reordering"}}.each(well()),
		Captured{Fault: made("loss-and-reordering", "one packet in 200 is lost, and one in 100 is overtaken", overWire(mixed)), True: []string{"reordering"}}.each(loss),
		Captured{Fault: known("reordering-little"), Explain: flags("--link-rate 200M/l2"), True: []string{"reordering"}}.each(well()),
		Captured{Fault: made("duplicates", "one packet in fifty arrives twice, which costs nothing", overWire(forward(usual(), func(w *wire.Impairment) { w.Duplicate, w.Seed = 0.02, 7 }))),
			Explain: flags("--link-rate 200M/l2")}.each(well()),
	}
}

// lateBy delays a share of the packets by more than a round trip, so that their retransmissions arrive before
// them.
func lateBy(name string, rate int64, rtt time.Duration, share float64, by time.Duration) Captured {
	about := fmt.Sprintf("%.2g%% of the packets are %v late, of a round trip of %v", 100*share, by, rtt)
	return Captured{Fault: made(name, about, overWire(forward(symmetric(rate, rtt), late(share, by))))}.each(is("reordering", measure.AtPath))
}

// sizeCaptures: packets that are too large for the path.
func sizeCaptures() []Captured {
	const large = "packets say that full segments do not pass; why not, the sizes at both ends say"
	hole := func(name string, traffic ...string) Captured {
		w := is("mtu-black-hole", measure.AtPath).or(large, "jumbo-mismatch")
		return Captured{Fault: known(name), Traffic: traffic, Sender: w, Receiver: silent("nothing but small packets came", "mtu-black-hole", "loss"), Both: w}
	}
	mismatch := hole("jumbo-mismatch")
	mismatch.Sender = is("jumbo-mismatch", measure.AtPath).or(large, "mtu-black-hole")
	mismatch.Both = mismatch.Sender
	return []Captured{
		hole("mtu-black-hole"), hole("mtu-black-hole-1400"), hole("mtu-black-hole-back", "-R"), mismatch,
		{Fault: known("broken-tso-far"), Explain: flags("--link-rate 500M/l2"), Sender: is("broken-tso", measure.AtSender),
			Receiver: silent("to the receiver it is loss", "loss", "broken-tso"), Both: is("broken-tso", measure.AtSender), True: []string{"loss"}},
		Captured{Fault: made("path-mtu-told", "a link of 1400 on the way, and its router says so", overWire(both(usual(), func(w *wire.Impairment) { w.MTU, w.ICMP = 1400, true }))),
			Explain: flags("--link-rate 200M/l2")}.each(well()),
	}
}

// optionCaptures: TCP options that are off.
func optionCaptures() []Captured {
	const less = "the loss is what it makes worse"
	clamp := anywhere("mss-clamp").or("the rate is that of the link but for headers", Healthy()...)
	sack := func(w *Want) *Want { return w.or(less, "loss") }
	stripped := made("sack-stripped", "a box takes the option out of the SYN, on a path that loses 0.2%",
		overWire(forward(both(usual(), func(w *wire.Impairment) { w.StripSACK = true }), func(w *wire.Impairment) { w.Loss, w.LossBurst, w.Seed = 0.002, 3, 7 })))
	proxy := with(well(), "tcp-proxy")
	both := []string{"loss", "sack-off"}
	return []Captured{
		{Fault: known("mss-clamp"), Explain: flags("--link-rate 200M/l2"), Sender: clamp, Receiver: clamp, Both: is("mss-clamp", measure.AtPath), True: []string{"mss-clamp"}},
		{Fault: known("sack-off"), Sender: sack(is("sack-off", measure.AtSender)), Receiver: sack(anywhere("sack-off")), Both: sack(is("sack-off", measure.AtSender)), True: both},
		{Fault: stripped, Sender: sack(anywhere("sack-off")), Receiver: sack(anywhere("sack-off")), Both: sack(is("sack-off", measure.AtPath)), True: both},
		{Fault: made("tcp-proxy", "the router ends connections and begins others", behindProxy), Explain: flags("--link-rate 200M/l2"),
			Sender: well(), Receiver: well(), Both: proxy, True: []string{"tcp-proxy"}},
		Captured{Fault: known("timestamps-off"), Explain: flags("--link-rate 200M/l2"), True: []string{"timestamps-off"}}.each(with(well(), "timestamps-off")),
	}
}

// toolCaptures: a sender that has no more data to send.
func toolCaptures() []Captured {
	idle := silent("the sender sends no more; why, its packets may suggest", "app-limited", "paced", "send-buffer")
	bound := overWire(usual())
	return []Captured{
		Captured{Fault: made("app-limited", "the program writes 20 Mb/s", bound), Traffic: flags("-b 20M -l 8K"), True: []string{"app-limited"}}.each(idle),
		Captured{Fault: made("paced", "the socket is paced at 20 Mb/s", bound), Traffic: flags("--fq-rate 20M"), True: []string{"paced"}}.each(idle),
	}
}

// healthyCaptures: nothing is wrong.
func healthyCaptures() []Captured {
	fills := well().or("the beginning is in it", "slow-convergence")
	rated := func(name, rate string, traffic ...string) Captured {
		return Captured{Fault: known(name), Traffic: traffic, Explain: flags("--link-rate %s/l2", rate)}.each(fills)
	}
	v6 := named(rated("healthy-200M-20ms", "200M"), "healthy-200M-v6")
	v6.Build = overIPv6(v6.Build)
	bare := roomy(50_000_000, 20*time.Millisecond)
	bare.NoOffloads = true
	return []Captured{
		rated("healthy-50M-20ms", "50M"), rated("healthy-200M-2ms", "200M"), rated("healthy-200M-20ms", "200M"), rated("healthy-200M-80ms", "200M"),
		rated("healthy-1000M-2ms", "1G"), rated("healthy-1000M-20ms", "1G"), rated("healthy-2500M-2ms", "2500M"), rated("healthy-1000M-0ms", "1G"),
		rated("healthy-jumbo", "1G"), rated("healthy-window", "1G"), rated("healthy-bbr", "200M", "-C", "bbr"), v6,
		rated("healthy-streams", "200M", "-P", "4"),
		named(rated("healthy-200M-20ms", "200M", "-R"), "healthy-back"),
		named(rated("healthy-200M-20ms", "200M", "--bidir"), "healthy-both-ways"),
		Captured{Fault: made("healthy-no-offloads", "nothing; without offloads", overWire(bare)), Explain: flags("--link-rate 50M/l2")}.each(fills),
		Captured{Fault: known("unstated-200M-20ms")}.each(full()),
		Captured{Fault: known("veth")}.each(silent("packets do not show CPUs", "receive-window", "app-limited", "slow-reader")),
	}
}

// overIPv6 is the same scene with the server's IPv6 address.
func overIPv6(build func(testing.TB) *Scene) func(testing.TB) *Scene {
	return func(t testing.TB) *Scene {
		t.Helper()
		s := build(t)
		s.Target = "fd00:77::2"
		return s
	}
}

// Look is one set of captures of a test: that of one end, or both.
type Look struct {
	Name  string // "s", "r", "sr"
	Want  *Want
	Files []string
}

// Looks returns the three sets of captures, from files in a folder.
func (c Captured) Looks(dir string) []Look {
	f := c.FilesIn(dir)
	return []Look{{"s", c.Sender, []string{f.Sender}}, {"r", c.Receiver, []string{f.Receiver}}, {"sr", c.Both, []string{f.Sender, f.Receiver}}}
}

// JudgeLook compares a document with what one set of captures must show.
func (c Captured) JudgeLook(l Look, d *measure.Document) Row {
	r := Row{Fault: c.Name, Direction: l.Name, Elapsed: time.Duration(d.ElapsedNs)}
	if l.Want != nil {
		r.Want = *l.Want
	}
	if len(d.Cells) == 0 {
		r.read(d, nil)
		return r
	}
	r.read(d, &d.Cells[0])
	holds := slices.Concat([]string{r.Want.Cause, r.Want.With, measure.CauseNone}, r.Want.Or, c.True)
	for _, x := range d.Cells[0].Findings {
		if x.Confidence == measure.Certain && !slices.Contains(holds, x.Cause) {
			r.False = append(r.False, x.Cause)
		}
	}
	return r
}
