package lab

import (
	"context"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/lab/wire"
)

// tcpShare is the share of a frame of MTU 1500 that is payload of TCP with timestamps over IPv4.
const tcpShare = 1448.0 / 1514

// wired is a path for a test whose tolerances allow for a busy machine.
func wired(t *testing.T, o WiredOptions, needs ...string) *Wired {
	t.Helper()
	for _, name := range needs {
		Require(t, Program(name))
	}
	return NewWired(t, o)
}

// goodput runs a second of iperf3 from A to B, or back with "-R".
func (x *Wired) goodput(t *testing.T, args ...string) float64 {
	t.Helper()
	return iperf3(t, x.Pair, append([]string{"-c", x.Data.B4.String(), "-t", "1", "-O", "0.3"}, args...)...)
}

// since returns what a direction counts during do.
func (x *Wired) since(d wire.Direction, do func()) wire.Counters {
	before := x.Wire.Counters(d)
	do()
	c := x.Wire.Counters(d)
	for _, p := range []struct{ now, then *wire.Count }{
		{&c.In, &before.In}, {&c.Out, &before.Out}, {&c.Oversize, &before.Oversize}, {&c.MTU, &before.MTU},
		{&c.Police, &before.Police}, {&c.Lost, &before.Lost}, {&c.Queue, &before.Queue}, {&c.Refused, &before.Refused},
		{&c.Duplicated, &before.Duplicated}, {&c.Reordered, &before.Reordered}, {&c.ICMP, &before.ICMP}, {&c.Rewritten, &before.Rewritten},
	} {
		p.now.Packets -= p.then.Packets
		p.now.Bytes -= p.then.Bytes
	}
	return c
}

// TestWiredEnds: all parts of the path are removed with the test.
func TestWiredEnds(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("lab", func(t *testing.T) {
		x := wired(t, WiredOptions{AtoB: wire.Impairment{Delay: time.Second}}, "ping")
		_, _ = x.A.Output("ping", "-c", "1", "-W", "0.1", x.Data.B4.String()) // in flight at the end
		if c := x.Wire.Counters(wire.AtoB); c.In.Packets == 0 {
			t.Errorf("nothing went by the path: %+v", c)
		}
	})
	goleak.VerifyNone(t, before)
}

// TestWiredDelay: a ping measures the sum of both delays, over IPv4 and IPv6.
func TestWiredDelay(t *testing.T) {
	t.Parallel()
	x := wired(t, WiredOptions{AtoB: wire.Impairment{Delay: 30 * time.Millisecond}, BtoA: wire.Impairment{Delay: 10 * time.Millisecond}}, "ping")
	for _, addr := range []netip.Addr{x.Data.B4, x.Data.B6} {
		out := x.A.Must("ping", "-c", "5", "-i", "0.1", addr.String())
		found := regexp.MustCompile(`rtt min/avg/max/mdev = ([0-9.]+)/`).FindStringSubmatch(out)
		if found == nil {
			t.Fatalf("ping printed %q", out)
		}
		if ms, err := strconv.ParseFloat(found[1], 64); err != nil || ms < 40 || ms > 80 {
			t.Errorf("%s: RTT %s ms, want 40", addr, found[1])
		}
	}
}

// TestWiredRates checks the rates that TCP reaches, and how the path drops or queues the rest.
func TestWiredRates(t *testing.T) {
	x := wired(t, WiredOptions{}, "iperf3")
	const mega = 1e6
	tests := []struct {
		name      string
		direction wire.Impairment
		args      []string
		min, max  float64 // bit/s
		drops     func(wire.Counters) int64
	}{
		{"a rate", wire.Impairment{Rate: 200 * mega, Delay: time.Millisecond}, nil, 150 * mega, 200 * tcpShare * mega * 1.02, nil},
		{"a short queue", wire.Impairment{Rate: 200 * mega, Queue: 64 << 10, Delay: time.Millisecond}, nil, 50 * mega, 200 * tcpShare * mega * 1.02, func(c wire.Counters) int64 { return c.Queue.Packets }},
		{"a policer", wire.Impairment{PoliceRate: 200 * mega, PoliceBurst: 100e3, Delay: 5 * time.Millisecond}, nil, 30 * mega, 205 * tcpShare * mega, func(c wire.Counters) int64 { return c.Police.Packets }},
		{"one member", wire.Impairment{Members: 2, MemberRate: 100 * mega}, nil, 80 * mega, 100 * mega, nil},
		{"both members", wire.Impairment{Members: 2, MemberRate: 100 * mega}, []string{"-P", "12"}, 120 * mega, 200 * mega, nil},
		{"one flow", wire.Impairment{PerFlowRate: 50 * mega}, nil, 40 * mega, 50 * mega, nil},
		{"four flows", wire.Impairment{PerFlowRate: 50 * mega}, []string{"-P", "4"}, 150 * mega, 200 * mega, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x.Wire.Set(wire.AtoB, tt.direction)
			var got float64
			c := x.since(wire.AtoB, func() { got = x.goodput(t, tt.args...) })
			if got < tt.min || got > tt.max {
				t.Errorf("%.1f Mb/s, want %.1f to %.1f: %+v", got/mega, tt.min/mega, tt.max/mega, c)
			}
			if tt.drops != nil && (tt.drops(c) == 0 || tt.drops(c) != c.Dropped().Packets) {
				t.Errorf("dropped for another reason: %+v", c)
			}
		})
	}
	x.Wire.Set(wire.AtoB, wire.Impairment{})
	x.Wire.Set(wire.BtoA, wire.Impairment{Rate: 50 * mega})
	if got := x.goodput(t, "-R"); got < 40*mega || got > 50*mega {
		t.Errorf("back: %.1f Mb/s of 50", got/mega)
	}
}

// TestWiredDatagrams: the path drops or duplicates each datagram of a super-packet separately, and the
// receiver gets exactly those that the path counts as passed.
func TestWiredDatagrams(t *testing.T) {
	t.Parallel()
	const calls, each = 40, 25
	x := wired(t, WiredOptions{}, "nstat")
	for _, tt := range []struct {
		name      string
		addr      netip.Addr
		direction wire.Impairment
	}{
		{"loss and reordering", x.Data.B4, wire.Impairment{Loss: 0.1, Reorder: 0.1, ReorderDelay: 2 * time.Millisecond, Delay: time.Millisecond}},
		{"bursts and duplicates", x.Data.B6, wire.Impairment{Loss: 0.1, LossBurst: 4, Duplicate: 0.1}},
	} {
		tt.direction.Rate, tt.direction.Queue = 50e6, 10<<20 // slow enough for the receiver, with room for all
		x.Wire.Set(wire.AtoB, tt.direction)
		to := netip.AddrPortFrom(tt.addr, udpPort).String()
		r := receive(t, x.B, to, true)
		full := x.B.kernelCounts(t, "UdpRcvbufErrors", "Udp6RcvbufErrors")
		got := 0
		c := x.since(wire.AtoB, func() {
			send(t, x.A, to, calls, each)
			Eventually(t, 5*time.Second, "all has arrived", func() bool {
				now := x.Wire.Counters(wire.AtoB)
				return now.In.Packets == now.Out.Packets-now.Duplicated.Packets+now.Dropped().Packets
			})
			got = r.stop()
		})
		got += x.B.kernelCounts(t, "UdpRcvbufErrors", "Udp6RcvbufErrors") - full // arrived, but not read in time
		others := int(c.In.Packets) - calls*each                                 // multicast of the kernel
		changed := int(c.Lost.Packets + c.Duplicated.Packets + c.Reordered.Packets)
		want := calls*each - int(c.Lost.Packets) + int(c.Duplicated.Packets)
		if others < 0 || got < want-others || got > want+others || changed < calls*each/25 || changed > calls*each/2 {
			t.Errorf("%s: %d of %d came, %d should have: %+v", tt.name, got, calls*each, want, c)
		}
	}
}

// kernelCounts is the sum of some counters of a host, by their names in nstat(8).
func (h *Host) kernelCounts(t *testing.T, names ...string) (sum int) {
	t.Helper()
	for line := range strings.Lines(h.Must("nstat", append([]string{"-asz"}, names...)...)) {
		if f := strings.Fields(line); len(f) > 1 && !strings.HasPrefix(line, "#") {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatalf("nstat printed %q", line)
			}
			sum += n
		}
	}
	return sum
}

// TestWiredMTU: a path with a small MTU drops packets, and with a router that sends ICMP the sender learns
// the MTU, for ping and TCP.
func TestWiredMTU(t *testing.T) {
	t.Parallel()
	x := wired(t, WiredOptions{}, "ping", "iperf3")
	x.Wire.Set(wire.AtoB, wire.Impairment{MTU: 1400})
	ping := func(addr netip.Addr, payload int) string {
		out, _ := x.A.Output("ping", "-c", "2", "-i", "0.2", "-W", "0.3", "-M", "do", "-s", strconv.Itoa(payload), addr.String())
		return out
	}
	for addr, header := range map[netip.Addr]int{x.Data.B4: 28, x.Data.B6: 48} {
		if out := ping(addr, 1400-header); !strings.Contains(out, " 0% packet loss") {
			t.Errorf("%s: a packet of the MTU is lost: %s", addr, out)
		}
		if out := ping(addr, 1401-header); !strings.Contains(out, "100% packet loss") || strings.Contains(out, "mtu") {
			t.Errorf("%s: in silence: %s", addr, out)
		}
	}
	x.Wire.Set(wire.AtoB, wire.Impairment{MTU: 1400, ICMP: true, Rate: 100e6})
	for addr, header := range map[netip.Addr]int{x.Data.B4: 28, x.Data.B6: 48} {
		if out := ping(addr, 1401-header); !strings.Contains(out, "mtu = 1400") && !strings.Contains(out, "mtu: 1400") && !strings.Contains(out, "mtu=1400") {
			t.Errorf("%s: with a router that says so: %s", addr, out)
		}
		x.A.IP("route", "flush", "cache")
		x.A.IP("-6", "route", "flush", "cache")
		c := x.since(wire.AtoB, func() {
			if got := iperf3(t, x.Pair, "-c", addr.String(), "-t", "1"); got < 50e6 {
				t.Errorf("%s: %.1f Mb/s of 100", addr, got/1e6)
			}
		})
		if c.ICMP.Packets == 0 || c.MTU.Packets == 0 {
			t.Errorf("%s: TCP was told nothing: %+v", addr, c)
		}
	}
}

// TestWiredOptions: the options of a connection that remain, as the sender's kernel reports them.
func TestWiredOptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		direction wire.Impairment
		has, lost string // words of ss(8)
	}{
		{wire.Impairment{}, " ts sack cubic wscale:", " mss:888"},
		{wire.Impairment{StripTimestamps: true}, " sack cubic wscale:", " ts "},
		{wire.Impairment{StripSACK: true}, " ts cubic wscale:", "sack"},
		{wire.Impairment{StripWScale: true}, " ts sack cubic ", "wscale"},
	}
	x := wired(t, WiredOptions{}, "iperf3", "ss")
	ctx, cancel := context.WithCancel(context.Background())
	server := x.B.Command(ctx, "iperf3", "-s")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer cancel()
	Eventually(t, 5*time.Second, "iperf3 listens", func() bool { return len(x.B.Sockets()) > 0 })
	for _, addr := range []netip.Addr{x.Data.B4, x.Data.B6} {
		for _, tt := range tests {
			x.Wire.Set(wire.AtoB, tt.direction)
			if info := x.info(t, addr); !strings.Contains(info, tt.has) || strings.Contains(info, tt.lost) {
				t.Errorf("%s: want %q and not %q: %s", addr, tt.has, tt.lost, info)
			}
		}
		x.Wire.Set(wire.AtoB, wire.Impairment{})
		x.Wire.Set(wire.BtoA, wire.Impairment{ClampMSS: 900}) // the SYN-ACK limits what A sends
		if mss := regexp.MustCompile(` mss:(\d+)`).FindStringSubmatch(x.info(t, addr)); mss == nil || mss[1] != "888" {
			t.Errorf("%s: MSS %q, want 900 less 12 of timestamps", addr, mss)
		}
		x.Wire.Set(wire.BtoA, wire.Impairment{})
	}
}

// info returns the line of ss(8) for a connection from A to iperf3 at B.
func (x *Wired) info(t *testing.T, addr netip.Addr) (info string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	client := x.A.Command(ctx, "iperf3", "-c", addr.String(), "-b", "1M")
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	dst := addr.String()
	if addr.Is6() {
		dst = "[" + dst + "]"
	}
	ss := []string{"-Htino", "state", "established", "dst", dst}
	Eventually(t, 5*time.Second, "the client has connected", func() bool {
		info = x.A.Must("ss", ss...)
		return info != ""
	})
	cancel()
	_ = client.Wait() // killed
	Eventually(t, 5*time.Second, "the connections are gone", func() bool {
		return x.A.Must("ss", ss...) == ""
	})
	return info
}

// TestWiredBrokenTSO: the path drops super-packets, so TCP only advances by retransmitting segments one by
// one; with segmentation in the kernel the rate is normal.
func TestWiredBrokenTSO(t *testing.T) {
	t.Parallel()
	x := wired(t, WiredOptions{AtoB: wire.Impairment{DropAbove: 1514, Rate: 500e6}}, "iperf3", "ethtool")
	var broken float64
	c := x.since(wire.AtoB, func() { broken = x.goodput(t) })
	if c.Oversize.Packets == 0 || c.Oversize != c.Dropped() {
		t.Errorf("no super-packet was dropped: %+v", c)
	}
	x.A.Must("ethtool", "-K", DataDev, "tso", "off", "gso", "off")
	var well float64
	c = x.since(wire.AtoB, func() { well = x.goodput(t) })
	if c.Oversize.Packets != 0 || well < 20*broken {
		t.Errorf("%.1f Mb/s with TSO, %.1f without, want 20 times as much: %+v", broken/1e6, well/1e6, c)
	}
}

// TestWiredReordering: the sender's TCP detects reordered packets.
func TestWiredReordering(t *testing.T) {
	t.Parallel()
	x := wired(t, WiredOptions{BtoA: wire.Impairment{Delay: 2 * time.Millisecond}}, "iperf3", "nstat")
	seen := func() int { return x.A.kernelCounts(t, "TcpExtTCPSACKReorder", "TcpExtTCPTSReorder") }
	for share, want := range map[float64]bool{0: false, 0.01: true} {
		x.Wire.Set(wire.AtoB, wire.Impairment{Rate: 100e6, Queue: 4 << 20, Delay: 2 * time.Millisecond, Reorder: share, ReorderDelay: 3 * time.Millisecond})
		before := seen()
		x.goodput(t)
		if got := seen() - before; (got > 0) != want {
			t.Errorf("share %g: TCP has seen reordering %d times", share, got)
		}
	}
}

// TestWiredNoOffloads: the host sends single segments with checksums, and the other end accepts them.
func TestWiredNoOffloads(t *testing.T) {
	t.Parallel()
	x := wired(t, WiredOptions{NoOffloads: true, MTU: 9000, AtoB: wire.Impairment{Rate: 500e6}}, "iperf3")
	before := x.A.Counters(DataDev)
	c := x.since(wire.AtoB, func() {
		if got := x.goodput(t); got < 300e6 {
			t.Errorf("%.1f Mb/s of 500", got/1e6)
		}
	})
	a := x.A.Counters(DataDev).Sub(before)
	if d := int64(a.TxPackets) - c.In.Packets; d < -10 || d > 10 || c.In.Bytes/c.In.Packets < 5000 {
		t.Errorf("the interface has sent %d packets, the path took %+v", a.TxPackets, c.In)
	}
}
