package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// foreign starts a real program in the background and ends it with the test.
func foreign(t *testing.T, h *lab.Host, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := h.Command(ctx, name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); cmd.Wait() })
	time.Sleep(300 * time.Millisecond) // neither says when it is ready
}

func needsIPerf(t *testing.T) {
	t.Helper()
	lab.Require(t, lab.Program("iperf3"), lab.Program("iperf"))
}

// TestIPerfServers measures with real servers: the rate reaches that of the link, and both ends agree.
func TestIPerfServers(t *testing.T) {
	needsIPerf(t)
	p := lab.NewPair(t, lab.Options{Rate: slow})
	foreign(t, p.B, "iperf3", "-s")
	foreign(t, p.B, "iperf", "-s")
	foreign(t, p.B, "iperf", "-s", "-u")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"iperf3", nil}, {"iperf3 back", []string{"-R"}}, {"iperf3 both ways", []string{"--bidir", "-b", "30M"}},
		{"iperf3 udp", []string{"-u", "-b", "20M"}}, {"iperf2", nil}, {"iperf2 back", []string{"-R"}}, {"iperf2 udp", []string{"-u", "-b", "20M"}},
	} {
		engine, _, _ := strings.Cut(c.name, " ")
		args := append([]string{engine + "://" + p.Data.B4.String(), "-t", "1.5", "-O", "1"}, c.args...)
		if len(c.args) == 0 || c.args[0] == "-u" {
			args = append(args, "--one-way")
		}
		var doc measure.Document
		for try := 0; try == 0 || try < 3 && slices.ContainsFunc(doc.Cells, offRate); try++ { // a busy machine sends less than it was told to
			doc = test(t, p.A, args...)
		}
		for _, cell := range doc.Cells {
			checkForeign(t, c.name, cell)
		}
	}
}

// TestIPerfWithoutRamp: without a ramp too, the receiver's figure stays below the rate of the link, although
// data arrives before the worker reads.
func TestIPerfWithoutRamp(t *testing.T) {
	needsIPerf(t)
	t.Parallel()
	p := lab.NewPair(t, lab.Options{})
	p.B.Must("tc", strings.Fields("qdisc add dev "+lab.DataDev+" root tbf rate 20mbit burst 3kb latency 50ms")...)
	foreign(t, p.B, "iperf3", "-s")
	foreign(t, p.B, "iperf", "-s")
	foreign(t, p.B, "iperf", "-s", "-u")
	const most = 20e6 * 1472 / 1514 * 1.005 // of datagrams, which carry more than segments do; and the bucket
	for _, args := range []string{"iperf3", "iperf3 -P 4", "iperf3 -u -b 40M", "iperf2", "iperf2 -u -b 40M"} {
		program, flags, _ := strings.Cut(args, " ")
		doc := test(t, p.A, append([]string{program + "://" + p.Data.B4.String(), "-R", "-O", "0", "-t", "1"}, strings.Fields(flags)...)...)
		for _, c := range mainCells(doc) {
			if c.Goodput == nil || c.Goodput.Value <= 0 || c.Goodput.Value > most {
				t.Errorf("%s: %+v, the link carries %.0f", args, c.Goodput, most)
			}
		}
	}
}

// foreignRate returns the rate that a cell must have: that of -b or of the link.
func foreignRate(c measure.Cell) float64 {
	if c.Spec.Rate > 0 {
		return float64(c.Spec.Rate)
	}
	return slow * 0.956 // of MTU 1500
}

// offRate reports whether the goodput of a cell is another.
func offRate(c measure.Cell) bool {
	return c.Goodput == nil || !near(c.Goodput.Value, foreignRate(c), 4)
}

// checkForeign: the rate is that of the link or of -b, and both ends agree.
func checkForeign(t *testing.T, name string, c measure.Cell) {
	t.Helper()
	if offRate(c) {
		t.Errorf("%s: goodput %+v, the path allows %.0f; not checked %v", name, c.Goodput, foreignRate(c), c.Missing)
	}
	f := c.Runs[0].Flows[0]
	if f.Sender == nil || f.Receiver == nil || f.Sender.Reported == "" && f.Receiver.Reported == "" {
		t.Fatalf("%s: not the evidence of both ends: %+v", name, f)
	}
	if c.Protocol == measure.UDP && (c.Datagrams == nil || c.Datagrams.LossPct > 2 || c.Datagrams.Received == 0) { // a busy machine's server may lose some
		t.Errorf("%s: datagrams %+v", name, c.Datagrams)
	}
}

// TestIPerfClients runs real clients against thru serve, several at once. What thru stores must match what
// they print.
func TestIPerfClients(t *testing.T) {
	needsIPerf(t)
	p := lab.NewPair(t, lab.Options{Rate: gigabit})
	server := serve(t, p.B, "--no-auth", "--iperf", "--json")
	var wg sync.WaitGroup
	theirs := make([]float64, 4)
	for i := range theirs {
		wg.Go(func() { theirs[i] = original(t, p, "-t", "2", "-b", "100M", "-P", "2") })
	}
	wg.Go(func() { iperf2(t, p, "-t", "2", "-b", "100m") })
	wg.Wait()
	alone := original(t, p, "-t", "2", "-u", "-b", "50M", "-R")
	ours := kept(t, server, 6)
	if len(ours) != 6 {
		t.Fatalf("%d results of 6 tests", len(ours))
	}
	for _, bps := range theirs {
		if !near(bps, 200e6, 3) {
			t.Errorf("one of four at once says %.0f bit/s of 200M", bps)
		}
	}
	for _, r := range ours {
		want := map[bool]float64{true: 200e6, false: 100e6}[strings.HasPrefix(r.Caller, "iperf3")]
		if r.Goodput[0].From == "local" {
			want = alone
		}
		if !near(r.Goodput[0].Bps, want, 3) {
			t.Errorf("kept of %s: %.0f bit/s, it says %.0f", r.Caller, r.Goodput[0].Bps, want)
		}
	}
}

// callRecord is a line of `thru serve --json` about the test of an iperf client.
type callRecord struct {
	Caller  string
	Goodput []struct {
		From string  `json:"from"`
		Bps  float64 `json:"goodput_bps"`
	}
}

// kept waits for the lines of n client tests.
func kept(t *testing.T, server *program, n int) (calls []callRecord) {
	t.Helper()
	for give := time.Now().Add(10 * time.Second); len(calls) < n && time.Now().Before(give); time.Sleep(100 * time.Millisecond) {
		calls = nil
		for line := range strings.Lines(server.stdout.String()) {
			var r callRecord
			if err := json.Unmarshal([]byte(line), &r); err == nil && len(r.Goodput) > 0 {
				calls = append(calls, r)
			}
		}
	}
	return calls
}

// original runs a real iperf3 client and returns the rate that its receiver counted.
func original(t *testing.T, p *lab.Pair, args ...string) float64 {
	out := run(t, p, "iperf3", append([]string{"-J", "-c", p.Data.B4.String()}, args...)...)
	var doc struct {
		End struct {
			Sum struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum"`
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Errorf("iperf3 printed %q: %v", out, err)
	}
	return max(doc.End.SumReceived.BitsPerSecond, doc.End.Sum.BitsPerSecond)
}

func iperf2(t *testing.T, p *lab.Pair, args ...string) {
	run(t, p, "iperf", append([]string{"-c", p.Data.B4.String()}, args...)...)
}

func run(t *testing.T, p *lab.Pair, name string, args ...string) []byte {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out, said bytes.Buffer
	cmd := p.A.Command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Errorf("%s %v: %v\n%s%s", name, args, err, out.String(), said.String())
	}
	return out.Bytes()
}
