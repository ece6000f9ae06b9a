package path

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Round trips of a small message. Pings leave at regular times, or as soon as fewer than ten are in flight: no more fit into TCP's initial window (RFC 6928),
// and the others would wait at this end.
const (
	pings      = 100
	pingEvery  = 2 * time.Millisecond // so that the ends are as idle as between messages
	pingBudget = time.Second
	quickPings = 10
	quickEvery = 500 * time.Microsecond
	inFlight   = 10

	lastPing = 1 << 31
)

// trip is one round trip: the four times of NTP (RFC 5905); the first and the last are from this end's clock.
type trip struct {
	began              int64 // ns of the Unix epoch
	took               int64 // ns, by the monotonic clock
	theirsCame, theirs int64 // arrival and departure at the other end, ns of the epoch
}

// delay returns the round trip without the processing time of the other end.
func (t trip) delay() int64 { return t.took - (t.theirs - t.theirsCame) }

// roundTrips sends pings and reads the echoes.
func (l *link) roundTrips(n int, every time.Duration) ([]trip, error) {
	l.conn.SetDeadline(time.Now().Add(replyTime + pingBudget))
	p := pinger{began: make(chan time.Time, n), free: make(chan struct{}, inFlight), quit: make(chan struct{})}
	sending := make(chan error, 1)
	go func() { sending <- p.send(l.conn, n, every) }()
	trips, err := p.receive(l.in)
	close(p.quit)
	if err != nil {
		l.conn.SetDeadline(time.Unix(1, 0)) // the connection is useless now: the sender ends too
	}
	return trips, errors.Join(err, <-sending)
}

// pinger is the shared state of its two halves.
type pinger struct {
	began chan time.Time // when each ping left
	free  chan struct{}  // holds one entry for each ping in flight
	quit  chan struct{}
}

// send sends pings, the last one marked.
func (p pinger) send(w io.Writer, n int, every time.Duration) error {
	first := time.Now()
	for i := range n {
		time.Sleep(time.Until(first.Add(time.Duration(i) * every)))
		select {
		case p.free <- struct{}{}:
		case <-p.quit:
			return nil
		}
		number := uint32(i)
		if i == n-1 || time.Since(first) > pingBudget {
			number |= lastPing
		}
		p.began <- time.Now()
		if err := writeFrame(w, framePing, binary.BigEndian.AppendUint32(nil, number)); err != nil {
			return fmt.Errorf("path: sending a ping: %w", err)
		}
		if number&lastPing != 0 {
			return nil
		}
	}
	return nil
}

// receive reads up to the echo of the last ping.
func (p pinger) receive(r *bufio.Reader) ([]trip, error) {
	var trips []trip
	for want := uint32(0); ; want++ {
		kind, payload, err := readFrame(r)
		now := time.Now()
		if err != nil {
			return trips, err
		}
		if kind != framePong || len(payload) != pongSize {
			return trips, fmt.Errorf("path: a message of kind %q and %d bytes instead of a ping's echo", kind, len(payload))
		}
		number := binary.BigEndian.Uint32(payload)
		select {
		case start := <-p.began:
			<-p.free
			if number&^uint32(lastPing) != want {
				return trips, fmt.Errorf("path: the echo of ping %d instead of %d", number&^uint32(lastPing), want)
			}
			trips = append(trips, trip{
				began: start.UnixNano(), took: int64(now.Sub(start)),
				theirsCame: int64(binary.BigEndian.Uint64(payload[4:])), theirs: int64(binary.BigEndian.Uint64(payload[12:])),
			})
		default:
			return trips, errors.New("path: an echo of a ping that was not sent")
		}
		if number&lastPing != 0 {
			return trips, nil
		}
	}
}

// distribution summarizes round trips; nil without any.
func distribution(trips []trip) *measure.PathRTT {
	if len(trips) == 0 {
		return nil
	}
	all := unit.Mapped(trips, func(t trip) int64 { return t.took })
	slices.Sort(all)
	rank := func(percent int) int64 { return all[(len(all)*percent+99)/100-1] }
	return &measure.PathRTT{Min: all[0], P50: rank(50), P90: rank(90), P99: rank(99), Max: all[len(all)-1], Samples: len(all)}
}

// clockOffset returns the offset from the exchange with the shortest round trip; nil where no exchange is plausible.
func clockOffset(trips []trip) *measure.ClockOffset {
	var best *trip
	for i, t := range trips {
		if t.theirs < t.theirsCame || t.delay() < 0 {
			continue // the other clock was set meanwhile
		}
		if best == nil || t.delay() < best.delay() {
			best = &trips[i]
		}
	}
	if best == nil {
		return nil
	}
	there, back := best.theirsCame-best.began, best.theirs-(best.began+best.took)
	return &measure.ClockOffset{OffsetNs: there/2 + back/2, BoundNs: best.delay()/2 + 1}
}
