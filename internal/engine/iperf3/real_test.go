//go:build unix

package iperf3

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/measure"
)

// program returns the real iperf3: that of IPERF3, else the one of this host.
func program(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("IPERF3"), "iperf3"))
	if err != nil && os.Getenv("THRU_REQUIRE_LAB") != "" {
		t.Fatal("iperf3 is required here:", err)
	}
	if err != nil {
		t.Skip("no iperf3 on this host")
	}
	return path
}

// realServer runs the real server for one test and returns its port.
func realServer(t *testing.T, args ...string) (port int) {
	t.Helper()
	path := program(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(path, append([]string{"-s", "-1", "-p", strconv.Itoa(port), "--forceflush"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	listening, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		testRecord := false
		b := make([]byte, 4096)
		for {
			n, err := out.Read(b)
			said.Write(b[:n])
			if !testRecord && strings.Contains(said.String(), "listening") {
				testRecord = true
				close(listening)
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-over
		cmd.Wait()
		if t.Failed() {
			t.Logf("the real server prints:\n%s", said)
		}
	})
	select {
	case <-listening:
	case <-time.After(limit):
		t.Fatal("the real server does not listen")
	}
	return port
}

// sum holds the figures of one direction in the real program's JSON.
type sum struct {
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"`
	Bps     float64 `json:"bits_per_second"`
	Lost    int64   `json:"lost_packets"`
	Packets int64   `json:"packets"`
}

type realReport struct {
	Error string `json:"error"`
	End   struct {
		Sent         sum `json:"sum_sent"`
		Received     sum `json:"sum_received"`
		SentBack     sum `json:"sum_sent_bidir_reverse"`
		ReceivedBack sum `json:"sum_received_bidir_reverse"`
	} `json:"end"`
	Output string `json:"server_output_text"`
}

// realClient runs the real client against our server, and returns its report.
func realClient(t *testing.T, port int, env []string, args ...string) realReport {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), append([]string{"-c", "127.0.0.1", "-p", strconv.Itoa(port), "-J"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, _ := cmd.Output() // its exit code carries no more than its report
	var r realReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("the real client's report: %v\n%s", err, out)
	}
	return r
}

// realDirections are the directions in the real program's options.
var realDirections = []struct {
	name string
	flag []string
}{{"forward", nil}, {"reverse", []string{"-R"}}, {"both ways", []string{"--bidir"}}}

// Indices in realDirections.
const (
	reverse        = 1
	bothDirections = 2
)

// eachKind runs f for the kinds of traffic that iperf3 has.
func eachKind(t *testing.T, f func(t *testing.T, j *judge, protocol string, direction int, streams int)) {
	for _, protocol := range []string{measure.TCP, measure.UDP} {
		for direction, w := range realDirections {
			for _, streams := range []int{1, 4} {
				t.Run(fmt.Sprintf("%s %s %d", protocol, w.name, streams), func(t *testing.T) {
					t.Parallel()
					judged(t, func(j *judge) { f(t, j, protocol, direction, streams) })
				})
			}
		}
	}
}

// Our client with the real server.
func TestRealServer(t *testing.T) {
	eachKind(t, func(t *testing.T, j *judge, protocol string, direction, streams int) {
		spec := short(protocol, streams)
		spec.Duplex, spec.FarOutput = direction == bothDirections, true
		s := newBench(t, ServerConfig{}).open(engine.End{Name: "client", Spec: spec, Sends: direction != reverse, Dials: true, Targets: []string{local(realServer(t))}})
		if r := s.Ready(); r.RTTIdle == nil || r.Peer == "" {
			t.Errorf("ready: %+v", r)
		}
		ramp := time.Second * time.Duration(streams%2)
		if err := <-begin(t, s, ramp); err != nil {
			t.Fatal(err)
		}
		ours := finished(t, "client", s)
		far, back := s.Far()
		checkReal(t, j, ours, far, ramp)
		if spec.Duplex {
			e, _ := s.Back()
			checkReal(t, j, e, back, ramp)
		}
		if !strings.Contains(far.Output, "Server listening") && !strings.Contains(far.Output, "Accepted connection") {
			t.Errorf("the server's output is %q", far.Output)
		}
	})
}

// edges is the time that the real server counts beyond our measured time: from its testRunning to the first data, and from the last data to our testEnd. It
// does not grow with the test, so it is negligible in a long one.
const edges = 100 * time.Millisecond

// checkReal compares this end's evidence with the real server's report.
func checkReal(t *testing.T, j *judge, ours measure.Evidence, far *measure.Evidence, ramp time.Duration) {
	t.Helper()
	if far == nil {
		t.Fatal("the real server has reported nothing")
	}
	testRecord := *far
	testRecord.MeasuredNs = max(testRecord.MeasuredNs-int64(edges), ours.MeasuredNs)
	j.near("rates", rate(ours), rate(testRecord))
	if ramp == 0 {
		j.near("bytes", float64(ours.TotalBytes), float64(far.TotalBytes))
	}
	if far.Worker == nil {
		t.Error("the real server's CPU time is missing")
	}
	for i, x := range ours.Streams {
		y := far.Streams[i]
		if x.DatagramsAll != nil {
			j.near("datagrams", float64(x.DatagramsAll.Packets+x.DatagramsAll.Lost), float64(y.DatagramsAll.Packets+y.DatagramsAll.Lost))
			j.near("rate of datagrams", float64(x.Datagrams.Packets)/float64(ours.MeasuredNs), float64(y.Datagrams.Packets)/float64(testRecord.MeasuredNs))
			for _, d := range []*measure.Datagrams{x.DatagramsAll, y.DatagramsAll} {
				j.few(d.Lost, d.Packets+d.Lost)
			}
		} else if !ours.Sends && (y.TCP == nil || y.TCP.Retrans == nil) {
			t.Errorf("stream %d: the real sender's retransmits are missing", i)
		}
	}
}

// The real client with our server.
func TestRealClient(t *testing.T) {
	program(t)
	eachKind(t, func(t *testing.T, j *judge, protocol string, direction, streams int) {
		b := newBench(t, ServerConfig{})
		args := append([]string{"-t", "1", "-O", strconv.Itoa(streams % 2), "-P", strconv.Itoa(streams), "-b", "20M", "--get-server-output"}, realDirections[direction].flag...)
		if protocol == measure.UDP {
			args = append(args, "-u")
		}
		testRecord := make(chan realReport, 1)
		go func() { testRecord <- realClient(t, b.port, nil, args...) }()
		s, call := b.answer()
		if err := <-begin(t, s, time.Duration(call.Specs[0].Ramp)); err != nil {
			t.Fatal(err)
		}
		ours := finished(t, "server", s)
		r := <-testRecord
		if r.Error != "" || !strings.HasPrefix(call.Addr, "127.0.0.1:") || call.Name != "iperf3://127.0.0.1" {
			t.Fatalf("call %+v, the real client says %q", call, r.Error)
		}
		if !strings.Contains(r.Output, "Accepted connection") {
			t.Errorf("the client has got the output %q", r.Output)
		}
		far, _ := s.Far()
		if got := pick(ours, r).Bytes; got != ours.Bytes {
			t.Errorf("we moved %d bytes, and the client reports %d", ours.Bytes, got)
		}
		if got := pick(*far, r).Bytes; got != far.Bytes {
			t.Errorf("the client moved %d bytes, and reported %d", got, far.Bytes)
		}
		j.near("rates", rate(ours), rate(*far))
		if protocol == measure.UDP {
			j.few(r.End.Received.Lost, r.End.Received.Packets)
		}
		if protocol == measure.UDP && !ours.Sends {
			if got, want := r.End.Received.Packets, countedBy(ours, *far, r, call.Specs[0].Ramp); !slices.Contains(want, got) {
				t.Errorf("%d datagrams came, and the client reports %d", want, got)
			}
		}
		if back, ok := s.Back(); ok {
			j.near("rates back", rate(back), r.End.ReceivedBack.Bps)
		}
	})
}

// countedBy returns the numbers of datagrams that a client may report as received. In a test with a ramp, a newer version reports what this end has counted
// after it. An older one subtracts from all datagrams those that it sent itself until its own timer ended the ramp.
func countedBy(ours, far measure.Evidence, r realReport, ramp int64) []int64 {
	var span, all, sent int64
	for i, x := range ours.Streams {
		span += x.Datagrams.Packets + x.Datagrams.Lost
		all += x.DatagramsAll.Packets + x.DatagramsAll.Lost
		sent += far.Streams[i].DatagramsAll.Packets
	}
	if ramp == 0 {
		return []int64{all}
	}
	return []int64{span, all - (sent - r.End.Sent.Packets)}
}

// pick returns the sum of this end's role.
func pick(e measure.Evidence, r realReport) sum {
	if e.Sends {
		return r.End.Sent
	}
	return r.End.Received
}
