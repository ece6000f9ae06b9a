package worker

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"
)

// side is the TCP side connection of UDP and two-way streams, which carry nothing but test data. On it a receiver signals the end of its measured time, and
// sends its feedback to a search; its end of stream is the peer's end.
type side struct {
	conn     *net.TCPConn
	enough   chan struct{} // closed when the peer's measured time is over
	gone     chan struct{} // closed when the peer has closed, or the connection broke
	feedback func(report)  // set before start
	once     sync.Once
	buf      []byte // of the reporting end
}

// Messages of a side connection: a byte, followed by the fields of a report.
const (
	enough    = 'E' // the receiver's measured time is over
	reporting = 'F' // a report follows
)

func newSide(c *net.TCPConn) *side {
	return &side{conn: c, enough: make(chan struct{}), gone: make(chan struct{})}
}

// start reads the peer's messages until it closes.
func (s *side) start() {
	go func() {
		defer close(s.gone)
		s.hear(s.conn)
	}()
}

// hear reads the peer's messages until its end, or until an invalid one.
func (s *side) hear(r io.Reader) {
	var head [1]byte
	var b [reportSize]byte // allocated once: a worker collects no garbage
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		switch head[0] {
		case enough:
			s.once.Do(func() { close(s.enough) })
		case reporting:
			if _, err := io.ReadFull(r, b[:]); err != nil {
				return
			}
			if s.feedback != nil {
				s.feedback(parseReport(b))
			}
		default:
			return // invalid message
		}
	}
}

func (s *side) sendEnough() { s.write([]byte{enough}) }

func (s *side) report(r report) {
	s.buf = r.append(append(s.buf[:0], reporting))
	s.write(s.buf)
}

// endTime limits a write to a peer that no longer reads.
const endTime = 2 * time.Second

func (s *side) write(b []byte) {
	s.conn.SetWriteDeadline(time.Now().Add(endTime))
	s.conn.Write(b) // a broken connection shows as gone
}

// closed reports without waiting whether c is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// report is the report of a search's receiver for one interval of feedback.
type report struct {
	SpanNs    int64 // length of the interval
	Bytes     int64 // payload received in it
	Errors    int64 // lost, reordered and duplicate datagrams in it
	DelayNs   int64 // mean one-way delay in it, minus the least of the test
	ReceivedN int64 // datagrams received in it
}

const reportSize = 5 * 8

func (r *report) fields() [5]*int64 {
	return [5]*int64{&r.SpanNs, &r.Bytes, &r.Errors, &r.DelayNs, &r.ReceivedN}
}

func (r report) append(b []byte) []byte {
	for _, v := range r.fields() {
		b = binary.BigEndian.AppendUint64(b, uint64(*v))
	}
	return b
}

func parseReport(b [reportSize]byte) (r report) {
	for i, v := range r.fields() {
		*v = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	return r
}
