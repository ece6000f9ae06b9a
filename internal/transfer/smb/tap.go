package smb

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
)

// Lengths of the examined parts ([MS-SMB2] 2.1, 2.2.1.2, 2.2.4).
const (
	lengthField = 4  // of a frame: one byte 0, three of length
	header      = 64 // of a message
	body        = 40 // of a negotiate response, up to its sizes
)

// tap examines received messages, since the library does not expose what was
// negotiated. It reads the first bytes of each message, until it is stopped.
type tap struct {
	net.Conn

	mu        sync.Mutex
	stopped   bool
	head      []byte // of the present message
	skip      int    // remaining bytes of it
	agreed    negotiation
	spoken    bool
	encrypted bool // the last message was
}

// Read passes on the bytes and examines them.
func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.see(b[:n])
	}
	return n, err
}

// see parses the frames. The library checks whether they are valid.
func (t *tap) see(b []byte) {
	for len(b) > 0 {
		if t.skip > 0 {
			n := min(t.skip, len(b))
			t.skip, b = t.skip-n, b[n:]
			continue
		}
		want := lengthField
		if len(t.head) >= lengthField {
			want += min(frameLength(t.head), header+body)
		}
		n := min(want-len(t.head), len(b))
		t.head, b = append(t.head, b[:n]...), b[n:]
		if len(t.head) == want && len(t.head) > lengthField || len(t.head) == lengthField && frameLength(t.head) == 0 {
			t.skip = frameLength(t.head) - (len(t.head) - lengthField)
			t.message(t.head[lengthField:])
			t.head = t.head[:0]
		}
	}
}

func frameLength(b []byte) int { return int(binary.BigEndian.Uint32(b)) & 0xffffff }

// message parses the beginning of a message.
func (t *tap) message(b []byte) {
	t.encrypted = len(b) >= 4 && string(b[:4]) == "\xfdSMB"
	if n, ok := parseNegotiation(b); ok && !t.spoken {
		t.agreed, t.spoken = n, true
	}
}

// negotiated returns the server's first answer, if there is one.
func (t *tap) negotiated() (negotiation, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agreed, t.spoken
}

// stop ends the examination, and returns whether the last message was
// encrypted.
func (t *tap) stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	return t.encrypted
}

// negotiation is a server's answer to the client's capabilities ([MS-SMB2]
// 2.2.4).
type negotiation struct {
	dialect      uint16
	signs        bool // requires signatures
	large        bool // accepts requests of more than 64 KiB
	reads, write uint32
}

// parseNegotiation parses the beginning of a message; false for any other
// message.
func parseNegotiation(b []byte) (negotiation, bool) {
	const command, structure = 12, 65
	if len(b) < header+body || string(b[:4]) != "\xfeSMB" {
		return negotiation{}, false
	}
	little := binary.LittleEndian
	if little.Uint16(b[command:]) != 0 || little.Uint16(b[header:]) != structure {
		return negotiation{}, false
	}
	b = b[header:]
	return negotiation{
		signs:   b[2]&2 != 0,
		dialect: little.Uint16(b[4:]),
		large:   b[24]&4 != 0,
		reads:   little.Uint32(b[32:]),
		write:   little.Uint32(b[36:]),
	}, true
}

// block returns how much one request moves; asked is 0 where no size was
// requested.
func (n negotiation) block(asked int) int {
	most := int64(min(n.reads, n.write, largest))
	if !n.large {
		most = min(most, 64<<10)
	}
	if asked > 0 {
		most = min(most, int64(asked))
	}
	return int(max(most, 1))
}

// describe returns it in words.
func (n negotiation) describe(encrypted bool) []string {
	dialect := fmt.Sprintf("SMB %d.%d", n.dialect>>8, n.dialect>>4&15)
	if n.dialect&15 != 0 {
		dialect += fmt.Sprintf(".%d", n.dialect&15)
	}
	protection := "neither signed nor encrypted"
	switch {
	case encrypted:
		protection = "encrypted (AES-128)"
	case n.signs:
		protection = "signed (the server requires it), not encrypted"
	}
	return []string{dialect, protection, fmt.Sprintf("the server accepts reads of %d bytes and writes of %d", n.reads, n.write)}
}
