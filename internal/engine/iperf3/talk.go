package iperf3

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"thru/internal/unit"
)

// waits are the timeouts for a far end; tests shorten them.
type waits struct {
	word    time.Duration // for one state on the control connection, or one frame
	begin   time.Duration // for a server to accept the data connections
	stream  time.Duration // from one data connection to the next
	hello   time.Duration // for the answer to the first datagram, before a retry
	turn    time.Duration // for a client's test to get its turn here
	grace   time.Duration // beyond the time that a client requests
	goodbye time.Duration // for the far end to close after the last state
}

// usual returns the timeouts of iperf3 itself where it has one.
func usual() waits {
	return waits{
		word: 10 * time.Second, begin: 45 * time.Second, stream: 10 * time.Second, hello: time.Second,
		turn: 15 * time.Minute, grace: 30 * time.Second, goodbye: time.Second,
	}
}

// talk is a control connection.
type talk struct {
	conn net.Conn
	wait time.Duration // for the far end to accept a state, or to complete a frame
}

// sendStates sends states.
func (t talk) sendStates(states ...state) error {
	return t.write(unit.Mapped(states, func(s state) byte { return byte(s) }))
}

// sendError sends iperf3's error number to a client.
func (t talk) sendError(code int32) error {
	minus := serverError
	b := binary.BigEndian.AppendUint32([]byte{byte(minus)}, uint32(code))
	return t.write(binary.BigEndian.AppendUint32(b, 0))
}

func (t talk) write(b []byte) error {
	t.conn.SetWriteDeadline(time.Now().Add(t.wait))
	if _, err := t.conn.Write(b); err != nil {
		return fmt.Errorf("iperf3: writing to the control connection: %w", err)
	}
	return nil
}

// sendJSON sends a frame.
func (t talk) sendJSON(v any) error {
	t.conn.SetWriteDeadline(time.Now().Add(t.wait))
	return writeFrame(t.conn, v)
}

// hearJSON reads a frame.
func (t talk) hearJSON(most int) ([]byte, error) {
	t.conn.SetReadDeadline(time.Now().Add(t.wait))
	return readFrame(t.conn, most)
}

// hear reads one state; without a limit it waits as long as the connection lasts.
func (t talk) hear(limit time.Duration) (state, error) {
	var until time.Time
	if limit > 0 {
		until = time.Now().Add(limit)
	}
	t.conn.SetReadDeadline(until)
	var b [1]byte
	if _, err := io.ReadFull(t.conn, b[:]); err != nil {
		return 0, fmt.Errorf("iperf3: reading the control connection: %w", err)
	}
	return state(b[0]), nil
}

// hearError reads the numbers after serverError; anonymous is as for explain.
func (t talk) hearError(anonymous bool) error {
	var b [8]byte
	t.conn.SetReadDeadline(time.Now().Add(t.wait))
	n, err := io.ReadFull(t.conn, b[:])
	if n < 4 { // old versions send one number
		return fmt.Errorf("iperf3: the server ended the test without a reason: %w", err)
	}
	return explain(int32(binary.BigEndian.Uint32(b[:4])), int32(binary.BigEndian.Uint32(b[4:])), anonymous)
}

// close ends the connection so that the far end still receives all sent data: it waits for the far end to close too, in limited time.
func (t talk) close(patience time.Duration) {
	if c, ok := t.conn.(interface{ CloseWrite() error }); ok && c.CloseWrite() == nil {
		limit := time.AfterFunc(patience, func() { t.conn.Close() })
		defer limit.Stop()
		io.Copy(io.Discard, io.LimitReader(t.conn, 1<<20))
	}
	t.conn.Close()
}

// hurry interrupts pending reads and writes on a connection when ctx is done. The returned function undoes that, and returns false where ctx was done first.
func hurry(ctx context.Context, c net.Conn) func() bool {
	return context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
}

// isLate reports whether the far end took too long.
func isLate(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// isGone reports whether the far end closed the connection normally.
func isGone(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
