package worker

import (
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Bounds of data that does not come. Where half of the packets are lost both
// ways, TCP waits up to 13 s and more between two tries to send a segment: the
// path is there, and the test goes on as soon as it lets something pass.
const (
	askAfter = time.Second            // without a byte: the far end's kernel is asked whether it is there
	askEvery = 400 * time.Millisecond // again, since half of the questions and of the answers may be lost
	patience = 30 * time.Second       // without a byte, where it has answered
)

// asked is what has become of asking the far end's kernel.
type asked struct {
	segments int64     // that have come on all streams
	at       time.Time // when that was last looked at; zero: nobody was asked
	answered time.Time // when some had come since, in this silence or in one before
}

// stalled is an error at a receiver to which nothing has come for so long, and
// for as long as a slow rate spaces what comes.
func (w *worker) stalled(limit time.Duration) error {
	n := w.received()
	if now := time.Now(); n != w.moved || w.movedAt.IsZero() {
		w.moved, w.movedAt = n, now
	}
	silent := time.Since(w.movedAt)
	if !w.cmd.receives() || silent < limit+3*w.spacing() {
		return nil
	}
	return fault.Failf("control still works: is the link that carries the data up, and does it lose packets?",
		"worker: the data stopped: nothing has come for %.0f s", silent.Seconds())
}

// stopped is the error of data that comes no more: nothing for so long, of TCP
// not even an answer to an empty segment (a keep-alive, RFC 9293 3.8.4). Where one
// has come the path loses much, and is there, in the next silence too.
func (w *worker) stopped(limit time.Duration) error {
	err := w.stalled(limit)
	silent := time.Since(w.movedAt)
	switch {
	case silent < askAfter || !w.cmd.receives() || w.cmd.Spec.Protocol != measure.TCP:
		w.asked.at = time.Time{}
	case time.Since(w.asked.at) >= askEvery:
		w.ask()
	}
	if !w.asked.answered.IsZero() && time.Since(w.asked.answered) < patience && silent < patience+3*w.spacing() {
		return nil
	}
	return err
}

// ask has the kernel ask at each stream, and notes whether segments have come.
func (w *worker) ask() {
	first, segments := w.asked.at.IsZero(), int64(0)
	for _, s := range w.flow.streams {
		segments += sock.Read(s.sock, func(fd uintptr) int64 {
			sock.AskPeer(fd) // refused: what comes by itself tells
			var b [sock.TCPInfoSize]byte
			return max(sock.ParseMoment(b[:sock.ReadTCPInfo(fd, b[:])]).SegsIn, 0)
		})
	}
	w.asked.at = time.Now()
	if !first && segments != w.asked.segments {
		w.asked.answered = w.asked.at
	}
	w.asked.segments = segments
}

// spacing is the time between two messages at the rate that was asked for.
func (w *worker) spacing() time.Duration {
	switch s := w.cmd.Spec; {
	case s.PerSecond > 0:
		return time.Duration(float64(time.Second) / s.PerSecond)
	case s.Protocol == measure.UDP && s.Rate > 0:
		return time.Duration(8e9 * float64(max(w.flow.length, safeDatagram)) * float64(s.Streams) / float64(s.Rate))
	case w.cmd.Adopt != nil && s.Rate > 0: // other programs write whole blocks at any rate
		return time.Duration(8e9 * float64(max(s.Length.Send, measure.DefaultLength)) * float64(s.Streams) / float64(s.Rate))
	}
	return 0
}
