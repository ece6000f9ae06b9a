package bus

import (
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// Bounds of the messages kept for a client that may not have received them.
const (
	keptReplies    = 64
	keptReplyBytes = 4 << 20
	keptEvents     = 256
)

// keptAnswers protects an agent's messages to a client of a fleet against short
// outages of either connection: a repeated request is not run again, and events
// that end sessions can be requested again. Its zero value is empty.
type keptAnswers struct {
	mu      sync.Mutex
	replies map[string]*nats.Msg // by subject; nil: not answered yet
	order   []string             // answered ones, oldest first
	bytes   int                  // of the answered ones
	events  []*nats.Msg          // the newest
	last    uint64               // number of the newest event
}

// seen reports whether a request has come before, and resends its reply if there is one.
func (k *keptAnswers) seen(reply string, resend func(*nats.Msg)) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, known := k.replies[reply]
	if !known {
		if k.replies == nil {
			k.replies = map[string]*nats.Msg{}
		}
		k.replies[reply] = nil
		return false
	}
	if old != nil {
		resend(old)
	}
	return true
}

// answered keeps a reply, and drops the oldest.
func (k *keptAnswers) answered(m *nats.Msg) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, known := k.replies[m.Subject]; !known || old != nil {
		return
	}
	k.replies[m.Subject] = m
	k.order = append(k.order, m.Subject)
	k.bytes += len(m.Data)
	for len(k.order) > keptReplies || k.bytes > keptReplyBytes {
		k.bytes -= len(k.replies[k.order[0]].Data)
		delete(k.replies, k.order[0])
		k.order = k.order[1:]
	}
}

// publish sends an event. It numbers and keeps all but progress.
func (k *keptAnswers) publish(m *nats.Msg, kind string, send func(*nats.Msg) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind != EventProgress {
		k.last++
		m.Header.Set(headerNumber, strconv.FormatUint(k.last, 10))
		if k.events = append(k.events, m); len(k.events) > keptEvents {
			k.events = k.events[1:]
		}
	}
	send(m) // fails only when the agent ends; after an outage again resends it
}

// again resends the events after a number.
func (k *keptAnswers) again(after uint64, send func(*nats.Msg) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := k.last - uint64(len(k.events)) // number of the event before the first that is kept
	for i, m := range k.events {
		if first+uint64(i)+1 > after {
			send(m)
		}
	}
}

// lastNumber returns the number of the newest event.
func (k *keptAnswers) lastNumber() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// lifeSign is the keepalive of an agent to each client every aliveEvery.
type lifeSign struct {
	Login string `json:"login"`  // as in headerLogin
	Last  uint64 `json:"events"` // number of the newest event that must not be lost
}

// againRequest requests the events after a number.
type againRequest struct {
	After uint64 `json:"after"`
}

// sign returns the keepalive to a client.
func (x *posting) sign() []byte { return jsonOf(lifeSign{x.epoch, x.kept.lastNumber()}) }

// again handles the request for events.
func (p *Post) again(x *posting, body []byte) {
	var q againRequest
	if x != nil && decode(body, &q) == nil {
		x.kept.again(q.After, p.nc.PublishMsg)
	}
}
