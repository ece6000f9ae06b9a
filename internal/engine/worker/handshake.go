package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"thru/internal/measure"
	"thru/internal/token"
)

// The handshake of a data connection. The dialling end sends the token (package token) and the stream's index; the listening end proves that it holds the
// token. So neither exchanges test traffic with a stranger. On stream 0 the dialling end then sends pings, which the listening end returns.
const (
	pingSize   = 64
	pingAgain  = 'P'
	pingLast   = 'L'
	maxPings   = 20
	minPings   = 3
	pingBudget = 200 * time.Millisecond
)

// introduce is the dialling end's side.
func introduce(ctx context.Context, c net.Conn, shown string, index int) error {
	t, err := token.Parse(shown)
	if err != nil {
		return err
	}
	end := time.Now().Add(handshakeTime)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	c.SetDeadline(end)
	defer c.SetDeadline(time.Time{})
	if err := t.Introduce(c, token.Data, indexBytes(index)); err != nil {
		return fmt.Errorf("worker: greeting %s: %w", c.RemoteAddr(), err)
	}
	return nil
}

// greet is the listening end's side: it returns the index of the stream.
func greet(c net.Conn, own string, streams int) (int, error) {
	t, err := token.Parse(own)
	if err != nil {
		return 0, err
	}
	c.SetDeadline(time.Now().Add(handshakeTime))
	defer c.SetDeadline(time.Time{})
	more, answer, err := t.Hear(c, token.Data, indexSize)
	if err != nil {
		return 0, fmt.Errorf("worker: accepting a data connection: %w", err)
	}
	index := int(binary.BigEndian.Uint16(more))
	if index >= streams {
		return 0, fmt.Errorf("worker: accepting a data connection: stream %d of %d", index, streams)
	}
	if _, err := c.Write(answer); err != nil {
		return 0, fmt.Errorf("worker: accepting a data connection: %w", err)
	}
	return index, nil
}

// indexSize is the size of a stream's index in a greeting.
const indexSize = 2

func indexBytes(index int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(index)) }

// ping measures the round-trip time of a small message from socket to socket on the idle path (C-15). The first exchange is a warm-up and does not count.
func ping(c net.Conn) (*measure.RTT, error) {
	var msg, back [pingSize]byte
	var took []int64
	c.SetDeadline(time.Now().Add(handshakeTime + pingBudget))
	defer c.SetDeadline(time.Time{})
	begin := time.Now()
	for i, last := 0, false; !last; i++ {
		enough := i > minPings && time.Since(begin) > pingBudget
		last = i == maxPings || enough
		msg[0], msg[1] = pingAgain, byte(i)
		if last {
			msg[0] = pingLast
		}
		sent := time.Now()
		if _, err := c.Write(msg[:]); err != nil {
			return nil, fmt.Errorf("worker: measuring RTT: %w", err)
		}
		if _, err := io.ReadFull(c, back[:]); err != nil {
			return nil, fmt.Errorf("worker: measuring RTT: %w", err)
		}
		if back != msg {
			return nil, fmt.Errorf("worker: measuring RTT: the reply of %s differs from the request", c.RemoteAddr())
		}
		if i > 0 {
			took = append(took, int64(time.Since(sent)))
		}
	}
	slices.Sort(took)
	return &measure.RTT{Min: took[0], Median: took[len(took)/2], Max: took[len(took)-1], Samples: len(took)}, nil
}

// pong returns the peer's pings until the last one.
func pong(c net.Conn) error {
	var msg [pingSize]byte
	c.SetDeadline(time.Now().Add(handshakeTime + pingBudget))
	defer c.SetDeadline(time.Time{})
	for {
		if _, err := io.ReadFull(c, msg[:]); err != nil {
			return fmt.Errorf("worker: returning pings: %w", err)
		}
		if _, err := c.Write(msg[:]); err != nil {
			return fmt.Errorf("worker: returning pings: %w", err)
		}
		if msg[0] != pingAgain {
			return nil
		}
	}
}
