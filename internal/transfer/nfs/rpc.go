package nfs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"thru/internal/transfer"
)

// Numbers of ONC RPC (RFC 5531).
const (
	rpcVersion = 2
	msgCall    = 0
	msgReply   = 1
	authNone   = 0
	authSys    = 1
	lastPiece  = 1 << 31 // of a record (section 11)
	maxVerf    = 400
	maxRecord  = 2 << 20 // larger ones are never requested

	// ahead is how much is read beyond what is asked for: little, since the data of a READ would be copied once more.
	ahead = 4 << 10
)

// errBroken means that the connection has ended.
var errBroken = errors.New("the connection ended")

// errNoProgram means that the server does not support a protocol, or this
// version of it.
var errNoProgram = errors.New("the server has no such program or version")

// caller makes remote procedure calls over one connection, many at once.
type caller struct {
	conn net.Conn
	cred []byte        // flavor and body, as encoded in a call
	over chan struct{} // closed when no more replies come

	write sync.Mutex // held for a whole call

	mu      sync.Mutex
	xid     uint32
	waiting map[uint32]waiting
	why     error // why it has ended
}

// bulk is the data of a file, the last part of a call or of its reply.
type bulk struct {
	send []byte
	into []byte // read the reply's data to this buffer, which nobody else may use until the reply comes or the session ends
}

// waiting is a call without a reply yet. Its caller may have given up.
type waiting struct {
	answer  chan *reader
	into    []byte
	arrived func(reply reader) // called with the reply even if nobody waits for it; may be nil
}

// newCaller takes ownership of the connection: close closes it.
func newCaller(conn net.Conn, cred []byte) *caller {
	c := &caller{conn: conn, cred: cred, over: make(chan struct{}), waiting: map[uint32]waiting{}}
	go c.receive()
	return c
}

// close ends the connection, and waits for the receiver.
func (c *caller) close() error {
	err := c.conn.Close()
	<-c.over
	return err
}

// procedure identifies a remote procedure.
type procedure struct {
	program, version, number uint32
	name                     string
}

// call sends the arguments, the data as the last one. It returns the results
// of an accepted call. Where arrived is not nil, it is called with the reply,
// even one that comes after the end of ctx.
func (c *caller) call(ctx context.Context, p procedure, args []byte, data bulk, arrived func(reader)) (*reader, error) {
	r, err := c.exchange(ctx, p, args, data, arrived)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if err := accepted(r); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return r, nil
}

func (c *caller) exchange(ctx context.Context, p procedure, args []byte, data bulk, arrived func(reader)) (*reader, error) {
	answer := make(chan *reader, 1)
	c.mu.Lock()
	c.xid++
	xid := c.xid
	c.waiting[xid] = waiting{answer, data.into, arrived}
	c.mu.Unlock()
	if err := c.send(c.message(xid, p, args, data.send), data.send); err != nil {
		return nil, errors.Join(errBroken, err)
	}
	select {
	case reply := <-answer:
		return reply, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.over:
		return nil, fmt.Errorf("%w: %w", errBroken, c.why)
	}
}

// message returns a call without its data.
func (c *caller) message(xid uint32, p procedure, args, data []byte) []byte {
	m := make([]byte, 4, 256+len(args))
	m = appendUint32(m, xid, msgCall, rpcVersion, p.program, p.version, p.number)
	m = append(m, c.cred...)
	m = appendUint32(m, authNone, 0)
	m = append(m, args...)
	length := len(m) - 4
	if data != nil {
		m = appendUint32(m, uint32(len(data)))
		length += 4 + len(data) + padding(len(data))
	}
	binary.BigEndian.PutUint32(m, lastPiece|uint32(length))
	return m
}

func (c *caller) send(message, data []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.conn.Write(message)
	if err == nil && len(data) > 0 {
		_, err = c.conn.Write(data)
	}
	if n := padding(len(data)); err == nil && n > 0 {
		_, err = c.conn.Write(make([]byte, n))
	}
	return err
}

// receive passes each reply to its caller.
func (c *caller) receive() {
	in := bufio.NewReaderSize(c.conn, ahead)
	for c.why == nil {
		c.why = c.pass(in)
	}
	close(c.over)
}

// pass reads a reply and passes it to its caller.
func (c *caller) pass(in *bufio.Reader) error {
	head, err := in.Peek(8) // the length, and the number of the call
	if err != nil {
		return err
	}
	length, xid := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	c.mu.Lock()
	w, known := c.waiting[xid]
	delete(c.waiting, xid)
	c.mu.Unlock()
	r, err := readReply(in, length, w.into)
	if err != nil || !known { // otherwise a second reply to the same call, or to none
		return err
	}
	if w.arrived != nil {
		w.arrived(*r)
	}
	w.answer <- r // has room for the one reply
	return nil
}

// readReply reads a record whose length is known, the end of it to a buffer.
func readReply(in *bufio.Reader, length uint32, into []byte) (*reader, error) {
	pad := make([]byte, padding(len(into)))
	begin := int(length&^lastPiece) - len(into) - len(pad)
	if into == nil || length&lastPiece == 0 || begin < 0 || begin > maxRecord-len(into) { // an error, less data, or in pieces
		record, err := readRecord(in)
		return &reader{b: record}, err
	}
	_, _ = in.Discard(4) // the length, which is buffered
	r := &reader{b: make([]byte, begin), tail: into, pad: pad}
	for _, part := range [][]byte{r.b, r.tail, r.pad} {
		if _, err := io.ReadFull(in, part); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// readRecord reads the pieces of one record.
func readRecord(in io.Reader) ([]byte, error) { return readInto(in, nil) }

// readInto appends the pieces of one record to an empty slice, to reuse its
// memory.
func readInto(in io.Reader, record []byte) ([]byte, error) {
	for {
		var mark [4]byte
		if _, err := io.ReadFull(in, mark[:]); err != nil {
			return nil, err
		}
		v := binary.BigEndian.Uint32(mark[:])
		n := int(v &^ lastPiece)
		if n == 0 && v&lastPiece == 0 { // endless empty pieces would not count as silence
			return nil, errors.New("a reply with an empty fragment")
		}
		if n > maxRecord-len(record) {
			return nil, fmt.Errorf("a reply of more than %d bytes", maxRecord)
		}
		begin := len(record)
		record = slices.Grow(record, n)[:begin+n]
		if _, err := io.ReadFull(in, record[begin:]); err != nil {
			return nil, err
		}
		if v&lastPiece != 0 {
			return record, nil
		}
	}
}

// accepted reads the header of a reply (RFC 5531, section 9).
func accepted(r *reader) error {
	const denied, authError = 1, 1
	r.uint32() // the call's number, used to find the call
	kind, state := r.uint32(), r.uint32()
	if r.bad || kind != msgReply {
		return errors.New("not a reply")
	}
	if state == denied {
		if r.uint32() == authError {
			return fmt.Errorf("%w: RPC authentication error %d", transfer.ErrLogin, r.uint32())
		}
		return errors.New("the server uses another version of RPC")
	}
	r.uint32()
	r.opaque(maxVerf)
	outcome := r.uint32()
	switch {
	case r.bad:
		return errors.New("a reply that is too short")
	case outcome == 1 || outcome == 2:
		return errNoProgram
	case outcome != 0:
		return fmt.Errorf("the server failed (RPC accept status %d)", outcome)
	}
	return nil
}
