//go:build interop

package interop

import (
	"cmp"
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

// lossRule drops 1% of the received datagrams of a test, and counts them.
const lossRule = `table inet loss {
	chain input {
		type filter hook prerouting priority -300
		udp length > 1000 numgen random mod 100 < 1 counter drop
	}
}
`

var dropCounter = regexp.MustCompile(`counter packets (\d+)`)

// lossy makes a host lose datagrams until the returned function is called, which returns how many the rule
// dropped, and how many found no room in a socket.
func lossy(t *testing.T, h *lab.Host) func() (dropped, unplaced int64) {
	t.Helper()
	h.Nft(lossRule)
	before := unplaced(t, h)
	return func() (int64, int64) {
		defer h.Nft("delete table inet loss\n")
		found := dropCounter.FindStringSubmatch(h.Must("nft", "list", "table", "inet", "loss"))
		if found == nil {
			t.Fatal("nft shows no counter")
		}
		n, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n, unplaced(t, h) - before
	}
}

// unplaced counts the datagrams without a socket, or with a full one: an iperf2 server opens a socket for
// each stream when its first datagram arrives.
func unplaced(t *testing.T, h *lab.Host) (n int64) {
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

// TestInteropLoss compares the reports of both ends on a path with 1% loss with the drops of the path:
// counted in datagrams, not in the super-packets of segmentation offload.
func TestInteropLoss(t *testing.T) {
	lab.Require(t, lab.Program("nft"), lab.Program("ethtool"))
	p, at := newPair(t), &ports{5300}
	for _, h := range []*lab.Host{p.A, p.B} {
		h.Must("ethtool", "-K", lab.DataDev, "gso", "off", "tso", "off", "gro", "off", "tx-udp-segmentation", "off")
	}
	shape := Shape{UDP: true, Streams: 1, NoRamp: true, Rate: 50_000_000}
	for _, direction := range []Direction{Forward, Reverse} {
		s := shape
		s.Direction = direction
		for _, name := range judges() {
			t.Run(Thru+"-"+name+"/"+s.String(), func(t *testing.T) {
				results.judge(t, func(t *testing.T) []Row {
					port := at.next()
					report := realServer(t, p.B, p.Data.B4, name, port, s)
					lost := lossy(t, receiver(p, s))
					client, err := thruClient(t, p.A, p.Data.B4, name, port, s)
					return compareLoss(Thru+" -> "+name, s, client, err, report, lost)
				})
			})
		}
	}
	server := serve(t, p.B)
	for _, direction := range []Direction{Forward, Reverse} {
		s := shape
		s.Direction = direction
		for _, name := range judges() {
			if LeftOut(kind(name), Thru, s) != "" { // reported already
				continue
			}
			t.Run(name+"-"+Thru+"/"+s.String(), func(t *testing.T) {
				results.judge(t, func(t *testing.T) []Row {
					lost := lossy(t, receiver(p, s))
					n := server.told()
					client, err := realClient(t, p.A, p.Data.B4, name, servedPort(name), s)
					return compareLoss(name+" -> "+Thru, s, client, err, func() (Report, error) { return server.report(n) }, lost)
				})
			})
		}
	}
}

// receiver returns the host that receives the data.
func receiver(p *lab.Pair, s Shape) *lab.Host {
	if s.Direction == Reverse {
		return p.A
	}
	return p.B
}

func compareLoss(who string, s Shape, client Report, err error, report func() (Report, error), lost func() (int64, int64)) []Row {
	server, serr := report()
	dropped, unplaced := lost()
	if err = cmp.Or(err, serr); err != nil {
		return failed(who, s.String()+" 1% loss", err)
	}
	return []Row{JudgeLoss(who, s, client, server, dropped, unplaced)}
}

// caller is one of several simultaneous clients, with its own address.
type caller struct {
	name string
	s    Shape
	addr string
}

// TestInteropTogether checks eight simultaneous real clients of one thru.
func TestInteropTogether(t *testing.T) {
	p := newPair(t)
	server := serve(t, p.B)
	var all []caller
	for i := range 8 {
		c := caller{IPerf3, Shape{Direction: Forward, Streams: 1, Rate: 50_000_000, UDP: i%2 == 1}, fmt.Sprintf("10.77.0.%d", 11+i)}
		if i%4 > 1 {
			c.name = IPerf2
		}
		p.A.IP("addr", "add", c.addr+"/24", "dev", lab.DataDev)
		all = append(all, c)
	}
	results.judge(t, func(t *testing.T) (rows []Row) {
		before := server.told()
		var running []*program
		for _, c := range all {
			args := append(ClientArgs(c.name, p.Data.B4.String(), servedPort(c.name), c.s), "-B", c.addr)
			running = append(running, start(t, p.A, programLimit, c.name, args...))
		}
		for i, c := range all {
			rows = append(rows, c.verdict(running[i], p.Data.B4.String(), server, before)...)
		}
		return rows
	})
}

// verdict returns the rows of one of the clients.
func (c caller) verdict(p *program, at string, server thruServer, before int) []Row {
	who, what := c.name+" -> "+Thru, c.s.String()+" one of 8"
	client, err := Report{}, p.wait(programLimit)
	switch {
	case err != nil:
	case c.name == IPerf2:
		client, err = ReadIPerf2(p.stdout.bytes(), at, false, 1)
	default:
		client, err = ReadIPerf3(p.stdout.bytes())
	}
	if err != nil {
		return failed(who, what, err)
	}
	rows := compare(who, c.s, client, nil, func() (Report, error) { return server.reportOf(c.addr, before) })
	for i := range rows {
		rows[i].What = what
	}
	return rows
}

// TestInteropCapture checks the packets: tshark must find those of protocols that it knows well formed.
func TestInteropCapture(t *testing.T) {
	lab.Require(t, lab.Program("tcpdump"), lab.Program("tshark"))
	p, at := newPair(t), &ports{5300}
	known := dissectors(t)
	serve(t, p.B)
	for _, name := range []string{IPerf2, IPerf3} {
		protocol := map[string]string{IPerf2: "iperf2", IPerf3: "iperf3"}[name]
		if !known[protocol] {
			results.leave("packets of "+protocol, "this tshark knows no such protocol; TCP and UDP below it are judged")
		}
		for _, s := range []Shape{{UDP: true, Direction: Forward}, {UDP: true, Direction: Reverse}, {Direction: Forward}, {Direction: Bidir}} {
			s.Streams, s.Rate, s.Seconds = 1, 2_000_000, 1
			decode := ""
			if known[protocol] && s.UDP {
				decode = protocol
			}
			t.Run(Thru+"-"+name+"/"+s.String(), func(t *testing.T) {
				results.judge(t, func(t *testing.T) []Row {
					port := at.next()
					report := realServer(t, p.B, p.Data.B4, name, port, s)
					file := capture(t, p.B, port)
					_, err := thruClient(t, p.A, p.Data.B4, name, port, s)
					_, serr := report()
					return dissect(Thru+" -> "+name, s, file(), port, decode, cmp.Or(err, serr))
				})
			})
			if LeftOut(name, Thru, s) != "" { // reported already
				continue
			}
			t.Run(name+"-"+Thru+"/"+s.String(), func(t *testing.T) {
				results.judge(t, func(t *testing.T) []Row {
					port := servedPort(name)
					file := capture(t, p.B, port)
					_, err := realClient(t, p.A, p.Data.B4, name, port, s)
					return dissect(name+" -> "+Thru, s, file(), port, decode, err)
				})
			})
		}
	}
}

// dissectors returns the iperf protocols that tshark knows.
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

// capture writes a host's packets of a port to a file; the returned function returns its name once it is
// complete.
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

// dissect returns how many packets there are, and how many of them are malformed.
func dissect(who string, s Shape, file string, port int, decode string, err error) []Row {
	seen := cmp.Or(decode, "tcp or udp")
	count := func(filter string) (n int) {
		args := []string{"-r", file, "-Y", filter, "-T", "fields", "-e", "frame.number"}
		if decode != "" {
			args = append(args, "-d", fmt.Sprintf("udp.port==%d,%s", port, decode))
		}
		out, terr := tshark(args...)
		err = cmp.Or(err, terr)
		return strings.Count(out, "\n")
	}
	all, bad := count(seen), count("_ws.malformed")
	if err != nil {
		return failed(who, s.String()+" packets", err)
	}
	r := Row{Who: who, What: s.String() + " packets", Client: fmt.Sprintf("%d %s", all, strings.ReplaceAll(seen, " or ", "/")), Server: fmt.Sprintf("%d malformed", bad)}
	switch {
	case all < 10:
		r.Miss = "hardly a packet is of the protocol"
	case bad > 0:
		r.Miss = "tshark finds malformed packets"
	}
	return []Row{r}
}
