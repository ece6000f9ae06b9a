package worker

import (
	"cmp"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"thru/internal/measure"
	"thru/internal/sock"
	"thru/internal/stat"
)

// socket carries the data: a connected *net.TCPConn or *net.UDPConn, or the form that a data path has converted it to.
type socket interface {
	net.Conn
	syscall.Conn
}

// Indices in stream.more of counters that only some kinds of traffic have.
const (
	cPackets     = iota // UDP: datagrams sent, or received without duplicates
	cLost               // UDP: numbers skipped and not received since
	cDuplicates         // UDP
	cReordered          // UDP
	cReorderMost        // UDP: greatest extent
	cJitterNs           // UDP: current value
	cDelaySumUs         // UDP: sum of the recorded delay variations
	cDelayCount         // UDP: number of them
	cDelayMaxNs         // UDP: greatest since the last statistical second
	cSendErrors         // UDP: datagrams refused for lack of buffers
	cSocketDrops        // UDP: dropped at the receiver's socket
	cForeign            // UDP: datagrams that do not belong to this test
	cRequests           // request/response: transactions
	cTookNs             // request/response: sum of the recorded latencies
	cTook               // request/response: number of them
	cTookMaxNs          // request/response: greatest since the last statistical second
	cRateBps            // UDP search: current rate
	cCounters
)

// stream is one connection in the worker, or one direction of it. The thread that moves its data only makes socket calls and adds to the counters; the sampler
// reads everything else from outside.
type stream struct {
	index           int
	sends           bool
	sock            socket
	file            *os.File // duplicate of the socket for raw calls; nil on the portable path
	cpus            []int    // CPUs to bind the thread to; empty: the scheduler decides
	placementReason string   // why these CPUs

	bytes atomic.Int64
	calls atomic.Int64
	_     [48]byte // keeps the counters of two streams in separate cache lines
	more  [cCounters]atomic.Int64

	clock    threadClock
	pace     *pacer
	pacedBy  string
	quota    int64 // bytes to send in total, or noQuota
	check    *checker
	early    Early     // data of an adopted stream that the engine has moved
	source   io.Closer // of the data to send without copying; nil on other paths
	changed  string    // why the data path changed during the test; set before done closes
	latency  *latencies
	delays   *stat.Delays     // UDP: of the receiving thread; read when done is closed
	listener *net.TCPListener // for CRR traffic, on the portable path
	firstAt  atomic.Int64     // time of the first byte since the flow's start, plus one; 0: none yet; negative before the start
	lastAt   atomic.Int64     // time of the last datagram since the flow's start; negative before it
	err      error            // set before done closes
	done     chan struct{}    // closed when the data has stopped
	drained  chan struct{}    // closed when, at a sender, the peer has closed too
}

// flow is the set of streams of one end, with the state that their threads share.
type flow struct {
	streams      []*stream
	side         *side // for UDP and two-way streams; else nil
	length       int
	answer       int     // request/response: bytes of the response; length is the request's
	perSecond    float64 // request/response: rate of each stream; 0: back to back
	udp          bool
	crr          *crr       // CRR traffic; else nil
	dialer       net.Dialer // for its connections, on the portable path
	dontFragment bool
	numbering    Numbering // of datagrams
	firstNumber  uint64
	behind       []byte // bytes after the numbering in a datagram
	keepOpen     bool   // a sender's connection stays open after all data
	sends        bool   // the flow's own direction; a two-way flow does both
	begin        time.Time

	stop      atomic.Bool   // senders end after the current call
	measuring atomic.Bool   // between mark and finish
	ending    atomic.Bool   // datagrams: nothing more is expected
	first     chan struct{} // one token at the first byte that starts this end's clock
	release   chan struct{} // closed when the threads may end
}

func newFlow(c openCommand, conns []socket, sideConn *side) *flow {
	f := &flow{
		sends: c.Sends, side: sideConn, length: lengthOf(c, conns[0]), answer: answerOf(c),
		perSecond: c.Spec.PerSecond, dontFragment: c.Spec.DontFragment, udp: c.Spec.Protocol == measure.UDP,
		first: make(chan struct{}, 1), release: make(chan struct{}),
	}
	if a := c.Adopt; a != nil {
		f.numbering, f.firstNumber, f.behind, f.keepOpen = a.Datagrams, a.FirstNumber, a.Behind, !a.EndOfStream
	}
	for i, conn := range conns {
		sends := c.Sends == (i < c.Spec.Streams) // the other direction of adopted ones has its own connections
		f.streams = append(f.streams, newStream(c, i, conn, sends))
	}
	if c.Spec.Duplex && c.Adopt == nil {
		for i, conn := range conns {
			f.streams = append(f.streams, newStream(c, len(conns)+i, conn, !c.Sends))
		}
	}
	return f
}

func newStream(c openCommand, index int, conn socket, sends bool) *stream {
	s := &stream{index: index, sends: sends, sock: conn, done: make(chan struct{}), drained: make(chan struct{})}
	cpu := c.Spec.ReceiverCPU
	if c.Sends {
		cpu = c.Spec.SenderCPU
	}
	if cpu != nil {
		s.cpus = []int{*cpu}
	}
	s.quota = noQuota
	if sends && c.Spec.Amount > 0 {
		s.quota = share(c.Spec.Amount, c.Spec.Streams, index%c.Spec.Streams)
	}
	if c.Spec.Traffic != measure.Bulk && sends {
		s.latency = newLatencies()
	}
	if c.Spec.Verify {
		s.check = &checker{}
	}
	return s
}

// noQuota lets a stream send for the whole test.
const noQuota = -1

// share returns part i of n of an amount; the parts sum up to it.
func share(amount int64, n, i int) int64 {
	part := amount / int64(n)
	if int64(i) < amount%int64(n) {
		part++
	}
	return part
}

// lengthOf returns how many bytes this end moves per call.
func lengthOf(c openCommand, conn socket) int {
	n := c.Spec.Length.Recv
	if c.Sends || c.Spec.Traffic != measure.Bulk {
		n = c.Spec.Length.Send
	}
	switch {
	case n > 0:
	case c.Spec.Traffic != measure.Bulk:
		n = 1
	case c.Spec.Protocol == measure.UDP:
		n = cmp.Or(sock.DatagramRoom(conn), safeDatagram)
	default:
		n = int64(defaultLength(c.wanted()))
	}
	if c.Spec.Protocol == measure.TCP && c.Spec.Traffic == measure.Bulk {
		n = callFor(c, n)
	}
	return int(n)
}

// callFor reduces the call length at a limited rate.
func callFor(c openCommand, n int64) int64 {
	if rate := c.rateOfStream(c.Sends); rate > 0 {
		return min(n, max(leastCall, rate/8*int64(paceStep)/int64(time.Second)))
	}
	return n
}

func answerOf(c openCommand) int { return max(int(c.Spec.Length.Recv), 1) }

// moved counts the bytes of one call.
func (s *stream) moved(n int) {
	s.bytes.Add(int64(n))
	s.calls.Add(1)
}

// left returns how much of at most n bytes the stream may still send.
func (s *stream) left(n int) int {
	if s.quota == noQuota {
		return n
	}
	return int(min(int64(n), s.quota-s.bytes.Load()))
}

// sawFirst records the first byte of a stream; the earliest starts the clock.
func (f *flow) sawFirst(s *stream) {
	if s.firstAt.Load() == 0 {
		s.firstAt.Store(int64(time.Since(f.begin)) + 1)
	}
	if s.sends != f.clockSends() {
		return
	}
	select {
	case f.first <- struct{}{}:
	default:
	}
}

// clockSends reports whether a sent byte starts this end's clock: with data in both directions on one connection, a received byte does.
func (f *flow) clockSends() bool { return f.sends && !f.isDuplex() }

func (f *flow) isDuplex() bool { return f.streams[0].sends != f.streams[len(f.streams)-1].sends }

// origin returns when the first byte that starts this end's clock passed.
func (f *flow) origin() time.Time {
	var least int64
	for _, s := range f.streams {
		if at := s.firstAt.Load(); at != 0 && s.sends == f.clockSends() && (least == 0 || at < least) {
			least = at
		}
	}
	if least == 0 {
		return f.begin
	}
	return f.begin.Add(time.Duration(least - 1))
}

// run moves the data of one stream, in its own goroutine, and signals ended.
func (f *flow) run(s *stream, io streamRunner, ended chan<- *stream) {
	s.err = io.move(f, s)
	close(s.done)
	ended <- s
	if s.sends && s.err == nil && !f.keepOpen {
		io.finish(f, s)
	}
	close(s.drained)
	<-f.release // the thread and its counters live until the last sample
}
