//go:build unix

package iperf2

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/measure"
)

// The real program judges. THRU_REQUIRE_LAB makes its absence a failure;
// IPERF2 names another version's binary.
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

// line is one line of its figures, in kilobits.
type line struct {
	id          string
	bps         float64
	lost, total int64
	udp         bool
}

var figures = regexp.MustCompile(`\[\s*(SUM|\*?\d+)\] +([\d.]+)-([\d.]+) sec +([\d.]+) KBytes +([\d.]+) Kbits/sec(?: +([\d.]+) ms +(\d+)/ *(\d+))?`)

// lines are the figures that iperf printed, of all streams or of each.
func lines(out string) (all []line) {
	for _, m := range figures.FindAllStringSubmatch(out, -1) {
		kbps, _ := strconv.ParseFloat(m[5], 64)
		l := line{id: m[1], bps: kbps * 1000, udp: m[8] != ""}
		l.lost, _ = strconv.ParseInt(m[7], 10, 64)
		l.total, _ = strconv.ParseInt(m[8], 10, 64)
		all = append(all, l)
	}
	return all
}

// run is the real client's output.
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

// verdict collects what is wrong in one try: a busy machine may spoil the
// figures of one, and not those of several.
type verdict struct{ wrong []string }

const tries = 4

func judge(t *testing.T, try func(v *verdict) (said string)) {
	t.Helper()
	for i := 1; ; i++ {
		v := &verdict{}
		said := try(v)
		if len(v.wrong) == 0 {
			return
		}
		if i == tries {
			t.Fatalf("%s\niperf said:\n%s", strings.Join(v.wrong, "\n"), said)
		}
	}
}

func (v *verdict) errorf(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// near: two figures within three percent.
func (v *verdict) near(what string, a, b float64) {
	if a <= 0 || b <= 0 || math.Abs(a-b) > 0.03*max(a, b) {
		v.errorf("%s: %.0f and %.0f", what, a, b)
	}
}

func bps(e measure.Evidence) float64 { return float64(e.Bytes) * 8e9 / float64(e.MeasuredNs) }

// sumOf adds the rates of lines of one kind; those that the client receives have a star.
func sumOf(ls []line, received bool) (sum float64) {
	for _, l := range ls {
		if l.id != "SUM" && strings.HasPrefix(l.id, "*") == received && !l.udp {
			sum += l.bps
		}
	}
	return sum
}

// TestRealClient: the real client and thru as its server say the same.
func TestRealClient(t *testing.T) {
	iperf := realIPerf(t)
	s := serve(t, DeskConfig{})
	base := []string{"-c", "127.0.0.1", "-p", strconv.Itoa(s.port)}
	for _, c := range []struct {
		name    string
		args    string
		streams int
		flows   int
		sends   bool // thru
		amount  int64
	}{
		{"tcp", "-b 200M -t 2", 1, 1, false, 0},
		{"tcp streams", "-b 50M -t 2 -P 4", 4, 1, false, 0},
		{"tcp amount", "-n 3000K", 1, 1, false, 3000 << 10},
		{"tcp little", "-n 40K -P 2", 2, 1, false, 2 * 40 << 10},
		{"tcp trip times", "-b 200M -t 1 --trip-times", 1, 1, false, 0},
		{"tcp reverse", "-b 200M -t 2 -R", 1, 1, true, 0},
		{"tcp reverse streams", "-b 50M -t 2 -R -P 4", 4, 1, true, 0},
		{"tcp reverse amount", "-n 3000K -R", 1, 1, true, 3000 << 10},
		{"tcp full duplex", "-b 200M -t 2 --full-duplex", 1, 2, false, 0},
		{"tcp full duplex streams", "-b 50M -t 2 --full-duplex -P 4", 4, 2, false, 0},
		{"udp", "-u -b 200M -t 2", 1, 1, false, 0},
		{"udp streams", "-u -b 50M -t 2 -P 4", 4, 1, false, 0},
		{"udp amount", "-u -n 300K -b 50M", 1, 1, false, 0},
		{"udp small", "-u -b 1M -t 1 -l 64", 1, 1, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			judge(t, func(v *verdict) string {
				out := run(t, iperf, append(base, strings.Fields(c.args)...)...)
				a := s.next(t)
				e := finished(t, a.session)
				ls := lines(out)
				far, back := a.session.Far()
				if len(e.Streams) != c.streams || len(a.call.Specs) != c.flows || e.Sends != c.sends || a.call.Program == "" && c.name != "udp small" {
					v.errorf("%d streams, sends %v, the call is %+v", len(e.Streams), e.Sends, a.call)
				}
				switch {
				case c.amount > 0: // so little passes in no time
					if e.TotalBytes != c.amount {
						v.errorf("%d bytes of %d", e.TotalBytes, c.amount)
					}
				case strings.Contains(c.args, "-u"):
					sameDatagrams(v, ls, e)
				case c.sends: // what thru has written the kernel may still hold: the receiver's figure is the result
					v.near("rates", sumOf(ls, true), bps(*far))
				default:
					v.near("rates", sumOf(ls, false), bps(e))
				}
				if back != nil {
					v.near("rates back", sumOf(ls, true), bps(*back))
				}
				return out
			})
		})
	}
}

// sameDatagrams: the report that the client printed is what thru counted, and
// the last word of each stream.
func sameDatagrams(v *verdict, ls []line, e measure.Evidence) {
	var lost, total, rate, packets, missed, words = int64(0), int64(0), 0.0, int64(0), int64(0), int64(0)
	for _, l := range ls {
		if l.udp && l.id != "SUM" {
			lost, total, rate, words = lost+l.lost, total+l.total, rate+l.bps, words+1
		}
	}
	for _, x := range e.Streams {
		packets += x.DatagramsAll.Packets
		missed += x.DatagramsAll.Lost
	}
	if words != int64(len(e.Streams)) || lost != missed || total != packets+missed+words {
		v.errorf("%d reports: lost %d of %d; counted: lost %d of %d", words, lost, total, missed, packets+missed)
	}
	v.near("rates of UDP", rate, bps(e))
}

// realServer starts the real program as a server and returns its port and
// what it prints until it ends.
func realServer(t *testing.T, iperf string, args ...string) (port int, output func() string) {
	t.Helper()
	for port = 36710; ; port++ {
		cmd := exec.Command(iperf, append([]string{"-s", "-f", "k", "-B", "127.0.0.1", "-p", strconv.Itoa(port)}, args...)...)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended: // the port is in use
			if port < 36790 {
				continue
			}
			t.Fatalf("iperf -s: %s", out.String())
		case <-time.After(300 * time.Millisecond):
		}
		over := false
		end := func() string {
			if !over {
				over = true
				cmd.Process.Signal(os.Interrupt)
				select {
				case <-ended:
				case <-time.After(3 * time.Second):
					cmd.Process.Kill()
					<-ended
				}
			}
			return out.String()
		}
		t.Cleanup(func() { end() })
		return port, end
	}
}

// TestRealServer: thru as a client and the real server say the same.
func TestRealServer(t *testing.T) {
	iperf := realIPerf(t)
	tcp := func(streams int, rate int64) measure.Spec {
		x := spec(measure.TCP, streams)
		x.Rate, x.Duration = rate, int64(2*time.Second)
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
			judge(t, func(v *verdict) string {
				args := []string{}
				if c.spec.Protocol == measure.UDP {
					args = append(args, "-u")
				}
				port, output := realServer(t, iperf, args...)
				s := dial(t, program(t), c.spec, port, 0)
				e := finished(t, s)
				time.Sleep(300 * time.Millisecond) // for its last line
				out := output()
				judgeServer(v, c.spec, s, e, lines(out))
				return out
			})
		})
	}
}

// judgeServer compares what thru measured with what the server printed and reported.
func judgeServer(v *verdict, x measure.Spec, s engine.Session, e measure.Evidence, ls []line) {
	far, _ := s.Far()
	if len(e.Streams) != x.Streams {
		v.errorf("%d streams", len(e.Streams))
	}
	if x.Amount > 0 {
		if e.TotalBytes != x.Amount || x.DialFrom && far.TotalBytes != x.Amount {
			v.errorf("moved %d bytes of %d; the far end: %d", e.TotalBytes, x.Amount, far.TotalBytes)
		}
		return
	}
	rate := 0.0
	for _, l := range ls {
		if l.id != "SUM" && !strings.HasPrefix(l.id, "*") {
			rate += l.bps
		}
	}
	v.near("rates", rate, bps(e))
	if x.DialFrom {
		v.near("rate at the far end", bps(*far), bps(e))
	}
	if b, ok := s.Back(); ok {
		v.near("rates back", sumOf(ls, true), bps(b))
	}
	if x.Protocol != measure.UDP || !x.DialFrom {
		return
	}
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
	if lost != 0 || reported != sent+int64(x.Streams) {
		v.errorf("the report differs from what the server printed by %d lost; it counted %d of %d", lost, reported, sent)
	}
	if fmt.Sprint(far.Missing) == "" || far.Streams[0].DatagramsAll.JitterNs == nil {
		v.errorf("far: %+v", far)
	}
}
