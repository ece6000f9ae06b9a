package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"thru/internal/measure"
)

// The handshake of a data connection. The dialling end sends magic, the first
// half of the token and the stream's index; the listening end answers with
// the second half. So neither takes or sends test traffic for a stranger, and
// traffic goes only to an address that has just returned the token. On stream
// 0 the dialling end then sends pings, which the listening end returns.
const (
	magic      = "thru-d1\n"
	tokenHalf  = 16
	helloSize  = len(magic) + tokenHalf + 2
	pingSize   = 64
	pingAgain  = 'P'
	pingLast   = 'L'
	maxPings   = 20
	minPings   = 3
	pingBudget = time.Second
)

// newToken returns a token for one session, in hexadecimal.
func newToken() string {
	var b [2 * tokenHalf]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

func splitToken(token string) (ask, answer []byte, err error) {
	b, err := hex.DecodeString(token)
	if err != nil || len(b) != 2*tokenHalf {
		return nil, nil, errors.New("worker: reading token: it is not 32 bytes in hexadecimal")
	}
	return b[:tokenHalf], b[tokenHalf:], nil
}

// introduce is the dialling end's side.
func introduce(ctx context.Context, c net.Conn, token string, index int) error {
	ask, answer, err := splitToken(token)
	if err != nil {
		return err
	}
	hello := append([]byte(magic), ask...)
	hello = binary.BigEndian.AppendUint16(hello, uint16(index))
	end := time.Now().Add(handshakeTime)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	c.SetDeadline(end)
	defer c.SetDeadline(time.Time{})
	if _, err := c.Write(hello); err != nil {
		return fmt.Errorf("worker: greeting %s: %w", c.RemoteAddr(), err)
	}
	got := make([]byte, tokenHalf)
	if _, err := io.ReadFull(c, got); err != nil {
		return fmt.Errorf("worker: greeting %s: no token came back: %w", c.RemoteAddr(), err)
	}
	if subtle.ConstantTimeCompare(got, answer) != 1 {
		return fmt.Errorf("worker: greeting %s: another program answers there", c.RemoteAddr())
	}
	return nil
}

// greet is the listening end's side: it returns the index of the stream.
func greet(c net.Conn, token string, streams int) (int, error) {
	ask, answer, err := splitToken(token)
	if err != nil {
		return 0, err
	}
	c.SetDeadline(time.Now().Add(handshakeTime))
	defer c.SetDeadline(time.Time{})
	hello := make([]byte, helloSize)
	if _, err := io.ReadFull(c, hello); err != nil {
		return 0, fmt.Errorf("worker: being greeted: %w", err)
	}
	sent := hello[len(magic) : len(magic)+tokenHalf]
	if !bytes.HasPrefix(hello, []byte(magic)) || subtle.ConstantTimeCompare(sent, ask) != 1 {
		return 0, errors.New("worker: being greeted: wrong token")
	}
	index := int(binary.BigEndian.Uint16(hello[helloSize-2:]))
	if index >= streams {
		return 0, fmt.Errorf("worker: being greeted: stream %d of %d", index, streams)
	}
	if _, err := c.Write(answer); err != nil {
		return 0, fmt.Errorf("worker: being greeted: %w", err)
	}
	return index, nil
}

// ping measures the round trip of a small message from socket to socket while
// the path is idle (C-15). The first exchange warms up and does not count.
func ping(c net.Conn) (*measure.RTT, error) {
	var msg [pingSize]byte
	var took []int64
	c.SetDeadline(time.Now().Add(handshakeTime + pingBudget))
	defer c.SetDeadline(time.Time{})
	begin := time.Now()
	for i, last := 0, false; !last; i++ {
		enough := i > minPings && time.Since(begin) > pingBudget
		last = i == maxPings || enough
		msg[0] = pingAgain
		if last {
			msg[0] = pingLast
		}
		sent := time.Now()
		if _, err := c.Write(msg[:]); err != nil {
			return nil, fmt.Errorf("worker: measuring RTT: %w", err)
		}
		if _, err := io.ReadFull(c, msg[:]); err != nil {
			return nil, fmt.Errorf("worker: measuring RTT: %w", err)
		}
		if i > 0 {
			took = append(took, int64(time.Since(sent)))
		}
	}
	slices.Sort(took)
	return &measure.RTT{Min: took[0], Median: took[len(took)/2], Max: took[len(took)-1], Samples: len(took)}, nil
}

// pong returns the peer's pings until the last.
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
