//go:build interop

package interop

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"thru/lab"
)

// lossRule drops 1% of the datagrams of a test that a host receives, and counts them.
const lossRule = `table inet loss {
	chain input {
		type filter hook prerouting priority -300
		udp length > 1000 numgen random mod 100 < 1 counter drop
	}
}
`

var dropCounter = regexp.MustCompile(`counter packets (\d+)`)

// lossy makes a host lose datagrams until the test ends; the function tells
// how many it lost: by the rule, and because no socket had a place for them.
func lossy(t *testing.T, h *lab.Host) func() int64 {
	t.Helper()
	h.Nft(lossRule)
	t.Cleanup(func() { h.Nft("delete table inet loss\n") })
	before := unheard(t, h)
	return func() int64 {
		found := dropCounter.FindStringSubmatch(h.Must("nft", "list", "table", "inet", "loss"))
		if found == nil {
			t.Fatal("nft shows no counter")
		}
		n, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n + unheard(t, h) - before
	}
}

// unheard counts the datagrams that found no socket, or a full one: an iperf2
// server opens a socket for each stream when its first datagram has come.
func unheard(t *testing.T, h *lab.Host) (n int64) {
	t.Helper()
	var names []string
	for line := range strings.Lines(h.Must("cat", "/proc/net/snmp")) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Udp:" {
			continue
		}
		for i, name := range names {
			if v, err := strconv.ParseInt(f[i], 10, 64); err == nil && (name == "NoPorts" || name == "RcvbufErrors") {
				n += v
			}
		}
		names = f
	}
	return n
}

// TestInteropLoss judges what both ends say of a path that loses 1%, against
// what it has lost: datagrams, not the large ones that segmentation offload
// sends them in.
func TestInteropLoss(t *testing.T) {
	lab.Require(t, lab.Program("nft"), lab.Program("ethtool"))
	p, at := newPair(t), &ports{5300}
	for _, h := range []*lab.Host{p.A, p.B} {
		h.Must("ethtool", "-K", lab.DataDev, "gso", "off", "tso", "off", "gro", "off", "tx-udp-segmentation", "off")
	}
	shape := Shape{UDP: true, Streams: 1, NoRamp: true, Rate: 50_000_000}
	for _, way := range []Way{Forward, Reverse} {
		s := shape
		s.Way = way
		for _, name := range judges() {
			t.Run(Thru+"-"+name+"/"+s.String(), func(t *testing.T) {
				port := at.next()
				report := realServer(t, p.B, p.Data.B4, name, port, s)
				lost := lossy(t, receiver(p, s))
				client, err := thruClient(t, p.A, p.Data.B4, name, port, s)
				compareLoss(t, Thru+" -> "+name, s, client, err, report, lost)
			})
		}
	}
	server := serve(t, p.B)
	for _, way := range []Way{Forward, Reverse} {
		s := shape
		s.Way = way
		for _, name := range judges() {
			t.Run(name+"-"+Thru+"/"+s.String(), func(t *testing.T) {
				lost := lossy(t, receiver(p, s))
				n := server.told()
				client, err := realClient(t, p.A, p.Data.B4, name, servedPort(name), s)
				compareLoss(t, name+" -> "+Thru, s, client, err, func() (Report, error) { return server.report(n) }, lost)
			})
		}
	}
}

// receiver is the host that the data goes to.
func receiver(p *lab.Pair, s Shape) *lab.Host {
	if s.Way == Reverse {
		return p.A
	}
	return p.B
}

func compareLoss(t *testing.T, who string, s Shape, client Report, err error, report func() (Report, error), lost func() int64) {
	t.Helper()
	server, serr := report()
	switch {
	case err != nil:
		results.fail(t, who, s.String()+" 1% loss", err)
	case serr != nil:
		results.fail(t, who, s.String()+" 1% loss", serr)
	default:
		results.add(t, JudgeLoss(who, s, client, server, lost()))
	}
}

// TestInteropTogether judges eight real clients at the same time, each from an
// address of its own, against one thru.
func TestInteropTogether(t *testing.T) {
	p := newPair(t)
	server := serve(t, p.B)
	type one struct {
		name string
		s    Shape
		addr string
		p    *program
	}
	var all []one
	for i := range 8 {
		c := one{name: IPerf3, s: Shape{Way: Forward, Streams: 1, Rate: 50_000_000, UDP: i%2 == 1}, addr: fmt.Sprintf("10.77.0.%d", 11+i)}
		if i%4 > 1 {
			c.name = IPerf2
		}
		p.A.IP("addr", "add", c.addr+"/24", "dev", lab.DataDev)
		args := append(ClientArgs(c.name, p.Data.B4.String(), servedPort(c.name), c.s), "-B", c.addr)
		c.p = start(t, p.A, programLimit, c.name, args...)
		all = append(all, c)
	}
	for _, c := range all {
		who := c.name + " -> " + Thru
		c.s.Streams = 1
		client, err := Report{}, c.p.wait(programLimit)
		if err == nil && c.name == IPerf2 {
			client, err = ReadIPerf2(c.p.stdout.bytes(), p.Data.B4.String(), false, 1)
		} else if err == nil {
			client, err = ReadIPerf3(c.p.stdout.bytes())
		}
		if err != nil {
			results.fail(t, who, c.s.String()+" one of 8", err)
			continue
		}
		told, err := server.reportOf(c.addr)
		if err != nil {
			results.fail(t, who, c.s.String()+" one of 8", err)
			continue
		}
		rows := Judge(who, c.s, client, told)
		for i := range rows {
			rows[i].What += " one of 8"
		}
		results.add(t, rows...)
	}
}

// TestInteropCapture judges the packets: what tshark knows of the protocol it
// must find well formed.
func TestInteropCapture(t *testing.T) {
	lab.Require(t, lab.Program("tcpdump"), lab.Program("tshark"))
	p, at := newPair(t), &ports{5300}
	known := dissectors(t)
	for _, name := range []string{IPerf2, IPerf3} {
		protocol := map[string]string{IPerf2: "iperf2", IPerf3: "iperf3"}[name]
		if !known[protocol] {
			results.leave("packets of "+protocol, "this tshark knows no such protocol; TCP and UDP below it are judged")
		}
		for _, s := range []Shape{{UDP: true, Way: Forward}, {UDP: true, Way: Reverse}, {Way: Forward}, {Way: Bidir}} {
			s.Streams, s.Rate, s.Seconds = 1, 2_000_000, 1
			decode := ""
			if known[protocol] && s.UDP {
				decode = protocol
			}
			t.Run(Thru+"-"+name+"/"+s.String(), func(t *testing.T) {
				port := at.next()
				report := realServer(t, p.B, p.Data.B4, name, port, s)
				file := capture(t, p.B, port)
				_, err := thruClient(t, p.A, p.Data.B4, name, port, s)
				if _, serr := report(); err == nil {
					err = serr
				}
				dissect(t, Thru+" -> "+name, s, file(), port, decode, err)
			})
			t.Run(name+"-"+Thru+"/"+s.String(), func(t *testing.T) {
				serve(t, p.B)
				port := servedPort(name)
				file := capture(t, p.B, port)
				_, err := realClient(t, p.A, p.Data.B4, name, port, s)
				dissect(t, name+" -> "+Thru, s, file(), port, decode, err)
			})
		}
	}
}

// dissectors are the protocols of iperf that tshark knows.
func dissectors(t *testing.T) map[string]bool {
	t.Helper()
	out, err := tshark("-G", "protocols")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) > 2 && strings.HasPrefix(f[2], "iperf") {
			known[f[2]] = true
		}
	}
	return known
}

func tshark(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), programLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tshark", args...).Output()
	return string(out), err
}

// capture writes a host's packets of a port to a file, whose name the function
// gives when all are there.
func capture(t *testing.T, h *lab.Host, port int) func() string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "packets.pcap")
	p := start(t, h, programLimit, "tcpdump", "-i", lab.DataDev, "-U", "-w", file, fmt.Sprintf("port %d", port))
	lab.Eventually(t, 10*time.Second, "tcpdump listens", func() bool { return strings.Contains(string(p.stderr.bytes()), "listening on") })
	return func() string {
		time.Sleep(300 * time.Millisecond)
		p.interrupt()
		return file
	}
}

// dissect prints how many packets there are, and how many of them are malformed.
func dissect(t *testing.T, who string, s Shape, file string, port int, decode string, err error) {
	t.Helper()
	r := Row{Who: who, What: s.String() + " packets", Client: "-", Server: "-"}
	lines := func(filter string) (n int) {
		args := []string{"-r", file, "-Y", filter, "-T", "fields", "-e", "frame.number"}
		if decode != "" {
			args = append(args, "-d", fmt.Sprintf("udp.port==%d,%s", port, decode))
		}
		out, terr := tshark(args...)
		if err == nil {
			err = terr
		}
		return strings.Count(out, "\n")
	}
	seen := "tcp or udp"
	if decode != "" {
		seen = decode
	}
	all, bad := lines(seen), lines("_ws.malformed")
	r.Client, r.Server = fmt.Sprintf("%d of %s", all, strings.ReplaceAll(seen, " or ", "/")), fmt.Sprintf("%d malformed", bad)
	switch {
	case err != nil:
		r.Miss = strings.TrimSpace(err.Error())
	case all < 10:
		r.Miss = "hardly a packet is of the protocol"
	case bad > 0:
		r.Miss = "tshark finds malformed packets"
	}
	results.add(t, r)
}
