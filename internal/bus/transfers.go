package bus

import (
	"errors"
	"sync"
	"time"

	"thru/internal/fault"
)

// Bounds of long replies that wait to be fetched.
const (
	transferTime = 30 * time.Second // without a request for a part
	maxTransfers = 8                // of one client
)

// transfer is a reply longer than a message, kept until its last part is fetched.
type transfer struct {
	client string
	data   []byte
	asked  time.Time
}

// transfers are the long replies of all clients, replyBytes in sum.
type transfers struct {
	mu   sync.Mutex
	all  map[string]*transfer
	held int
}

// put keeps a reply for its client and returns its id.
func (t *transfers) put(client string, data []byte) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := 0
	for _, x := range t.all {
		if x.client == client {
			own++
		}
	}
	if own >= maxTransfers || t.held+len(data) > replyBytes {
		return "", fault.Failf("ask for a shorter test, or try again", "bus: a reply of %d bytes is more than can wait here", len(data))
	}
	id := newID()
	t.all[id] = &transfer{client: client, data: data, asked: time.Now()}
	t.held += len(data)
	return id, nil
}

// part returns what follows an offset; with the last part the reply is forgotten.
func (t *transfers) part(client string, p partRequest) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.all[p.Transfer]
	if x == nil || x.client != client { // another's is as unknown as none
		return nil, errors.New("bus: fetching a reply: it is not kept any more")
	}
	if p.Offset <= 0 || p.Offset >= len(x.data) {
		return nil, errors.New("bus: fetching a reply: the offset is outside of it")
	}
	x.asked = time.Now()
	end := min(p.Offset+partBytes, len(x.data))
	if end == len(x.data) {
		t.forget(p.Transfer)
	}
	return x.data[p.Offset:end], nil
}

// drop forgets the replies of a client.
func (t *transfers) drop(client string) {
	t.dropIf(func(x *transfer) bool { return x.client == client })
}

// expire forgets replies that nobody fetches.
func (t *transfers) expire() {
	t.dropIf(func(x *transfer) bool { return time.Since(x.asked) > transferTime })
}

func (t *transfers) dropIf(unwanted func(*transfer) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, x := range t.all {
		if unwanted(x) {
			t.forget(id)
		}
	}
}

// forget needs the lock.
func (t *transfers) forget(id string) {
	t.held -= len(t.all[id].data)
	delete(t.all, id)
}
