package bus

import "sync"

// Bounds of the events that the client's user has not taken yet.
const (
	maxProgress = 1024  // more progress is dropped
	maxWaiting  = 65536 // of all kinds: more is a flood
)

// eventQueue hands events on without ever making the connection wait.
type eventQueue struct {
	out  chan Event
	wake chan struct{} // holds one token when there may be something to hand on

	mu   sync.Mutex
	list []Event
}

func newEventQueue() *eventQueue {
	return &eventQueue{out: make(chan Event, 64), wake: make(chan struct{}, 1)}
}

// add keeps an event; progress is dropped where too much waits. False means
// that even the events which must not be lost are too many.
func (q *eventQueue) add(e Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) >= maxWaiting {
		return false
	}
	if e.Kind == EventProgress && len(q.list) >= maxProgress {
		return true
	}
	q.list = append(q.list, e)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// run hands events on until done.
func (q *eventQueue) run(done <-chan struct{}) {
	for {
		select {
		case <-q.wake:
		case <-done:
			return
		}
		for _, e := range q.take() {
			select {
			case q.out <- e:
			case <-done:
				return
			}
		}
	}
}

func (q *eventQueue) take() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}
