package lab

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPairCarriesBothFamilies(t *testing.T) {
	Require(t, Program("ping"))
	p := NewPair(t, Options{MTU: 9000, Control: true})
	p.A.Must("ping", "-c", "1", "-W", "2", p.Data.B4.String())
	p.A.Must("ping", "-c", "1", "-W", "2", p.Data.B6.String())
	p.B.Must("ping", "-c", "1", "-W", "2", p.Control.A4.String())
	p.B.Must("ping", "-c", "1", "-W", "2", p.Control.A6.String())
	// 8972 bytes of payload, 8 of ICMP and 20 of IP fill the MTU; one more does not fit.
	p.A.Must("ping", "-c", "1", "-W", "2", "-M", "do", "-s", "8972", p.Data.B4.String())
	if _, err := p.A.Output("ping", "-c", "1", "-W", "2", "-M", "do", "-s", "8973", p.Data.B4.String()); err == nil {
		t.Error("a packet larger than the MTU passed")
	}
}

func TestLinkDownCutsTheHosts(t *testing.T) {
	Require(t, Program("ping"))
	p := NewPair(t, Options{})
	p.B.LinkDown(DataDev)
	if _, err := p.A.Output("ping", "-c", "1", "-W", "1", p.Data.B4.String()); err == nil {
		t.Error("a packet passed a link that is down")
	}
	p.B.LinkUp(DataDev)
	p.A.Must("ping", "-c", "1", "-W", "2", p.Data.B4.String())
}

func TestCountersSeeThePackets(t *testing.T) {
	Require(t, Program("ping"))
	p := NewPair(t, Options{})
	before := p.B.Counters(DataDev)
	p.A.Must("ping", "-c", "3", "-i", "0.1", "-s", "1000", p.Data.B4.String())
	got := p.B.Counters(DataDev).Sub(before)
	// Each echo is 1000 bytes, 8 of ICMP, 20 of IP and 14 of Ethernet; ARP may add a little.
	if want := uint64(3 * 1042); got.RxBytes < want || got.TxBytes < want || got.RxPackets < 3 || got.RxBytes > want+500 {
		t.Errorf("counters rose by %+v, want 3 packets and %d bytes each way", got, want)
	}
}

func TestRateIsWhatIperf3Measures(t *testing.T) {
	Require(t, Program("iperf3"))
	p := NewPair(t, Options{Rate: 1e9})
	const want = 1e9 * 1448 / 1514
	if got := iperf3(t, p, "-c", p.Data.B4.String(), "-t", "2", "-O", "1"); got < want*0.95 || got > want*1.05 {
		t.Errorf("iperf3 measures %.1f Mb/s over a link of 1 Gb/s, want %.1f", got/1e6, want/1e6)
	}
}

// iperf3 runs a server at B and a client at A, and returns the received rate in bit/s.
func iperf3(t *testing.T, p *Pair, args ...string) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	server := p.B.Command(ctx, "iperf3", "-s", "-1")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer cancel() // in case the client never connects
	Eventually(t, 5*time.Second, "iperf3 listens", func() bool { return len(p.B.Sockets()) > 0 })
	out := p.A.Must("iperf3", append([]string{"-J"}, args...)...)
	var doc struct {
		End struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.End.SumReceived.BitsPerSecond
}

func TestSysctlIsOfTheHostAlone(t *testing.T) {
	p := NewPair(t, Options{})
	p.A.Sysctl("net.ipv4.tcp_rmem", "4096 65536 65536")
	a, b := p.A.Must("sysctl", "-n", "net.ipv4.tcp_rmem"), p.B.Must("sysctl", "-n", "net.ipv4.tcp_rmem")
	if strings.Fields(a)[2] != "65536" || a == b {
		t.Errorf("a has %q, b has %q", a, b)
	}
}

// TestRemoveEndsProcesses leaves a process behind in a subtest, and checks that the namespace and the process
// are gone afterwards.
func TestRemoveEndsProcesses(t *testing.T) {
	var netns string
	var pid int
	t.Run("lab", func(t *testing.T) {
		h := New(t).Host("a")
		netns = h.netns
		cmd := h.Command(context.Background(), "sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { _ = cmd.Wait() }() // reaps it when the lab has killed it
		pid = cmd.Process.Pid
		Eventually(t, 5*time.Second, "sleep runs in the host", func() bool { return len(h.Pids()) == 1 })
	})
	if netns == "" {
		t.Skip("the lab could not be built")
	}
	if out, err := run("ip", "netns", "list"); err != nil || strings.Contains(out, netns) {
		t.Errorf("after the test %s is listed (%v):\n%s", netns, err, out)
	}
	Eventually(t, 5*time.Second, "the process is gone", func() bool { return !running(pid) })
}

func TestStaleLabs(t *testing.T) {
	list := "thru-lab-12-ab-a (id: 3)\nthru-lab-12-ab-b\nthru-lab-13-cd-a\nother\nthru-lab-x-a\n\nthru-laboratory\n"
	got := stale(list, func(pid int) bool { return pid == 13 })
	if diff := cmp.Diff([]string{"thru-lab-12-ab-a", "thru-lab-12-ab-b"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseCounters(t *testing.T) {
	good := `[{"ifname":"data0","stats64":{"rx":{"bytes":1042,"packets":1,"errors":0},"tx":{"bytes":2084,"packets":2}}}]`
	got, err := parseCounters(good)
	want := Counters{RxBytes: 1042, TxBytes: 2084, RxPackets: 1, TxPackets: 2}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "[]", `[{"ifname":"data0"}]`, `[{},{}]`, "{"} {
		if _, err := parseCounters(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// fakeTB records how a test ended.
type fakeTB struct {
	testing.TB
	skipped, failed bool
}

func (f *fakeTB) Helper()               {}
func (f *fakeTB) Skipf(string, ...any)  { f.skipped = true }
func (f *fakeTB) Fatalf(string, ...any) { f.failed = true }

func TestRequire(t *testing.T) {
	met := Need{"nothing", func() error { return nil }}
	missing := Need{"the moon", func() error { return errors.New("out of reach") }}
	tests := []struct {
		name            string
		variable        string
		need            Need
		skipped, failed bool
	}{
		{name: "met", need: met},
		{name: "met and required", variable: "1", need: met},
		{name: "missing", need: missing, skipped: true},
		{name: "missing and required", variable: "1", need: missing, failed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(RequireVariable, tt.variable)
			f := &fakeTB{TB: t}
			Require(f, tt.need)
			// The real Fatalf does not return, so what follows it does not count.
			if f.failed != tt.failed || (!f.failed && f.skipped != tt.skipped) {
				t.Errorf("skipped %v, failed %v; want %v, %v", f.skipped, f.failed, tt.skipped, tt.failed)
			}
		})
	}
}

func TestRequireProgram(t *testing.T) {
	if err := Program("thru-has-no-such-program").check(); err == nil {
		t.Error("a program that does not exist was found")
	}
	if err := Program("go").check(); err != nil {
		t.Error(err)
	}
	if !running(os.Getpid()) && os.Getenv(RequireVariable) == "1" {
		t.Error("this process is taken for a dead one")
	}
}
