// Package iperf3 speaks iperf3 in both roles: Engine tests against a real server, and Server takes the calls of real clients, which Engine then answers.
//
// The wire formats are in wire.go, params.go, results.go and auth.go, without sockets. talk.go is the control connection; client.go and dial.go are one role,
// server.go, call.go and calledsession.go the other. The data moves in package worker, which takes over the connections.
package iperf3

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// state is a message of the control connection, one signed byte.
type state int8

// States, in the order of a test; then those that end it early.
const (
	paramExchange   state = 9  // server: send the parameters
	createStreams   state = 10 // server: open the data connections
	testStart       state = 1  // server: all are connected
	testRunning     state = 2  // server: the data may flow
	testEnd         state = 4  // client: the time or the amount is over
	exchangeResults state = 13 // server: send the results, mine follow
	displayResults  state = 14 // server: I have yours
	iperfDone       state = 16 // client: farewell

	serverTerminate state = 11
	clientTerminate state = 12
	accessDenied    state = -1
	serverError     state = -2 // two 32-bit numbers follow: iperf3's error and the system's errno
)

// String names a state as iperf3 does.
func (s state) String() string {
	names := map[state]string{
		paramExchange: "PARAM_EXCHANGE", createStreams: "CREATE_STREAMS", testStart: "TEST_START", testRunning: "TEST_RUNNING",
		testEnd: "TEST_END", exchangeResults: "EXCHANGE_RESULTS", displayResults: "DISPLAY_RESULTS", iperfDone: "IPERF_DONE",
		serverTerminate: "SERVER_TERMINATE", clientTerminate: "CLIENT_TERMINATE", accessDenied: "ACCESS_DENIED", serverError: "SERVER_ERROR",
	}
	if n, ok := names[s]; ok {
		return n
	}
	return fmt.Sprintf("state %d", int8(s))
}

// cookieSize includes the final NUL.
const cookieSize = 37

// cookie identifies a test; the client generates it and sends it first on every TCP connection of the test.
type cookie [cookieSize]byte

// newCookie returns an unguessable cookie.
func newCookie() cookie {
	const letters = "abcdefghijklmnopqrstuvwxyz234567" // 32: a byte modulo 32 is fair
	var c cookie
	rand.Read(c[:cookieSize-1])
	for i, b := range c[:cookieSize-1] {
		c[i] = letters[int(b)%len(letters)]
	}
	c[cookieSize-1] = 0
	return c
}

// check refuses the first bytes of other protocols. Old clients put a host name and the time into the cookie.
func (c cookie) check() error {
	for _, b := range c[:cookieSize-1] {
		if b < ' ' || b > '~' {
			return errors.New("iperf3: reading a cookie: not an iperf3 client")
		}
	}
	if c[cookieSize-1] != 0 {
		return errors.New("iperf3: reading a cookie: not an iperf3 client: the end of the cookie differs")
	}
	return nil
}

// Limits of a peer's JSON, in bytes and in nesting levels. Parameters have the limit of iperf3's own server; results grow with the streams, and those of a
// server with its output, of which the beginning is kept.
const (
	mostParameters = 8 << 10
	mostResults    = 4 << 20
	mostOutput     = 256 << 10
	deepest        = 32
)

// mostResultBytes returns the limit of a client's results in bytes: a client sends no output.
func mostResultBytes(streams int) int { return 64<<10 + streams<<10 }

// writeFrame sends v as JSON, after its length.
func writeFrame(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("iperf3: encoding: %w", err)
	}
	b = append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("iperf3: writing: %w", err)
	}
	return nil
}

// readFrame reads JSON of at most that many bytes, and corrects it so that Go can parse it.
func readFrame(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("iperf3: reading JSON: %w", err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > uint32(most) {
		return nil, fmt.Errorf("iperf3: reading JSON: a length of %d bytes is outside 1 to %d", n, most)
	}
	// It grows with the data: a large length alone must not take memory.
	b, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(b) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("iperf3: reading JSON: %d of %d bytes arrived: %w", len(b), n, err)
	}
	return nullNaN(b)
}

// nullNaN replaces the non-numbers (nan, -nan, inf) that old versions print with null, and refuses deeper nesting than any iperf3 writes.
func nullNaN(b []byte) ([]byte, error) {
	out := make([]byte, 0, len(b))
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\' && i+1 < len(b):
			out = append(out, c)
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > deepest {
				return nil, fmt.Errorf("iperf3: reading JSON: it is nested deeper than %d levels", deepest)
			}
		case c == '}' || c == ']':
			depth--
		default:
			if n := noNumber(b[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, b[i])
	}
	return out, nil
}

// noNumber returns the length of a non-number at the beginning of b, or 0.
func noNumber(b []byte) int {
	at := 0
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		at = 1
	}
	for _, word := range []string{"nan", "NaN", "NAN", "infinity", "Infinity", "inf", "Inf", "INF"} {
		if len(b) >= at+len(word) && string(b[at:at+len(word)]) == word {
			return at + len(word)
		}
	}
	return 0
}

// streamID returns the number that iperf3 gives its stream i: it skips 2.
func streamID(i int) int {
	if i == 0 {
		return 1
	}
	return i + 2
}

// The first datagram of each UDP stream is one 32-bit word, and so is its answer. Old versions sent numbers in the sender's byte order.
const (
	helloSize    = 4
	helloAsk     = "9876"
	helloAnswer  = "6789"
	legacyAsk    = 123456789
	legacyAnswer = 987654321
)

// answerTo returns a server's answer to a client's first datagram, in the old format to an old client. Like iperf3's server, it accepts any word.
func answerTo(b []byte) []byte {
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		if len(b) == helloSize && order.Uint32(b) == legacyAsk {
			return order.AppendUint32(nil, legacyAnswer)
		}
	}
	return []byte(helloAnswer)
}

// isAnswer reports whether a datagram is a server's answer to the first datagram.
func isAnswer(b []byte) bool {
	return string(b) == helloAnswer || len(b) == helloSize &&
		(binary.LittleEndian.Uint32(b) == legacyAnswer || binary.BigEndian.Uint32(b) == legacyAnswer)
}
