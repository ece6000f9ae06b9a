//go:build linux

package bench

import "strconv"

// kind is a kind of traffic.
type kind string

// Kinds of traffic.
const (
	tcpCopy  kind = "tcp"
	tcpLean  kind = "tcp lean" // sendfile, and a receiver that drops the data
	udpBatch kind = "udp"      // one datagram per message
	udpGSO   kind = "udp gso"  // many datagrams per message
	requests kind = "rr"       // request and response on one connection
	connects kind = "crr"      // connect, request, response, close
	fileMove kind = "file"     // a file over a file transfer protocol
)

// placement is the CPUs of the two ends. It is the same for all tools of a comparison.
type placement int

// Placements.
const (
	sameCPU placement = iota // both ends on CPU 0
	twoCPUs                  // the sender on CPU 0, the receiver on CPU 1
	paired                   // both ends of stream i on CPU i
	free                     // the scheduler chooses
	asCome                   // each tool's default, without placement options
)

func (p placement) String() string {
	return [...]string{"both ends on one CPU", "sender on CPU 0, receiver on CPU 1",
		"one pair a CPU", "the scheduler places", "placed as each tool comes"}[p]
}

// flag returns the value for -A of thru and the ceiling; nil for none. thru pairs the ends of streams by
// itself.
func (p placement) flag(pairs string) []string {
	value := map[placement]string{sameCPU: "0,0", twoCPUs: "0,1", paired: pairs, free: "off"}[p]
	if value == "" {
		return nil
	}
	return []string{"-A", value}
}

// cpus returns the CPUs of process number i of each end; -1 is any.
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

// shape is one kind of traffic for every tool.
type shape struct {
	kind    kind
	streams int
	length  int // bytes of a call, a datagram, a request; 0 is each tool's default
	place   placement
	seconds float64
}

func (s shape) udp() bool  { return s.kind == udpBatch || s.kind == udpGSO }
func (s shape) bulk() bool { return s.kind == tcpCopy || s.kind == tcpLean }

// latency reports whether tools measure the time of each request.
func (s shape) latency() bool { return s.kind == requests || s.kind == connects }

// unit returns the unit of the tables' figures.
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

// Texts of numbers for command lines.
func (s shape) size() string     { return strconv.Itoa(s.length) }
func (s shape) parallel() string { return strconv.Itoa(s.streams) }
func (s shape) time() string     { return strconv.Itoa(int(s.seconds)) }

// sized returns the option that sets the length, if there is one.
func (s shape) sized(option string) []string {
	if s.length == 0 {
		return nil
	}
	return []string{option, s.size()}
}
