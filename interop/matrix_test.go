// Package interop checks thru against the programs whose protocols it speaks: iperf3 and iperf (2). In
// network namespaces joined by a link of 1 Gb/s, thru measures with each of them, as client and as server,
// and the package compares both programs' reports: each end's figure of a direction within 3% of the other
// end's, and on a path with 1% packet loss the same count of losses. It also tests several real clients at
// once, and checks the packets with tshark.
//
// `make interop` runs it (root, nftables, tcpdump, tshark, iperf3, iperf); the tests have the build tag
// interop, since they take minutes. A missing program is a failure. IPERF3 names a second, newer iperf3.
//
//	make interop                              everything
//	make interop RUN=TestInterop/thru-iperf3  thru as client of iperf3 servers
//	make interop RUN=TestJudges               real client and real server: their own differences
//
// matrix_test.go defines the tests, figures_test.go parses the programs' output, judge_test.go compares, and
// the other files run the programs.
package interop

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// Direction is the direction of the data.
type Direction string

// Directions. Reverse is from the server to the client.
const (
	Forward Direction = "forward"
	Reverse Direction = "reverse"
	Bidir   Direction = "bidir"
)

// Shape is one kind of test.
type Shape struct {
	UDP       bool
	Direction Direction
	Streams   int
	NoRamp    bool  // thru counts from the first datagram
	Rate      int64 // of each stream, in bit/s; 0 is the default
	Seconds   int   // 0 is Time
}

// String names a shape, also in the names of the tests.
func (s Shape) String() string {
	protocol := "tcp"
	if s.UDP {
		protocol = "udp"
	}
	return fmt.Sprintf("%s-%s-P%d", protocol, s.Direction, s.Streams)
}

// Shapes returns the cells of every pair of programs: TCP and UDP, each direction and both, one stream and
// four.
func Shapes() []Shape {
	var all []Shape
	for _, udp := range []bool{false, true} {
		for _, direction := range []Direction{Forward, Reverse, Bidir} {
			for _, streams := range []int{1, 4} {
				all = append(all, Shape{UDP: udp, Direction: direction, Streams: streams})
			}
		}
	}
	return all
}

// Traffic of every cell.
const (
	// Time is how long a cell sends.
	Time = 2 * time.Second
	// LinkRate of the path, in bit/s of frames.
	LinkRate = 1_000_000_000
	// DatagramRate of all streams of a direction, in bit/s: the path and two CPUs carry it both ways.
	DatagramRate = 100_000_000
	// DatagramSize in bytes fits a frame.
	DatagramSize = 1400
)

// Names of the programs.
const (
	Thru   = "thru"
	IPerf3 = "iperf3"
	IPerf2 = "iperf"
)

// amount returns the options for the amount of traffic, common to all clients.
func (s Shape) amount() []string {
	seconds := cmp.Or(s.Seconds, int(Time.Seconds()))
	args := []string{"-t", strconv.Itoa(seconds), "-P", strconv.Itoa(s.Streams)}
	rate := s.Rate
	if s.UDP {
		rate = cmp.Or(rate, DatagramRate/int64(s.Streams))
		args = append(args, "-u", "-l", strconv.Itoa(DatagramSize))
	}
	if rate > 0 {
		args = append(args, "-b", strconv.FormatInt(rate, 10))
	}
	return args
}

// ClientArgs returns the command line of a real client for a shape.
func ClientArgs(program, server string, port int, s Shape) []string {
	args := append([]string{"-c", server, "-p", strconv.Itoa(port)}, s.amount()...)
	switch {
	case s.Direction == Reverse:
		args = append(args, "-R")
	case s.Direction == Bidir && program == IPerf2:
		args = append(args, "--full-duplex")
	case s.Direction == Bidir:
		args = append(args, "--bidir")
	}
	if program == IPerf2 {
		return append(args, "-y", "C")
	}
	return append(args, "-J")
}

// ServerArgs returns the command line of a real server. It serves until it is ended, since thru also measures
// a single-stream baseline.
func ServerArgs(program string, port int, s Shape) []string {
	args := []string{"-s", "-p", strconv.Itoa(port)}
	if program != IPerf2 {
		return append(args, "-J", "--forceflush")
	}
	if s.UDP {
		args = append(args, "-u", "-l", strconv.Itoa(DatagramSize))
	}
	return append(args, "-y", "C")
}

// ThruArgs returns the command line of thru as the client of a real server.
func ThruArgs(program, server string, port int, s Shape) []string {
	scheme := "iperf3"
	if program == IPerf2 {
		scheme = "iperf2"
	}
	args := append([]string{"test", "--json"}, s.amount()...)
	if s.NoRamp {
		args = append(args, "-O", "0")
	}
	switch {
	case s.Direction == Forward:
		args = append(args, "--one-way")
	case s.Direction == Reverse:
		args = append(args, "-R")
	case program == IPerf2:
		args = append(args, "--bidir", "--one-connection")
	default:
		args = append(args, "--bidir")
	}
	return append(args, fmt.Sprintf("%s://%s:%d", scheme, server, port))
}

// LeftOut returns why a pair of programs is not tested in a shape; empty if it is.
func LeftOut(client, server string, s Shape) string {
	two := client == IPerf2 || server == IPerf2
	switch {
	case two && s.UDP && s.Direction == Bidir:
		return "iperf 2 has no UDP in both directions on one socket that works"
	case client == IPerf2 && server == Thru && s.UDP && s.Direction == Reverse:
		return "an iperf 2 client's address is not proven over UDP, and thru sends no datagrams to such a one"
	}
	return ""
}
