package native

import (
	"net"
	"os"
	"sync/atomic"
	"time"

	"thru/internal/measure"
)

// stream is one connection in the worker. The thread that moves its data only
// makes socket calls and adds to bytes and calls; everything else is read
// from outside by the sampler.
type stream struct {
	index int
	conn  *net.TCPConn
	file  *os.File // duplicate of the socket for raw calls; nil on the portable path
	cpu   *int     // CPU to bind the thread to

	bytes atomic.Int64
	calls atomic.Int64
	_     [48]byte // keeps the counters of two streams off one cache line

	clock   threadClock
	pace    *pacer
	firstAt atomic.Int64  // time of the first byte since the flow's start, plus one; 0 is none yet
	err     error         // set before done closes
	done    chan struct{} // closed when the data has stopped
	drained chan struct{} // closed when, at a sender, the peer has closed too
}

// flow is the set of streams of one end, with what their threads share.
type flow struct {
	streams []*stream
	length  int
	sends   bool
	begin   time.Time
	stop    atomic.Bool   // senders end after the current call
	first   chan struct{} // one token at the first byte of any stream
	release chan struct{} // closed when the threads may end
}

func newFlow(c openCommand, conns []*net.TCPConn) *flow {
	f := &flow{
		sends: c.Sends, length: int(c.Spec.Length.Recv),
		first: make(chan struct{}, 1), release: make(chan struct{}),
	}
	cpu := c.Spec.ReceiverCPU
	if c.Sends {
		f.length, cpu = int(c.Spec.Length.Send), c.Spec.SenderCPU
	}
	if f.length == 0 {
		f.length = measure.DefaultLength
	}
	if c.RateBps > 0 { // calls as small as the rate asks for
		f.length = min(f.length, max(leastCall, int(c.RateBps/8/int64(len(conns))*int64(paceStep)/int64(time.Second))))
	}
	for i, conn := range conns {
		s := &stream{index: i, conn: conn, cpu: cpu, done: make(chan struct{}), drained: make(chan struct{})}
		if c.RateBps > 0 {
			s.pace = newPacer(c.RateBps/int64(len(conns)), &f.stop)
		}
		f.streams = append(f.streams, s)
	}
	return f
}

// sawFirst notes the first byte of a stream; the earliest starts the clock of a receiver.
func (f *flow) sawFirst(s *stream) {
	s.firstAt.Store(int64(time.Since(f.begin)) + 1)
	select {
	case f.first <- struct{}{}:
	default:
	}
}

// origin is when the first byte of any stream came.
func (f *flow) origin() time.Time {
	var least int64
	for _, s := range f.streams {
		if at := s.firstAt.Load(); at != 0 && (least == 0 || at < least) {
			least = at
		}
	}
	if least == 0 {
		return f.begin
	}
	return f.begin.Add(time.Duration(least - 1))
}

// pacer holds one stream to a rate by sleeping when it is ahead (a token loop
// whose bucket is a few milliseconds deep).
type pacer struct {
	perByte float64 // nanoseconds
	next    time.Time
	stop    *atomic.Bool
}

const (
	paceDepth = 5 * time.Millisecond  // how much of unused time may be made up for
	paceStep  = 10 * time.Millisecond // what one call should carry, and the longest sleep
	leastCall = 1448                  // bytes: a segment
)

func newPacer(bps int64, stop *atomic.Bool) *pacer {
	return &pacer{perByte: 8e9 / float64(max(bps, 1)), stop: stop}
}

// after is called when n bytes have moved.
func (p *pacer) after(n int) {
	now := time.Now()
	if p.next.Before(now.Add(-paceDepth)) {
		p.next = now.Add(-paceDepth) // what was not used in time is lost, so that no burst follows
	}
	p.next = p.next.Add(time.Duration(float64(n) * p.perByte))
	for ahead := p.next.Sub(now); ahead > 0 && !p.stop.Load(); ahead = time.Until(p.next) {
		time.Sleep(min(ahead, paceStep))
	}
}

// run moves the data of one stream, in its own goroutine, and tells ended.
func (f *flow) run(s *stream, io mover, ended chan<- *stream) {
	s.err = io.move(f, s)
	close(s.done)
	ended <- s
	if f.sends && s.err == nil {
		io.finish(s)
	}
	close(s.drained)
	<-f.release // the thread and its counters live until the last sample
}
