//go:build unix

package iperf2

import (
	"context"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/measure"
)

// realIPerf returns the path of the real program. THRU_REQUIRE_LAB makes its absence a failure; IPERF2 names another version's binary.
func realIPerf(t *testing.T) string {
	t.Helper()
	name := os.Getenv("IPERF2")
	if name == "" {
		name = "iperf"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("THRU_REQUIRE_LAB") != "" {
			t.Fatalf("the lab wants iperf 2: %v", err)
		}
		t.Skip("no iperf 2 is here to be the judge")
	}
	return path
}

// line is one line of its figures.
type line struct {
	id          string
	kbytes      float64 // rounded
	lost, total int64
	udp         bool
}

var figures = regexp.MustCompile(`\[\s*(SUM|\*?\d+)\] +([\d.]+)- *([\d.]+) sec +([\d.]+) KBytes +([\d.]+) Kbits/sec(?: +([\d.]+) ms +(\d+)/ *(\d+))?`)

// lines returns the figures that iperf printed, for all streams or for each.
func lines(out string) (all []line) {
	for _, m := range figures.FindAllStringSubmatch(out, -1) {
		l := line{id: m[1], udp: m[8] != ""}
		l.kbytes, _ = strconv.ParseFloat(m[4], 64)
		l.lost, _ = strconv.ParseInt(m[7], 10, 64)
		l.total, _ = strconv.ParseInt(m[8], 10, 64)
		all = append(all, l)
	}
	return all
}

// run returns the real client's output.
func run(t *testing.T, iperf string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, iperf, append(args, "-f", "k")...).CombinedOutput()
	if err != nil {
		t.Fatalf("iperf %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// sameBytes: iperf's bytes in some lines equal the bytes counted here.
func sameBytes(t *testing.T, what string, lines int, kbytes float64, counted int64) {
	t.Helper()
	if counted == 0 || math.Abs(kbytes*1024-float64(counted)) > float64(lines)*1024 {
		t.Errorf("%s: iperf printed %.0f KBytes in %d lines, and %d bytes are counted here", what, kbytes, lines, counted)
	}
}

// of sums the lines of single streams of one kind; those of the second direction have a star.
func of(ls []line, star, udp bool) (n int, kbytes float64) {
	for _, l := range ls {
		if l.id != "SUM" && strings.HasPrefix(l.id, "*") == star && l.udp == udp {
			n++
			kbytes += l.kbytes
		}
	}
	return n, kbytes
}

// TestRealClient: the real client and thru as its server count the same. `make interop` checks how well their rates agree, on a separate machine.
func TestRealClient(t *testing.T) {
	iperf := realIPerf(t)
	s := serve(t, ServerConfig{})
	base := []string{"-c", "127.0.0.1", "-p", strconv.Itoa(s.port)}
	for _, c := range []struct {
		name    string
		args    string
		streams int
		flows   int
		sends   bool // thru
		amount  int64
	}{
		{"tcp", "-b 200M -t 0.5", 1, 1, false, 0},
		{"tcp streams", "-b 50M -t 0.5 -P 4", 4, 1, false, 0},
		{"tcp amount", "-n 3000K", 1, 1, false, 3000 << 10},
		{"tcp little", "-n 40K -P 2", 2, 1, false, 2 * 40 << 10},
		{"tcp trip times", "-b 200M -t 0.5 --trip-times", 1, 1, false, 0},
		{"tcp reverse", "-b 200M -t 0.5 -R", 1, 1, true, 0},
		{"tcp reverse streams", "-b 50M -t 0.5 -R -P 4", 4, 1, true, 0},
		{"tcp reverse amount", "-n 3000K -R", 1, 1, true, 3000 << 10},
		{"tcp full duplex", "-b 200M -t 0.5 --full-duplex", 1, 2, false, 0},
		{"tcp full duplex streams", "-b 50M -t 0.5 --full-duplex -P 4", 4, 2, false, 0},
		{"udp", "-u -b 200M -t 0.5", 1, 1, false, 0},
		{"udp streams", "-u -b 50M -t 0.5 -P 4", 4, 1, false, 0},
		{"udp amount", "-u -n 300K -b 50M", 1, 1, false, 0},
		{"udp small", "-u -b 1M -t 0.5 -l 64", 1, 1, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := run(t, iperf, append(base, strings.Fields(c.args)...)...)
			a := s.next(t)
			e := finished(t, a.session)
			ls := lines(out)
			if len(e.Streams) != c.streams || len(a.call.Specs) != c.flows || e.Sends != c.sends || a.call.Program == "" && c.name != "udp small" {
				t.Errorf("%d streams, sends %v, the call is %+v", len(e.Streams), e.Sends, a.call)
			}
			if c.amount > 0 && e.TotalBytes != c.amount {
				t.Errorf("%d bytes of %d", e.TotalBytes, c.amount)
			}
			if e.MeasuredNs == 0 || e.Bytes == 0 {
				t.Errorf("%d bytes in %d ns", e.Bytes, e.MeasuredNs)
			}
			if strings.Contains(c.args, "-u") {
				sameDatagrams(t, ls, e)
			} else {
				n, kbytes := of(ls, c.sends, false)
				sameBytes(t, "the first direction", n, kbytes, e.TotalBytes)
			}
			if back, ok := a.session.Back(); ok {
				n, kbytes := of(ls, true, false)
				sameBytes(t, "the other direction", n, kbytes, back.TotalBytes)
			}
			if t.Failed() {
				t.Logf("iperf printed:\n%s", out)
			}
		})
	}
}

// sameDatagrams: the report that the client printed equals thru's counts plus the final datagram of each stream.
func sameDatagrams(t *testing.T, ls []line, e measure.Evidence) {
	t.Helper()
	var lost, total, packets, missed, bytes int64
	words, kbytes := of(ls, false, true)
	for _, l := range ls {
		if l.udp && l.id != "SUM" {
			lost, total = lost+l.lost, total+l.total
		}
	}
	for _, x := range e.Streams {
		packets += x.DatagramsAll.Packets
		missed += x.DatagramsAll.Lost
		bytes += x.TotalBytes + x.Length
	}
	if words != len(e.Streams) || lost != missed || total != packets+missed+int64(words) {
		t.Errorf("%d reports: lost %d of %d; counted: lost %d of %d", words, lost, total, missed, packets+missed)
	}
	sameBytes(t, "the reports", words, kbytes, bytes)
}

// lastPort is the last that a real server gets.
const lastPort = 36799

// firstPort depends on the process, so that two simultaneous runs seldom try the same.
func firstPort() int { return 36700 + os.Getpid()%50 }

// printed collects what a program prints, and can be read meanwhile.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// until waits until the text is as it should be, or the program has ended, and reports whether the text is so.
func (p *printed) until(ended <-chan struct{}, right func(text string) bool) bool {
	for timeout := time.After(limit); !right(p.String()); {
		select {
		case <-ended:
			return right(p.String())
		case <-timeout:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}

// realServer starts the real program as a server and returns its port, and what it has printed: output waits for lines that are enough, then ends it. next is
// the port to try first, which no other server gets.
func realServer(t *testing.T, iperf string, next *atomic.Int64, args ...string) (port int, output func(enough func([]line) bool) string) {
	t.Helper()
	for {
		port = int(next.Add(1))
		tcp, udp, err := Listen(t.Context(), []string{"127.0.0.1"}, port, "")
		closeListeners(tcp, udp)
		if err != nil && port < lastPort {
			continue
		}
		cmd := exec.Command(iperf, append([]string{"-s", "-f", "k", "-B", "127.0.0.1", "-p", strconv.Itoa(port)}, args...)...)
		out, ended := &printed{}, make(chan struct{})
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { defer close(ended); cmd.Wait() }()
		if !out.until(ended, func(text string) bool { return strings.Contains(text, "listening") }) {
			cmd.Process.Kill()
			<-ended
			if port < lastPort { // the port is in use
				continue
			}
			t.Fatalf("iperf -s: %s", out)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			<-ended
		})
		return port, func(enough func([]line) bool) string {
			out.until(ended, func(text string) bool { return enough(lines(text)) })
			cmd.Process.Signal(os.Interrupt)
			select {
			case <-ended:
			case <-time.After(3 * time.Second):
				cmd.Process.Kill()
				<-ended
			}
			return out.String()
		}
	}
}

// enough reports whether a server has printed the lines of a test: one a stream in each direction; of datagrams that it sends, none.
func enough(x measure.Spec, ls []line) bool {
	udp := x.Protocol == measure.UDP
	n, _ := of(ls, false, udp)
	back, _ := of(ls, true, udp)
	return udp && !x.DialFrom || n >= x.Streams && (back >= x.Streams || !x.Duplex)
}

// TestRealServer: thru as a client and the real server count the same.
func TestRealServer(t *testing.T) {
	iperf := realIPerf(t)
	var next atomic.Int64
	next.Store(int64(firstPort()))
	tcp := func(streams int, rate int64) measure.Spec {
		x := spec(measure.TCP, streams)
		x.Rate, x.Duration = rate, int64(500*time.Millisecond)
		return x
	}
	udp := func(streams int) measure.Spec {
		x := tcp(streams, 200e6)
		x.Protocol = measure.UDP
		return x
	}
	duplex := func(x measure.Spec) measure.Spec { x.Duplex = true; return x }
	amount := func(x measure.Spec) measure.Spec {
		x.Amount, x.Duration, x.Rate = 3_000_000, int64(20*time.Second), 0
		return x
	}
	for _, c := range []struct {
		name string
		spec measure.Spec
	}{
		{"tcp", tcp(1, 200e6)},
		{"tcp streams", tcp(4, 200e6)},
		{"tcp amount", amount(tcp(2, 0))},
		{"tcp reverse", reversed(tcp(1, 200e6))},
		{"tcp reverse streams", reversed(tcp(4, 200e6))},
		{"tcp reverse amount", amount(reversed(tcp(1, 0)))},
		{"tcp full duplex", duplex(tcp(1, 200e6))},
		{"tcp full duplex streams", duplex(tcp(4, 200e6))},
		{"udp", udp(1)},
		{"udp streams", udp(4)},
		{"udp reverse", reversed(udp(1))},
		{"udp reverse streams", reversed(udp(4))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := []string{}
			if c.spec.Protocol == measure.UDP {
				args = append(args, "-u")
			}
			port, output := realServer(t, iperf, &next, args...)
			s := dial(t, program(t), c.spec, port, 0)
			e := finished(t, s)
			out := output(func(ls []line) bool { return enough(c.spec, ls) })
			judgeServer(t, c.spec, s, e, lines(out))
			if t.Failed() {
				t.Logf("iperf printed:\n%s", out)
			}
		})
	}
}

// judgeServer compares thru's measurement with what the server printed and reported.
func judgeServer(t *testing.T, x measure.Spec, s engine.Session, e measure.Evidence, ls []line) {
	t.Helper()
	far, _ := s.Far()
	if len(e.Streams) != x.Streams || e.Bytes == 0 || e.MeasuredNs == 0 {
		t.Errorf("%d bytes in %d streams and %d ns", e.Bytes, len(e.Streams), e.MeasuredNs)
	}
	if x.Amount > 0 && (e.TotalBytes != x.Amount || x.DialFrom && far.TotalBytes != x.Amount) {
		t.Errorf("moved %d bytes of %d; the far end: %d", e.TotalBytes, x.Amount, far.TotalBytes)
	}
	if x.Protocol == measure.UDP {
		if x.DialFrom {
			judgeReport(t, far, e, ls)
		}
		return
	}
	n, kbytes := of(ls, false, false)
	if n != x.Streams {
		t.Errorf("the server printed %d lines of %d streams", n, x.Streams)
	}
	sameBytes(t, "the first direction", n, kbytes, e.TotalBytes)
	if b, ok := s.Back(); ok {
		n, kbytes := of(ls, true, false)
		sameBytes(t, "the other direction", n, kbytes, b.TotalBytes)
	}
	// With both directions at once the last bytes may be unacknowledged at the reading.
	if x.DialFrom && (far.TotalBytes > e.TotalBytes || far.TotalBytes < e.TotalBytes && !x.Duplex || far.TotalBytes == 0) {
		t.Errorf("the far end has acknowledged %d of %d bytes", far.TotalBytes, e.TotalBytes)
	}
}

// judgeReport compares the report with what the server printed, and both with the sent data.
func judgeReport(t *testing.T, far *measure.Evidence, e measure.Evidence, ls []line) {
	t.Helper()
	var lost, sent, reported int64
	for _, l := range ls {
		if l.udp && l.id != "SUM" {
			lost += l.lost
			reported += l.total
		}
	}
	for i, y := range far.Streams {
		sent += e.Streams[i].DatagramsAll.Packets
		lost -= y.DatagramsAll.Lost
	}
	// A server that answers the last datagram late gets it again, up to nine times, and may count each as one more, lost or not.
	again := reported - sent - int64(len(e.Streams))
	if again < 0 || again > 9*int64(len(e.Streams)) || lost < 0 || lost > again {
		t.Errorf("the report differs from what the server printed by %d lost; it counted %d of %d", lost, reported, sent)
	}
	if len(far.Missing) == 0 || far.Streams[0].DatagramsAll.JitterNs == nil {
		t.Errorf("far: %+v", far)
	}
}
