//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const local = "127.0.0.1"

// fields reads figures from lines of KEY=VALUE. scale converts them to the base unit.
func fields(figure string, scale float64, p50, p99 string, scaleTime float64) func([]string) (reading, error) {
	return func(outputs []string) (reading, error) {
		lines := strings.ReplaceAll(outputs[0], " ", "\n")
		r := reading{figure: number(lines, figure) * scale, p50: math.NaN(), p99: math.NaN()}
		if p99 != "" {
			r.p50, r.p99 = number(lines, p50)*scaleTime, number(lines, p99)*scaleTime
		}
		return r, nil
	}
}

// ---- iperf3 ----

func iperf3At(path string) tool {
	version := programVersion(path, "--version")
	return tool{name: iperf3Name + " " + version, version: version, missing: absent(path),
		ready: func(s shape) (contender, bool) { return iperf3(path, version, s) }}
}

// iperf3 has one pair of processes, or with the placement "paired" one for each stream.
func iperf3(path, version string, s shape) (contender, bool) {
	args, can := iperf3Args(version, s)
	if !can {
		return contender{}, false
	}
	pairs, streams := 1, s.streams
	if s.place == paired {
		pairs, streams = s.streams, 1
	}
	c := contender{read: func(outputs []string) (reading, error) { return readIperf3(outputs, s) }}
	for i := range pairs {
		port := strconv.Itoa(5301 + i)
		client := append([]string{path, "-c", local, "-p", port, "-J", "-t", s.time(), "-P", strconv.Itoa(streams)}, args...)
		c.pair(s, i, []string{path, "-s", "-1", "-p", port}, client, "tcp/"+port)
	}
	return c, true
}

// iperf3Args returns the options that this version needs for the shape, if it supports it.
func iperf3Args(version string, s shape) ([]string, bool) {
	switch s.kind {
	case tcpCopy:
		return []string{"-l", s.size()}, true
	case tcpLean:
		return append(s.sized("-l"), "-Z", "--skip-rx-copy"), atLeast(version, 3, 17)
	case udpBatch:
		return []string{"-u", "-b", "0", "-l", s.size()}, true
	case udpGSO:
		return []string{"-u", "-b", "0", "-l", s.size(), "--gsro"}, atLeast(version, 3, 20)
	}
	return nil, false
}

// readIperf3 adds up what the receivers of all pairs counted, which the clients report.
func readIperf3(outputs []string, s shape) (reading, error) {
	r := reading{p50: math.NaN(), p99: math.NaN()}
	for _, out := range outputs {
		var d struct {
			Error string `json:"error"`
			End   struct {
				Received struct {
					Bits float64 `json:"bits_per_second"`
				} `json:"sum_received"`
				Sum struct {
					Seconds, Packets float64
					Lost             float64 `json:"lost_packets"`
				} `json:"sum"`
			} `json:"end"`
		}
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			return r, fmt.Errorf("reading iperf3's JSON: %w", err)
		}
		if d.Error != "" {
			return r, fmt.Errorf("iperf3: %s", d.Error)
		}
		if s.udp() {
			r.figure += (d.End.Sum.Packets - d.End.Sum.Lost) / d.End.Sum.Seconds
		} else {
			r.figure += d.End.Received.Bits
		}
	}
	return r, nil
}

// ---- iperf 2 ----

func iperf2(s shape) (contender, bool) {
	server := []string{"iperf", "-s", "-y", "C", "-p", "5401", "-l", s.size()}
	client := []string{"iperf", "-c", local, "-p", "5401", "-y", "C", "-t", s.time(), "-P", s.parallel(), "-l", s.size()}
	port := "tcp/5401"
	switch s.kind {
	case tcpCopy:
	case udpBatch:
		server, client, port = append(server, "-u"), append(client, "-u", "-b", "1000g"), "udp/5401"
	default:
		return contender{}, false
	}
	c := contender{readServers: true, read: func(outputs []string) (reading, error) { return readIperf2(outputs[0], s) }}
	c.pair(s, 0, server, client, port)
	return c, true
}

// readIperf2 adds up the server's comma-separated lines, one for each stream: ..., number of the stream,
// interval, bytes, bit/s, and for UDP jitter, lost, all datagrams.
func readIperf2(output string, s shape) (reading, error) {
	r := reading{p50: math.NaN(), p99: math.NaN()}
	streams := 0
	for line := range strings.Lines(output) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) < 9 || f[5] == "-1" { // the sum over streams
			continue
		}
		streams++
		bits, err := strconv.ParseFloat(f[8], 64)
		if err != nil {
			return r, fmt.Errorf("reading iperf's line %q: %w", line, err)
		}
		if s.udp() {
			bits /= 8 * float64(s.length)
		}
		r.figure += bits
	}
	if streams != s.streams {
		return r, fmt.Errorf("iperf: %d streams in %q, want %d", streams, output, s.streams)
	}
	return r, nil
}

// ---- netperf ----

func netperf(s shape) (contender, bool) {
	if s.streams > 1 {
		return contender{}, false
	}
	c := contender{costHidden: "its server discards the account of its children"}
	client := []string{"netperf", "-H", local, "-P", "0", "-l", s.time(), "-t"}
	switch s.kind {
	case tcpCopy:
		client = append(client, "TCP_STREAM", "--", "-m", s.size(), "-M", s.size(), "-k", "THROUGHPUT")
		c.read = fields("THROUGHPUT=", 1e6, "", "", 0)
	case udpBatch:
		client = append(client, "UDP_STREAM", "--", "-m", s.size(), "-R", "1", "-k", "REMOTE_RECV_THROUGHPUT")
		c.read = fields("REMOTE_RECV_THROUGHPUT=", 1e6/8/float64(s.length), "", "", 0)
	case requests:
		client = append(client, "TCP_RR", "-j", "--", "-r", s.size()+","+s.size(), "-k", "THROUGHPUT,P50_LATENCY,P99_LATENCY")
		c.read = fields("THROUGHPUT=", 1, "P50_LATENCY=", "P99_LATENCY=", 1e3)
	case connects:
		client = append(client, "TCP_CRR", "-j", "--", "-r", s.size()+","+s.size(), "-k", "THROUGHPUT,P50_LATENCY,P99_LATENCY")
		c.read = fields("THROUGHPUT=", 1, "P50_LATENCY=", "P99_LATENCY=", 1e3)
	default:
		return contender{}, false
	}
	c.pair(s, 0, []string{"netserver", "-D", "-L", local}, client, "tcp/12865")
	return c, true
}

// ---- neper ----

func neper(s shape) (contender, bool) {
	var program string
	var both []string // common options of client and server
	var c contender
	switch s.kind {
	case tcpCopy, tcpLean:
		program, both = "tcp_stream", s.sized("-B")
		if s.kind == tcpLean {
			both = append(both, "--skip-rx-copy") // its sender copies
		}
		c.read = fields("remote_throughput=", 1, "", "", 0)
	case udpBatch:
		program, both = "udp_stream", []string{"-B", s.size()}
		c.read = fields("remote_throughput=", 1/8.0/float64(s.length), "", "", 0)
	case requests:
		program = "tcp_rr"
		c.read = fields("throughput=", 1, "latency_p50=", "latency_p99=", 1e9)
	case connects:
		program = "tcp_crr"
		c.read = fields("throughput=", 1, "latency_p50=", "latency_p99=", 1e9)
	}
	if program == "" || s.place == paired {
		return contender{}, false
	}
	both = append(both, "--nolog", "-F", s.parallel(), "-T", s.parallel(), "-l", s.time())
	client := append([]string{program, "-c", "-H", local}, both...)
	if s.kind == requests || s.kind == connects {
		client = append(client, "-p", "50,99")
	}
	c.pair(s, 0, append([]string{program}, both...), client, "tcp/12866")
	return c, true
}

// ---- nuttcp ----

func nuttcp(s shape) (contender, bool) {
	client := []string{"nuttcp", "-fparse", "-P", "5500", "-p", "5501", "-T" + s.time(), "-l" + s.size()}
	scale := 1e6
	switch {
	case s.kind == tcpCopy && s.streams > 1:
		client = append(client, "-N"+s.parallel())
	case s.kind == tcpCopy:
	case s.kind == udpBatch:
		client, scale = append(client, "-u", "-Ru"), 1e6/8/float64(s.length)
	default:
		return contender{}, false
	}
	c := contender{read: fields("rate_Mbps=", scale, "", "", 0)}
	c.pair(s, 0, []string{"nuttcp", "-1", "--nofork", "-P", "5500"}, append(client, local), "tcp/5500")
	return c, true
}

// ---- sockperf ----

// sockperf sends no messages below 14 bytes.
func sockperf(s shape) (contender, bool) {
	if s.kind != requests {
		return contender{}, false
	}
	address := []string{"--tcp", "-i", local, "-p", "5601"}
	var c contender
	c.read = func(outputs []string) (reading, error) {
		text := plain(outputs[0])
		took := number(text, "Summary: Round trip is ")
		return reading{figure: 1e6 / took, p50: number(text, "---> percentile 50.000 = ") * 1e3, p99: number(text, "---> percentile 99.000 = ") * 1e3}, nil
	}
	client := append([]string{"sockperf", "pp"}, address...)
	c.pair(s, 0, append([]string{"sockperf", "sr"}, address...), append(client, "-t", s.time(), "-m", "14", "--full-rtt"), "tcp/5601")
	return c, true
}

// plain removes sockperf's name from each line.
func plain(output string) string { return strings.ReplaceAll(output, "sockperf: ", "") }
