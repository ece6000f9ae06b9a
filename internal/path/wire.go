package path

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"thru/internal/measure"
	"thru/internal/token"
)

// The two ends communicate over one TCP connection. The dialling end presents the token (package token); the answering end proves that it holds the token.
// Then frames follow: a byte for the kind, two for the length, the payload.
//
// J  JSON: a hello first, from the answering end; then a request, and its reply
// P  a ping: a number. The highest bit marks the last one
// p  its echo: the number, and the times of arrival and departure
//
// The dialling end sends one request at a time, the answering end replies. An end that does not know a request replies so, and the probe continues without it.
const (
	version = 1

	frameJSON = 'J'
	framePing = 'P'
	framePong = 'p'

	frameHeader = 3
	pingSize    = 4
	pongSize    = pingSize + 8 + 8
)

// introduce is the dialling end's side of the token exchange.
func introduce(c net.Conn, shown string) error {
	t, err := token.Parse(shown)
	if err != nil {
		return err
	}
	if err := t.Introduce(c, token.Path, nil); err != nil {
		return fmt.Errorf("path: greeting %s: %w", c.RemoteAddr(), err)
	}
	return nil
}

// greet is the answering end's side of the token exchange.
func greet(c net.Conn, own string) error {
	t, err := token.Parse(own)
	if err != nil {
		return err
	}
	_, answer, err := t.Hear(c, token.Path, 0)
	if err != nil {
		return fmt.Errorf("path: reading a greeting: %w", err)
	}
	_, err = c.Write(answer)
	return err
}

// hello is the answering end's report about itself and the handshake.
type hello struct {
	Version  int            `json:"v"`
	Cookie   string         `json:"cookie"`             // first bytes of every datagram, in hexadecimal
	UDP      int            `json:"udp,omitempty"`      // its port
	NoUDP    string         `json:"no_udp,omitempty"`   // why there is none
	Headers  string         `json:"headers,omitempty"`  // why it cannot set and read IP headers; empty: it can
	Seen     string         `json:"seen"`               // address of the dialling end
	Route    *measure.Route `json:"route,omitempty"`    // towards it
	NoRoute  string         `json:"no_route,omitempty"` // why that is not known
	Claim    int            `json:"claim,omitempty"`    // MTU of that route
	Learned  int            `json:"learned,omitempty"`  // MTU that routers have reported to the kernel before; 0: none
	TCP      string         `json:"tcp,omitempty"`      // TCP's view of the MTU
	SYNSeen  *measure.SYN   `json:"syn,omitempty"`      // on arrival
	NoSYN    string         `json:"no_syn,omitempty"`   // why that is not known
	Answered *measure.SYN   `json:"synack,omitempty"`   // as sent
	Control  string         `json:"control,omitempty"`  // congestion control of this connection
}

// mostNextHops limits how many next hops of another end's route are accepted.
const mostNextHops = 64

// check refuses an impossible hello, and shortens its texts to one line.
func (h *hello) check() error {
	_, err := netip.ParseAddr(h.Seen)
	if err != nil || h.UDP < 0 || h.UDP > 65535 || h.Claim < 0 || h.Claim > 1<<20 || h.Learned < 0 || h.Learned > 1<<20 {
		return fmt.Errorf("path: the other end sent invalid values: address %q, UDP port %d, MTU %d, %d learned", h.Seen, h.UDP, h.Claim, h.Learned)
	}
	for _, s := range []*measure.SYN{h.SYNSeen, h.Answered} {
		if s != nil && (s.MSS != nil && (*s.MSS < 0 || *s.MSS > 65535) || s.WindowScale != nil && (*s.WindowScale < 0 || *s.WindowScale > 255)) {
			return errors.New("path: the other end sent an invalid MSS or window scale")
		}
	}
	words := []*string{&h.NoUDP, &h.Headers, &h.NoRoute, &h.TCP, &h.NoSYN, &h.Control}
	if r := h.Route; r != nil {
		words = append(words, &r.Interface, &r.Gateway, &r.Source)
		r.MTU = max(r.MTU, 0)
		r.NextHops = r.NextHops[:min(len(r.NextHops), mostNextHops)]
		for i := range r.NextHops {
			words = append(words, &r.NextHops[i].Interface, &r.NextHops[i].Gateway)
		}
		words = append(words, &r.Hash)
	}
	for _, w := range words {
		*w = line(*w)
	}
	return nil
}

// line turns a peer's text into one short line.
func line(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// request is one request of the dialling end.
type request struct {
	Volley *volley `json:"volley,omitempty"`
}

// reply answers a request.
type reply struct {
	Unknown bool    `json:"unknown,omitempty"` // this end does not know the request
	Report  *report `json:"report,omitempty"`
}

// volley is one exchange of datagrams in both directions: the dialling end has sent its own just before.
type volley struct {
	Number   uint16 `json:"n"`
	Sent     int    `json:"sent"`           // datagrams that the dialling end has sent
	Send     []shot `json:"send,omitempty"` // datagrams for the answering end to send
	GapUs    int    `json:"gap_us"`         // least time between two of them
	SettleUs int64  `json:"settle_us"`      // how long to wait for missing datagrams
}

// shot is a number of equal datagrams.
type shot struct {
	Size   int `json:"size,omitempty"` // of the IP packet in bytes; 0: the smallest possible
	TOS    int `json:"tos,omitempty"`  // DSCP and ECN
	Copies int `json:"copies"`
}

// report is the result of a volley at the answering end.
type report struct {
	Got     []arrival `json:"got,omitempty"`
	Sent    int       `json:"sent"`              // datagrams that it sent
	Refused []int     `json:"refused,omitempty"` // shots that are too large for its interface
	Error   string    `json:"error,omitempty"`   // for a datagram that its kernel refused for another reason
	Waited  int64     `json:"waited_us"`         // how long it has waited for missing datagrams
	NoPeer  bool      `json:"no_peer,omitempty"` // no datagram has arrived that it could answer
	routers
}

// routers is what routers have reported to a sender.
type routers struct {
	TooBig bool       `json:"told,omitempty"`     // that a datagram was too big
	Router int        `json:"router,omitempty"`   // the smallest MTU
	At     netip.Addr `json:"router_at,omitzero"` // address of the router that reported it
}

// add adds further reports.
func (s *routers) add(o routers) {
	s.TooBig = s.TooBig || o.TooBig
	if o.Router > 0 && o.Router <= maxPacket && (s.Router == 0 || o.Router < s.Router) {
		s.Router, s.At = o.Router, o.At
	}
}

// arrival is a received datagram.
type arrival struct {
	Shot int `json:"s"`           // its shot
	TOS  int `json:"o"`           // -1: not known
	TTL  int `json:"t"`           // -1: not known
	Frag int `json:"f,omitempty"` // size of its largest fragment, where it was fragmented
}

// Limits of a peer's requests and reports.
const (
	maxShots    = 256   // datagrams of a volley
	maxVolleys  = 64    // of a probe
	maxGapUs    = 5_000 // between two datagrams
	maxSettleUs = 2_000_000
	maxPacket   = 65_575 // IPv6 header and its largest payload
)

// check refuses a volley that no honest peer requests.
func (v volley) check() error {
	total := 0
	for _, s := range v.Send {
		total += s.Copies
		if s.Copies < 1 || s.Copies > maxShots || s.Size < 0 || s.Size > maxPacket || s.TOS < 0 || s.TOS > 255 {
			return fmt.Errorf("path: the other end requested an invalid volley: %d datagrams of %d bytes with TOS %d", s.Copies, s.Size, s.TOS)
		}
	}
	if total > maxShots || v.GapUs < 0 || v.GapUs > maxGapUs || v.SettleUs < 0 || v.SettleUs > maxSettleUs || v.Sent < 0 || v.Sent > maxShots {
		return fmt.Errorf("path: the other end requested an invalid volley: %d datagrams against %d, %d us apart, %d us to wait", total, v.Sent, v.GapUs, v.SettleUs)
	}
	return nil
}

// check refuses a report that does not match the shots.
func (r *report) check(shots []shot, sent []shot) error {
	r.Error = line(r.Error)
	most := 0
	for _, s := range sent {
		most += s.Copies
	}
	if r.Sent < 0 || r.Sent > most || r.Waited < 0 || r.Waited > maxSettleUs*10 || r.Router < 0 || r.Router > maxPacket {
		return fmt.Errorf("path: the other end reports invalid values: %d datagrams of %d, %d us of waiting, an MTU of %d", r.Sent, most, r.Waited, r.Router)
	}
	for _, i := range r.Refused {
		if i < 0 || i >= len(sent) {
			return fmt.Errorf("path: the other end reports an invalid shot: %d of %d", i, len(sent))
		}
	}
	for _, a := range r.Got {
		if a.Shot < 0 || a.Shot >= len(shots) || a.TOS < -1 || a.TOS > 255 || a.TTL < -1 || a.TTL > 255 || a.Frag < 0 {
			return fmt.Errorf("path: the other end reports an invalid arrival: %+v of %d shots", a, len(shots))
		}
	}
	return nil
}

// writeFrame sends one frame; the payload is below 64 KB.
func writeFrame(w io.Writer, kind byte, payload []byte) error {
	if len(payload) > 1<<16-1 {
		return fmt.Errorf("path: sending a message: %d bytes are too many", len(payload))
	}
	b := append(make([]byte, 0, frameHeader+len(payload)), kind)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(payload))), payload...)
	for len(b) > writeMost {
		if _, err := w.Write(b[:writeMost]); err != nil {
			return err
		}
		b = b[writeMost:]
		time.Sleep(writeGap) // else the kernel may make one segment of two writes (tcp_autocorking)
	}
	_, err := w.Write(b)
	return err
}

// The connection's MSS is the default, because its handshake is examined. So that it works even on a path that drops large packets, no segment is larger than
// the minimum MTU of IPv6.
const (
	writeMost = 1280 - 40 - 20 - timestampsSize
	writeGap  = time.Millisecond
)

// writeJSON sends one message.
func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("path: sending a message: %w", err)
	}
	return writeFrame(w, frameJSON, b)
}

// readFrame receives one frame.
func readFrame(r *bufio.Reader) (kind byte, payload []byte, err error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, binary.BigEndian.Uint16(head[1:]))
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("path: reading a message: it is incomplete: %w", err)
	}
	return head[0], payload, nil
}

// readJSON receives one message.
func readJSON(r *bufio.Reader, v any) error {
	kind, payload, err := readFrame(r)
	if err != nil {
		return err
	}
	if kind != frameJSON {
		return fmt.Errorf("path: a message of kind %q instead of JSON", kind)
	}
	return decode(payload, v)
}

// decode reads the JSON of a message; unknown keys belong to a later version.
func decode(payload []byte, v any) error {
	if err := json.Unmarshal(payload, v); err != nil {
		return fmt.Errorf("path: reading a message: %w", err)
	}
	return nil
}
