package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Last tokens in the subject of a request, besides the verbs.
const (
	verbAlive = "alive" // renews the lease; no reply
	verbPart  = "part"  // fetches the next part of a long reply
)

// Headers of requests and replies. An error is marked as in NATS's micro services, so
// that their tools show it.
const (
	headerError    = "Nats-Service-Error"
	headerCode     = "Nats-Service-Error-Code"
	headerPatience = "Thru-Patience-Ms" // how long the client waits for the reply
	headerTransfer = "Thru-Transfer"    // id of a reply in parts
	headerSize     = "Thru-Size"        // its length in bytes
)

// Times of the control plane.
const (
	aliveEvery = 2 * time.Second  // between keepalives of a client
	leaseTime  = 10 * time.Second // silence after which a client is gone
	pingEvery  = 2 * time.Second  // between pings of NATS, both ways
	pingsOut   = 2                // unanswered pings that end a connection to a fleet's bus, which is then reopened
	writeTime  = 15 * time.Second // for one write to a peer that does not read: longer than its lease
)

// pingsForever leaves it to the lease to detect a lost peer: test traffic that fills the
// path may delay pongs for several pings. The pings still ensure that there is traffic
// to hear.
const pingsForever = 1 << 30

// Sizes of the control plane, in bytes.
const (
	partBytes    = 512 << 10 // of a message; longer replies come in parts
	payloadBytes = 1 << 20   // NATS's largest payload
	replyBytes   = 256 << 20 // of a reply, and of all that wait to be fetched
)

// subject returns the subject of a client's request. Hello has no version in it, so
// that two majors can recognize each other.
func subject(client, verb string) string {
	if verb == Hello.name {
		return "thru.hello." + client
	}
	return versioned(client) + "." + verb
}

// versioned returns the prefix of the subjects of a client's requests, except hello.
func versioned(client string) string { return fmt.Sprintf("thru.%d.%s", WireMajor, client) }

// inbox returns the prefix of the subjects of replies to a client.
func inbox(client string) string { return "_INBOX." + client }

// eventSubject returns the subject of a client's events.
func eventSubject(client string) string { return inbox(client) + ".event" }

// clientOf returns the client in the subject of a request, which the permissions of its
// connection have checked.
func clientOf(subject string) string {
	tokens := strings.Split(subject, ".")
	if len(tokens) < 3 {
		return ""
	}
	return tokens[2]
}

// partRequest asks for the part from Offset on, and acknowledges what is before it.
type partRequest struct {
	Transfer string `json:"transfer"`
	Offset   int    `json:"offset_bytes"`
}

// maxErrorText bounds message and hint of an error on the wire, in bytes.
const maxErrorText = 16 << 10

// errorBody is the body of an error reply.
type errorBody struct {
	measure.Error
	Reason Reason `json:"reason,omitempty"`
}

// encodeError returns the code and the body of an error reply.
func encodeError(err error) (code string, body []byte) {
	e := errorBody{measure.Error{Message: cut(err.Error()), Hint: cut(fault.Hint(err)), ExitCode: fault.Code(err)}, fault.ReasonOf(err)}
	body, _ = json.Marshal(e) // strings and a number always marshal
	return strconv.Itoa(e.ExitCode), body
}

// decodeError rebuilds the error of a reply.
func decodeError(body []byte) error {
	var e errorBody
	if err := decode(body, &e); err != nil || e.Message == "" {
		return fault.Failf("", "bus: the end point answered with an error that thru cannot read")
	}
	if e.ExitCode < fault.Failed || e.ExitCode > 255 {
		e.ExitCode = fault.Failed
	}
	return &fault.Error{Code: e.ExitCode, Hint: e.Hint, Err: fault.Because(e.Reason, errors.New(e.Message))}
}

// body returns an event in its wire format.
func (e Event) body() []byte {
	e.Error, e.Hint = cut(e.Error), cut(e.Hint)
	return jsonOf(e)
}

func cut(s string) string {
	if len(s) <= maxErrorText {
		return s
	}
	return strings.ToValidUTF8(s[:maxErrorText], "") + "..."
}
