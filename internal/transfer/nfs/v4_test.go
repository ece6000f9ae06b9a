package nfs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// moody is a server of version 4.1 in this process with behaviour set by a
// test; it checks the numbers of the client's slots.
type moody struct {
	refuse func(op uint32) (code uint32) // 0: normal answers
	slots  uint32                        // slots that it grants; 0: as many as requested
	block  uint32                        // bytes of a call; 0 likewise
	gives  bool                          // a delegation with each open

	mu    sync.Mutex
	next  map[uint32]uint32 // number by slot
	sizes map[string]int64
	wrong []string
	calls sync.WaitGroup
}

// serve runs it until the test ends.
func (m *moody) serve(t *testing.T) transfer.Config {
	t.Helper()
	m.next, m.sizes = map[uint32]uint32{}, map[string]int64{"file": 100_000}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		m.calls.Wait()
		for _, wrong := range m.wrong {
			t.Error(wrong)
		}
	})
	m.calls.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			m.calls.Go(func() { defer conn.Close(); m.connection(conn) })
		}
	})
	host, port, _ := net.SplitHostPort(l.Addr().String())
	return transfer.Config{Host: host, Port: port, Path: "file", Timeout: 5 * time.Second}
}

func (m *moody) connection(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		record, err := readRecord(in)
		if err != nil {
			return
		}
		reply := m.answer(&reader{b: record})
		if _, err := conn.Write(append(appendUint32(nil, lastPiece|uint32(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// answer is answers.compound with this server's special behaviour.
func (m *moody) answer(r *reader) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := appendUint32(nil, r.uint32(), msgReply, 0, authNone, 0, 0, 0, 0, 0)
	r.bytes(20)
	for range 2 {
		r.uint32()
		r.opaque(maxVerf)
	}
	r.bytes(8)
	x := &scene{answers: answers{m, true}, reader: r}
	for done := range r.uint32() {
		op := r.uint32()
		code, before := m.refuse(op), r.b
		reply = appendUint32(reply, op, code)
		at := len(reply)
		if code == 0 {
			reply, code = x.operation(reply, op)
			m.twist(op, before, reply[at:])
			if op == opOpen && m.gives {
				binary.BigEndian.PutUint32(reply[len(reply)-4:], 1)
			}
		}
		binary.BigEndian.PutUint32(reply[at-4:], code)
		binary.BigEndian.PutUint32(reply[24:], code)
		binary.BigEndian.PutUint32(reply[32:], done+1)
		if code != 0 {
			break
		}
	}
	return reply
}

// twist checks a slot's number, and changes what a session is granted.
func (m *moody) twist(op uint32, args, result []byte) {
	switch op {
	case opSequence:
		sequence, slot := binary.BigEndian.Uint32(args[16:]), binary.BigEndian.Uint32(args[20:])
		if m.next[slot]++; m.next[slot] != sequence || m.slots > 0 && slot >= m.slots {
			m.wrong = append(m.wrong, fmt.Sprintf("slot %d: number %d, want %d", slot, sequence, m.next[slot]))
		}
	case opCreateSession:
		if m.block > 0 {
			binary.BigEndian.PutUint32(result[28:], m.block)
			binary.BigEndian.PutUint32(result[32:], m.block)
		}
		if m.slots > 0 {
			binary.BigEndian.PutUint32(result[44:], m.slots)
		}
	}
}

// Size returns the size of a file.
func (m *moody) Size(name string) (int64, bool) { size, ok := m.sizes[name]; return size, ok }

// Grow creates a file.
func (m *moody) Grow(name string, size int64) { m.sizes[name] = max(size, m.sizes[name]) }

// Rename renames a file.
func (m *moody) Rename(from, to string) bool {
	m.sizes[to] = m.sizes[from]
	return m.Remove(from)
}

// Remove removes a file.
func (m *moody) Remove(name string) bool { _, ok := m.sizes[name]; delete(m.sizes, name); return ok }

// Fill leaves the memory as it is.
func (m *moody) Fill([]byte, int64) {}

// once refuses an operation the first n times.
func once(op, code uint32, n int) func(uint32) uint32 {
	return func(got uint32) uint32 {
		if got != op || n == 0 {
			return 0
		}
		n--
		return code
	}
}

// TestPatience: calls to a server that asks for time are repeated, whichever
// they are, and the slots' numbers stay right (moody checks them).
func TestPatience(t *testing.T) {
	for _, op := range []uint32{opExchangeID, opCreateSession, opReclaimComplete, opSequence, opPutRoot, opLookup, opOpen, opRead, opWrite, opCommit, opClose, opRename, opRemove} {
		m := &moody{refuse: once(op, codeDelay, 2), slots: 2}
		if op == opReclaimComplete || op == opOpen {
			m.refuse = once(op, codeGrace, 2)
		}
		s := opened(t, NewFour, m.serve(t))
		if n, err := s.Get(t.Context(), "file", io.Discard); n != 100_000 || err != nil {
			t.Errorf("operation %d: %d bytes, %v", op, n, err)
		}
		if err := s.Put(t.Context(), "up", bytes.NewReader(make([]byte, 300_000)), 300_000, false); err != nil {
			t.Errorf("operation %d: %v", op, err)
		}
		if err := s.Remove(t.Context(), "up"); err != nil {
			t.Errorf("operation %d: %v", op, err)
		}
	}
}

// TestPatienceEnds: a server that always asks for time gets as much as a
// silence.
func TestPatienceEnds(t *testing.T) {
	for code, hint := range map[uint32]string{codeDelay: "", codeGrace: "just started"} {
		m := &moody{refuse: once(opOpen, code, -1)}
		cfg := m.serve(t)
		cfg.Timeout = 400 * time.Millisecond
		_, err := opened(t, NewFour, cfg).Get(t.Context(), "file", io.Discard)
		if !hasCode(err, code) || !strings.Contains(fault.Hint(err), hint) {
			t.Errorf("%v, hint %q", err, fault.Hint(err))
		}
	}
}

// TestRefusals: a server's refusal is an error that callers know, and a
// failed upload leaves no file, or names it.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		op, code uint32
		get, put error // nil: it does no harm
	}{
		{opLookup, 13, transfer.ErrDenied, transfer.ErrReadOnly},
		{opLookup, codeWrongSec, transfer.ErrLogin, transfer.ErrLogin},
		{opOpen, 13, transfer.ErrDenied, transfer.ErrReadOnly},
		{opOpen, 70, transfer.ErrMissing, transfer.ErrMissing},
		{opRead, 10025, errForgotten, nil},
		{opWrite, 28, nil, transfer.ErrFull},
		{opWrite, 10023, nil, errForgotten},
		{opWrite, 70, nil, transfer.ErrMissing},
		{opCommit, 5, nil, status{5, true}},
		{opClose, 28, nil, transfer.ErrFull},
		{opRename, 30, nil, transfer.ErrReadOnly},
	} {
		m := &moody{refuse: once(c.op, c.code, -1)}
		s := opened(t, NewFour, m.serve(t))
		if _, err := s.Get(t.Context(), "file", io.Discard); !errors.Is(err, c.get) {
			t.Errorf("operation %d, status %d: Get: %v, want %v", c.op, c.code, err, c.get)
		}
		if err := s.Put(t.Context(), "up", bytes.NewReader(make([]byte, 10)), 10, false); !errors.Is(err, c.put) {
			t.Errorf("operation %d, status %d: Put: %v, want %v", c.op, c.code, err, c.put)
		}
		want := 1
		if c.put == nil {
			want = 2
		}
		if len(m.sizes) != want {
			t.Errorf("operation %d, status %d: the server has %v", c.op, c.code, m.sizes)
		}
	}
}

// TestForgotten: a session that is lost during a transfer ends it, and the
// incomplete file is named for another session to remove.
func TestForgotten(t *testing.T) {
	for _, code := range []uint32{10052, 10078} {
		lost := false
		m := &moody{}
		m.refuse = func(op uint32) uint32 {
			if lost = lost || op == opWrite; lost && op == opSequence {
				return code
			}
			return 0
		}
		s := opened(t, NewFour, m.serve(t))
		err := s.Put(t.Context(), "up", bytes.NewReader(make([]byte, 64<<20)), 64<<20, false)
		left := (*transfer.Left)(nil)
		if !errors.Is(err, errForgotten) || !errors.As(err, &left) || len(m.sizes) != 2 {
			t.Errorf("%v, %v", err, m.sizes)
		}
	}
}

// TestSlots: no more calls are in flight than the server has slots, none
// larger than the session allows, and slots of abandoned calls are reused.
func TestSlots(t *testing.T) {
	m := &moody{refuse: once(0, 0, 0), slots: 3, block: 2048}
	s := opened(t, NewFour, m.serve(t))
	if text := strings.Join(s.Info().Details, "\n"); !strings.Contains(text, "3 calls of 1024 bytes in flight") {
		t.Error(text)
	}
	full := errors.New("the sink is full")
	for range 10 {
		if _, err := s.Get(t.Context(), "file", failing{full}); !errors.Is(err, full) {
			t.Fatal(err)
		}
	}
	if n, err := s.Get(t.Context(), "file", io.Discard); n != 100_000 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// failing is a writer that fails.
type failing struct{ err error }

// Write fails.
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestNoDelegation: a delegation that was not requested could not be
// returned, so it is refused.
func TestNoDelegation(t *testing.T) {
	m := &moody{refuse: once(0, 0, 0), gives: true}
	if _, err := opened(t, NewFour, m.serve(t)).Get(t.Context(), "file", io.Discard); !errors.Is(err, errReply) {
		t.Error(err)
	}
}

// FuzzFour: whatever a server answers by version 4.1, the parsed values are
// within limits.
func FuzzFour(f *testing.F) {
	ops := []uint32{opSequence, opPutHandle, opRead}
	f.Add(appendUint32(nil, 0, 0, 3, opSequence, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, opPutHandle, 0, opRead, 0, 1, 4, 0x01020304))
	f.Add(appendUint32(nil, codeMinor, 0, 0))
	f.Add(appendUint32(nil, 4, 0x01020304, opGetAttr, 0, 1, attrType|attrSize, 12, 1, 0, 100))
	f.Add(appendUint32(nil, 0, 1, 7, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0x41000000, 0, 0, 0))
	f.Add(appendUint32(nil, 1, 2, 3, 4, 1, 0, 0, 1<<20, 1<<20, 4096, 16, 9, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r := (&reader{b: b}); results(r, ops) == nil && r.bad {
			t.Error("half a reply is one")
		}
		v := &v4{}
		if _, err := v.parseExchange(&reader{b: b}); err == nil && len(v.server) > maxText {
			t.Errorf("a name of %d bytes", len(v.server))
		}
		if err := v.parseSession(&reader{b: b}); err == nil && (len(v.session) != sessionLength || len(v.slots) == 0 || len(v.slots) > mostSlots || v.most.reads <= overhead || v.most.writes <= overhead) {
			t.Errorf("%d slots, %+v", len(v.slots), v.most)
		}
		if n, err := parseFound(&reader{b: b}); err == nil && (len(n.handle) == 0 || len(n.handle) > maxFourHandle) {
			t.Errorf("a handle of %d bytes", len(n.handle))
		}
		if p, err := parseProperties(&reader{b: b}); err == nil && (p.reads == 0 || p.writes == 0) {
			t.Errorf("%+v", p)
		}
		_, _ = parseOpen(&reader{b: b})
		room := make([]byte, 100)
		if n, err := parseData(&reader{b: b}, room); err == nil && (n < 0 || n > len(room)) {
			t.Errorf("%d bytes read", n)
		}
	})
}
