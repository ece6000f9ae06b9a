package iperf2

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Timeouts of the final exchange of a UDP stream.
const (
	lastWordsTime = 2500 * time.Millisecond // as long as an iperf2 client tries
	silence       = 250 * time.Millisecond  // after which a server assumes that its report has arrived
)

// conclude runs the final exchange after the worker has counted everything: over UDP a client sends its end, and the server sends its report. It returns an
// error for a test that the far end cut short.
func (s *session) conclude() error {
	e := s.Session.Evidence()
	if s.end.Spec.Protocol == measure.UDP {
		part := s.sendEnd
		if !s.end.Sends {
			part = s.sendCounts
		}
		var wg sync.WaitGroup
		for i := range min(len(s.kept), len(e.Streams)) {
			if s.end.Sends == s.end.Dials { // else no end expects a message
				wg.Go(func() { part(i, e) })
			}
		}
		wg.Wait()
	}
	if s.unheard() {
		return fault.Failf("check that `iperf -s -u` runs there without --no-udp-fin, and that firewalls allow UDP in both directions",
			"iperf2: the server sent no report")
	}
	return s.cutShort(e)
}

// unheard reports whether a UDP client has received nothing at all from its server.
func (s *session) unheard() bool {
	if s.end.Spec.Protocol != measure.UDP || !s.end.Sends || !s.end.Dials {
		return false
	}
	return !slices.ContainsFunc(s.words, func(w lastWords) bool { return w.report != nil })
}

// cutShort returns an error where the far end sent less than requested.
func (s *session) cutShort(e measure.Evidence) error {
	if !s.end.Dials {
		return nil // a client sends as long as it wants
	}
	if s.end.Spec.Duplex {
		e, _ = s.Back()
	} else if s.end.Sends {
		return nil
	}
	const hint = "check the server and its host, and firewalls on the path: one of them closed the connection"
	if a := s.end.Spec.Amount; a > 0 && s.end.Spec.Protocol == measure.TCP && e.TotalBytes < a {
		return fault.Failf(hint, "iperf2: the server sent %d of %d bytes", e.TotalBytes, a)
	}
	if d := s.end.Spec.Duration; s.end.Spec.Amount == 0 && e.MeasuredNs < d-d/10-int64(measure.MinDuration) {
		return fault.Failf(hint, "iperf2: the server ended the test after %v of %v", time.Duration(e.MeasuredNs).Round(time.Millisecond), time.Duration(d))
	}
	return nil
}

// lastWords is the final exchange of a UDP stream: the client's end and the server's report.
type lastWords struct {
	first  int64   // number of the first final datagram, which follows that of the last data
	report *report // nil: not received
}

// takeUp returns the kept socket of stream i; closing the session interrupts it.
func (s *session) takeUp(i int) (c net.Conn, done func(), err error) {
	c, err = s.kept[i].Conn()
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(s.life, func() { c.Close() })
	return c, func() { stop(); c.Close() }, nil
}

// sendEnd sends the end of stream i to the server until its report arrives. Each try has its own number, negative and one further.
func (s *session) sendEnd(i int, e measure.Evidence) {
	c, done, err := s.takeUp(i)
	if err != nil {
		return
	}
	defer done()
	words := lastWords{first: afterLast(e.Streams[i])}
	h, err := headerOf(s.end.Spec, true, 0)
	if err != nil {
		return
	}
	word, b := make([]byte, max(e.Streams[i].Length, datagramSize)), make([]byte, largestUDP)
	wait, number := silence/5, words.first
	for give := time.Now().Add(lastWordsTime); words.report == nil && time.Now().Before(give) && s.life.Err() == nil; number++ {
		copy(word, h.append(appendNumber(nil, -number, sinceEpoch())))
		c.Write(word) // a refusal shows as a missing report
		words.report = hearReport(c, b, wait, number)
		wait = min(wait*3/2, silence)
	}
	s.mu.Lock()
	s.words[i] = words
	s.mu.Unlock()
}

// afterLast returns the number after a sent stream's last datagram. Packets includes those that the kernel refused, because they took a number.
func afterLast(x measure.Stream) int64 {
	if x.DatagramsAll == nil {
		return 1
	}
	return x.DatagramsAll.Packets + 1
}

// isLikely reports whether a report is plausible: it counts no more datagrams than were sent, and its times are possible for a test.
func (r report) isLikely(sent int64) bool {
	return r.datagrams >= 0 && r.datagrams <= sent && r.lost >= 0 && r.lost <= r.datagrams && r.bytes >= 0 &&
		r.duration >= 0 && r.duration <= 2*measure.MaxDuration && r.jitter >= 0 && r.jitter <= time.Hour
}

// hearReport reads until a plausible report or a timeout; it returns nil without a report.
func hearReport(c net.Conn, b []byte, wait time.Duration, sent int64) *report {
	give := time.Now().Add(wait)
	c.SetReadDeadline(give)
	for time.Now().Before(give) {
		n, err := c.Read(b)
		if sock.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		if err != nil {
			return nil
		}
		if r, err := parseReport(b[:n]); err == nil && r.isLikely(sent) {
			return &r
		}
	}
	return nil
}

// sendCounts reports stream i to the client, again for each final datagram that still arrives, until there is silence.
func (s *session) sendCounts(i int, e measure.Evidence) {
	c, done, err := s.takeUp(i)
	if err != nil {
		return
	}
	defer done()
	word := reportOf(e.Streams[i], time.Duration(e.MeasuredNs), s.first).append(nil, s.old)
	b := make([]byte, largestUDP)
	// Send no more bytes than were received, because the address of the sender is not verified.
	for came := e.Streams[i].TotalBytes + e.Streams[i].Length; came >= int64(len(word)); came -= int64(len(word)) {
		if _, err := c.Write(word); err != nil && !sock.Is(err, syscall.ECONNREFUSED) {
			return
		}
		c.SetReadDeadline(time.Now().Add(silence))
		n, err := c.Read(b)
		if err != nil {
			return
		}
		came += int64(n)
	}
}

// reportOf returns the server's report of a stream whose first datagram has that number. The client's final datagram counts, except where the numbers begin
// with 0: such a client assumes that its first datagram does not count.
func reportOf(x measure.Stream, span time.Duration, first int64) report {
	r := report{bytes: x.TotalBytes + first*x.Length, duration: span}
	if d := x.DatagramsAll; d != nil {
		r.lost, r.reordered, r.datagrams = d.Lost, d.Reordered+d.Duplicates, d.Packets+d.Lost+first
		r.jitter = time.Duration(measure.Value(d.JitterNs))
	}
	return r
}
