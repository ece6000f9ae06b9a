package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// dispatcher runs requests from either transport: the server of a pair, or the bus
// of a fleet.
type dispatcher struct {
	verbs  map[string]Answerer
	long   longReplies
	send   func(*nats.Msg) error
	onGone func(client string) // called when a client is gone; may be nil
}

// newDispatcher returns a dispatcher of these verbs, and of the one for parts of long replies.
func newDispatcher(answerers []Answerer, gone func(client string), send func(*nats.Msg) error) *dispatcher {
	d := &dispatcher{verbs: map[string]Answerer{}, long: longReplies{all: map[string]*longReply{}}, send: send, onGone: gone}
	for _, a := range append(answerers, Answerer{verbPart, d.part}) {
		d.verbs[a.verb] = a
	}
	return d
}

// gone drops a client's long replies, and reports that it is gone.
func (d *dispatcher) gone(client string) {
	d.long.drop(client)
	defer func() { _ = recover() }() // a handler's bug must not end the agent
	if d.onGone != nil {
		d.onGone(client)
	}
}

// request is a received request.
type request struct {
	verb, reply string // reply is the reply subject
	patience    string // header, in milliseconds
	body        []byte
	may         []string // header of the controller; nil: it does not limit the privileges
}

// begin answers a request in its own goroutine, within the limits of its login.
func (d *dispatcher) begin(l *login, q request) {
	a, known := d.verbs[q.verb]
	if !known {
		d.refuse(q.reply, unknownVerb(q.verb))
		return
	}
	if err := l.begin(); err != nil {
		d.refuse(q.reply, fault.Failf("", "bus: %s: %w", q.verb, err))
		return
	}
	go func() {
		defer l.done()
		ctx, cancel := context.WithTimeout(context.WithValue(l.ctx, loginKey{}, l), patience(q.patience))
		if len(q.may) > 0 {
			ctx = context.WithValue(ctx, mayKey{}, strings.Split(q.may[0], ","))
		}
		defer cancel()
		body, err := guard(ctx, q.verb, l.client, q.body, a)
		d.reply(l.client, q, body, err)
	}()
}

// unknownVerb is the error of an agent that is too old for a request.
func unknownVerb(verb string) error {
	return fault.Failf("upgrade thru at the end point", "bus: %s: this end point does not know the request", verb)
}

// part answers a request for the next part of a long reply.
func (d *dispatcher) part(_ context.Context, client string, body []byte) ([]byte, error) {
	var p partRequest
	if err := decode(body, &p); err != nil {
		return nil, fmt.Errorf("bus: reading the request: %w", err)
	}
	return d.long.part(client, p)
}

// patience parses how long the client waits for a reply.
func patience(header string) time.Duration {
	ms, err := strconv.ParseInt(header, 10, 32)
	if err != nil || ms <= 0 {
		return maxPatience
	}
	return min(time.Duration(ms)*time.Millisecond, maxPatience)
}

// guard turns a panic of the handler into an error of this one request.
func guard(ctx context.Context, verb, client string, body []byte, a Answerer) (reply []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Failf("this is a bug of thru at the end point: please report it", "agent: %s: internal error: %v", verb, p)
		}
	}()
	return a.run(ctx, client, body)
}

// reply sends a reply: whole, or its first part and the id of the rest.
func (d *dispatcher) reply(client string, q request, body []byte, err error) {
	if err != nil {
		d.refuse(q.reply, err)
		return
	}
	m := nats.NewMsg(q.reply)
	m.Data = body
	if len(body) > partBytes && q.verb != verbPart {
		id, err := d.long.put(client, body)
		if err != nil {
			d.refuse(q.reply, err)
			return
		}
		m.Header.Set(headerTransfer, id)
		m.Header.Set(headerSize, strconv.Itoa(len(body)))
		m.Data = body[:partBytes]
	}
	d.send(m) // fails only when the agent ends, which the client notices
}

// refuse sends an error with its hint and exit code.
func (d *dispatcher) refuse(to string, err error) {
	m := nats.NewMsg(to)
	code, body := encodeError(err)
	m.Header.Set(headerError, "failed")
	m.Header.Set(headerCode, code)
	m.Data = body
	d.send(m)
}

// Bounds of long replies that wait to be fetched.
const (
	longReplyTime  = 30 * time.Second // without a request for a part
	maxLongReplies = 8                // of one client
)

// longReply is a reply longer than a message, kept until its last part is fetched.
type longReply struct {
	client string
	data   []byte
	asked  time.Time
}

// longReplies holds the long replies of all clients, at most replyBytes in total.
type longReplies struct {
	mu   sync.Mutex
	all  map[string]*longReply
	held int
}

// put keeps a reply for its client and returns its id.
func (l *longReplies) put(client string, data []byte) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := 0
	for _, x := range l.all {
		if x.client == client {
			own++
		}
	}
	if own >= maxLongReplies || l.held+len(data) > replyBytes {
		return "", fault.Failf("ask for a shorter test, or try again", "bus: the reply of %d bytes exceeds the buffer for replies", len(data))
	}
	id := newID()
	l.all[id] = &longReply{client: client, data: data, asked: time.Now()}
	l.held += len(data)
	return id, nil
}

// part returns the next part from an offset; after the last part the reply is dropped.
func (l *longReplies) part(client string, p partRequest) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.all[p.Transfer]
	if x == nil || x.client != client { // another client's reply counts as unknown
		return nil, errors.New("bus: fetching a reply: the end point has already dropped it")
	}
	if p.Offset <= 0 || p.Offset >= len(x.data) {
		return nil, errors.New("bus: fetching a reply: the offset is outside of it")
	}
	x.asked = time.Now()
	end := min(p.Offset+partBytes, len(x.data))
	if end == len(x.data) {
		l.forget(p.Transfer)
	}
	return x.data[p.Offset:end], nil
}

// drop drops the replies of a client.
func (l *longReplies) drop(client string) {
	l.dropIf(func(x *longReply) bool { return x.client == client })
}

// expire drops replies that were not fetched in time.
func (l *longReplies) expire() {
	l.dropIf(func(x *longReply) bool { return time.Since(x.asked) > longReplyTime })
}

func (l *longReplies) dropIf(unwanted func(*longReply) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, x := range l.all {
		if unwanted(x) {
			l.forget(id)
		}
	}
}

// forget drops a reply. The caller holds the lock.
func (l *longReplies) forget(id string) {
	l.held -= len(l.all[id].data)
	delete(l.all, id)
}
