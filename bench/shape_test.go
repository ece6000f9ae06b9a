//go:build linux

package bench

import "strconv"

// kind is what moves.
type kind string

// Kinds of traffic.
const (
	tcpCopy  kind = "tcp"
	tcpLean  kind = "tcp lean" // sendfile, and a receiver that has the data dropped
	udpBatch kind = "udp"      // one datagram a message
	udpGSO   kind = "udp gso"  // many a message
	requests kind = "rr"       // request and response on one connection
	connects kind = "crr"      // connect, request, response, close
	fileMove kind = "file"     // a file by a protocol for files
)

// placement says on which CPUs the two ends run. It is the same for all tools
// of a comparison.
type placement int

// Placements.
const (
	sameCPU placement = iota // both ends on CPU 0
	twoCPUs                  // the sender on CPU 0, the receiver on CPU 1
	paired                   // both ends of stream i on CPU i
	free                     // the scheduler chooses
	asCome                   // each tool as it comes, without options of placement
)

func (p placement) String() string {
	return [...]string{"both ends on one CPU", "sender on CPU 0, receiver on CPU 1",
		"one pair a CPU", "the scheduler places", "placed as each tool comes"}[p]
}

// flag is what thru's and the ceiling's -A take; empty for none. thru pairs
// the ends of streams on its own.
func (p placement) flag(pairs string) []string {
	value := map[placement]string{sameCPU: "0,0", twoCPUs: "0,1", paired: pairs, free: "off"}[p]
	if value == "" {
		return nil
	}
	return []string{"-A", value}
}

// cpus are those that process number i of its end may use; -1 is any.
func (p placement) cpus(i int) (sender, receiver int) {
	switch p {
	case sameCPU:
		return 0, 0
	case twoCPUs:
		return 0, 1
	case paired:
		return i, i
	default:
		return -1, -1
	}
}

// shape is one kind of traffic as every tool is asked for it.
type shape struct {
	kind    kind
	streams int
	length  int // bytes of a call, a datagram, a request; 0 is each tool's own default
	place   placement
	seconds float64
}

func (s shape) udp() bool  { return s.kind == udpBatch || s.kind == udpGSO }
func (s shape) bulk() bool { return s.kind == tcpCopy || s.kind == tcpLean }

// latency tells whether a tool says how long each took.
func (s shape) latency() bool { return s.kind == requests || s.kind == connects }

// Units in which the tables give figures.
func (s shape) unit() (name string, scale float64) {
	switch {
	case s.bulk() || s.kind == fileMove:
		return "Gb/s", 1e9
	case s.udp():
		return "M packets/s", 1e6
	case s.kind == requests:
		return "K transactions/s", 1e3
	default:
		return "K connects/s", 1e3
	}
}

// texts of numbers for command lines
func (s shape) size() string     { return strconv.Itoa(s.length) }
func (s shape) parallel() string { return strconv.Itoa(s.streams) }
func (s shape) time() string     { return strconv.Itoa(int(s.seconds)) }

// sized is the option that sets the length, where one is asked for.
func (s shape) sized(option string) []string {
	if s.length == 0 {
		return nil
	}
	return []string{option, s.size()}
}
