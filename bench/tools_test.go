//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// command is one process of a contender. It runs on one CPU, or anywhere (-1).
type command struct {
	argv []string
	cpu  int
	port string // port that a server opens before its client starts: "tcp/5201"
}

// contender is a tool prepared for one shape.
type contender struct {
	servers, clients []command
	// read parses the output of each client, or of each server if that has the receiver's figure.
	read        func(outputs []string) (reading, error)
	readServers bool
	costHidden  string // why the CPU time of all its processes is unknown
}

// reading is the result of one run. NaN is a value that a tool does not report.
type reading struct {
	figure   float64 // bit/s, packets/s, transactions/s, at the receiver
	p50, p99 float64 // ns
	cpu      float64 // seconds of all its processes, from start to end
	gb       float64 // 10^9 bytes that the loopback interface carried
	control  string  // congestion control of its data connections; empty if not checked
}

// cost returns CPU seconds per GB.
func (r reading) cost() float64 { return r.cpu / r.gb }

// tool is a program to compare. ready returns false for shapes it does not support.
type tool struct {
	name, version string
	missing       string // why it does not take part
	ready         func(shape) (contender, bool)
}

func findTools(s settings) []tool {
	tools := []tool{
		{name: "thru", version: thruVersion(s.thru), missing: absent(s.thru), ready: thruOf(s.thru)},
		{name: ceilingName, version: "bench/ceiling.c", missing: absent(s.ceiling), ready: ceilingOf(s.ceiling)},
	}
	if path := os.Getenv("IPERF3"); path != "" {
		tools = append(tools, iperf3At(path))
	}
	return append(tools, iperf3At("iperf3"),
		tool{name: "iperf2", version: programVersion("iperf", "--version"), missing: absent("iperf"), ready: iperf2},
		tool{name: netperfName, version: programVersion("netperf", "-V"), missing: absent("netperf", "netserver"), ready: netperf},
		tool{name: "neper", version: programVersion("tcp_stream", "--nolog", "--version"), missing: absent("tcp_stream", "tcp_rr", "tcp_crr", "udp_stream"), ready: neper},
		tool{name: "nuttcp", version: programVersion("nuttcp", "-V"), missing: absent("nuttcp"), ready: nuttcp},
		tool{name: "sockperf", version: programVersion("sockperf", "--version"), missing: absent("sockperf"), ready: sockperf})
}

// absent names the missing programs; empty if there are none.
func absent(programs ...string) string {
	var names []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			names = append(names, filepath.Base(p))
		}
	}
	if names == nil {
		return ""
	}
	return strings.Join(names, ", ") + " not found"
}

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9][0-9A-Za-z.+-]*`)

// programVersion returns the first number with a dot that a program prints for the flags.
func programVersion(path string, flags ...string) string {
	out, _ := exec.Command(path, flags...).CombinedOutput() // some exit with an error after printing it
	return versionNumber.FindString(string(out))
}

// thruVersion returns the output of `thru version`, which may be a commit.
func thruVersion(path string) string {
	out, _ := exec.Command(path, "version").Output()
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "thru ")
}

// atLeast compares versions such as 3.9 and 3.21+.
func atLeast(version string, major, minor int) bool {
	var a, b int
	fmt.Sscanf(version, "%d.%d", &a, &b)
	return a > major || a == major && b >= minor
}

// pair adds the two processes of pair number i, each on its CPU.
func (c *contender) pair(s shape, i int, server, client []string, port string) {
	from, to := s.place.cpus(i)
	if server != nil {
		c.servers = append(c.servers, command{server, to, port})
	}
	c.clients = append(c.clients, command{client, from, ""})
}

// ---- thru and the ceiling: both ends in one command, placed by an option ----

func thruOf(path string) func(shape) (contender, bool) {
	return func(s shape) (contender, bool) {
		argv := []string{path, "test", "--json", "--one-way", "-t", s.time(), "-O", "0", "-P", s.parallel()}
		argv = append(argv, s.place.flag("")...)
		argv = append(argv, map[kind][]string{
			tcpCopy:  {"-l", s.size(), "--io", "copy"},
			tcpLean:  append(s.sized("-l"), "--lean"),
			udpBatch: {"-u", "-b", "0", "-l", s.size(), "--io", "mmsg"},
			udpGSO:   {"-u", "-b", "0", "-l", s.size(), "--io", "gso"},
			requests: {"--rr", "-l", s.size() + "/" + s.size()},
			connects: {"--crr", "-l", s.size() + "/" + s.size()},
		}[s.kind]...)
		return contender{clients: []command{{argv: argv, cpu: -1}}, read: readThru}, true
	}
}

func readThru(outputs []string) (reading, error) {
	var d measure.Document
	if err := json.Unmarshal([]byte(outputs[0]), &d); err != nil {
		return reading{}, fmt.Errorf("reading thru's JSON: %w", err)
	}
	if d.Error != nil {
		return reading{}, fmt.Errorf("thru: %s", d.Error.Message)
	}
	r := reading{figure: math.NaN(), p50: math.NaN(), p99: math.NaN()}
	for _, c := range d.Cells {
		switch {
		case c.Baseline:
			continue
		case c.Transactions != nil:
			r.figure = c.Transactions.Value
		case c.Datagrams != nil:
			r.figure = c.Datagrams.ReceivedPps
		case c.Goodput != nil:
			r.figure = c.Goodput.Value
		}
		if c.Latency != nil {
			r.p50, r.p99 = float64(c.Latency.P50), float64(c.Latency.P99)
		}
	}
	return r, nil
}

func ceilingOf(path string) func(shape) (contender, bool) {
	return func(s shape) (contender, bool) {
		if s.place == asCome {
			s.place = sameCPU // as thru chooses
		}
		mode := map[kind][]string{tcpCopy: {"tcp"}, tcpLean: {"tcp", "--lean"}, udpBatch: {"udp"}, udpGSO: {"udp", "--gso"}, requests: {"rr"}, connects: {"crr"}}
		argv := append([]string{path}, mode[s.kind]...)
		argv = append(argv, "-t", s.time(), "-O", "0", "-P", s.parallel())
		argv = append(append(argv, s.sized("-l")...), s.place.flag("pair")...)
		return contender{clients: []command{{argv: argv, cpu: -1}}, read: func(outputs []string) (reading, error) {
			var r struct {
				Bits  float64 `json:"bits_per_s"`
				Units float64 `json:"units_per_s"`
				P50   float64 `json:"p50_ns"`
				P99   float64 `json:"p99_ns"`
			}
			if err := json.Unmarshal([]byte(outputs[0]), &r); err != nil {
				return reading{}, fmt.Errorf("reading the ceiling's JSON: %w", err)
			}
			if s.bulk() {
				r.Units = r.Bits
			}
			return reading{figure: r.Units, p50: r.P50, p99: r.P99}, nil
		}}, true
	}
}

// number returns the value after a key such as "throughput=" in a tool's output; NaN if there is none.
func number(output, key string) float64 {
	_, rest, ok := strings.Cut("\n"+output, "\n"+key)
	if !ok {
		return math.NaN()
	}
	text := strings.Fields(rest + " ")
	if len(text) == 0 {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(text[0], 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
