package worker

import (
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Timeouts for missing data. With 50% packet loss in both directions, TCP waits up to 13 s and more between two retransmissions of a segment: the path works,
// and the test continues when a segment passes.
const (
	askAfter = time.Second            // without a byte, until a keep-alive probes the far end's kernel
	askEvery = 400 * time.Millisecond // between probes, because half of the probes and of the answers may be lost
	patience = 30 * time.Second       // without a byte, after an answer
)

// asked is the state of the keep-alive probes.
type asked struct {
	segments int64     // segments received on all streams
	at       time.Time // time of the last check; zero: no probe sent
	answered time.Time // time of the last new segments, in this silence or in an earlier one
}

// stalled returns an error at a receiver without data for the limit, plus the message spacing at a slow rate.
func (w *worker) stalled(limit time.Duration) error {
	n := w.received()
	if now := time.Now(); n != w.moved || w.movedAt.IsZero() {
		w.moved, w.movedAt = n, now
	}
	silent := time.Since(w.movedAt)
	if !w.cmd.receives() || silent < limit+3*w.spacing() {
		return nil
	}
	return fault.Failf("check the link that carries the data: it is down or loses packets (the control connection still works)",
		"worker: the data stopped: nothing arrived for %.0f s", silent.Seconds())
}

// stopped returns an error when data stops: no byte for the limit, and with TCP not even an answer to an empty segment (a keep-alive, RFC 9293 3.8.4). After
// an answer the path counts as lossy but working, also in the next silence.
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

// ask makes the kernel probe each stream, and records whether segments have arrived.
func (w *worker) ask() {
	first, segments := w.asked.at.IsZero(), int64(0)
	for _, s := range w.flow.streams {
		segments += sock.Read(s.sock, func(fd uintptr) int64 {
			sock.AskPeer(fd) // if refused, segments that arrive anyway decide
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

// spacing returns the time between two messages at the requested rate.
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
