package agent

import (
	"slices"
	"sync"
)

// turns decides who measures: one client at a time in the order of asking, or
// several whose tests may all run together.
type turns struct {
	mu    sync.Mutex
	queue []turn // the first ones hold the turn
	keeps string // client that has the turn until it yields, also while it is not in the queue
}

type turn struct {
	client   string
	together bool
}

// ask joins the queue once and returns how many are ahead: 0 when it is the client's turn.
func (t *turns) ask(client string, together bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.index(client)
	if i < 0 {
		t.queue = append(t.queue, turn{client, together})
		i = len(t.queue) - 1
	}
	return t.ahead(i)
}

// has reports whether it is the client's turn.
func (t *turns) has(client string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.index(client)
	return i >= 0 && t.ahead(i) == 0
}

// giveBack removes a client from the queue.
func (t *turns) giveBack(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.index(client); i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
	}
}

// keep gives a client the turn until it yields, if no other has it now.
func (t *turns) keep(client string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keeps != "" && t.keeps != client {
		return false
	}
	for i, x := range t.queue {
		if x.client != client && t.ahead(i) == 0 {
			return false
		}
	}
	t.keeps = client
	return true
}

// yield ends keep.
func (t *turns) yield(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keeps == client {
		t.keeps = ""
	}
}

// queued returns how many clients hold the turn or wait for it.
func (t *turns) queued() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue)
}

// othersQueued returns how many other clients do.
func (t *turns) othersQueued(client string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index(client) >= 0 {
		return len(t.queue) - 1
	}
	return len(t.queue)
}

func (t *turns) index(client string) int {
	return slices.IndexFunc(t.queue, func(x turn) bool { return x.client == client })
}

// ahead counts the clients before i that i cannot share the turn with: none when
// all up to i want to run together. A client that keeps the turn is before all others.
func (t *turns) ahead(i int) int {
	switch t.keeps {
	case "":
	case t.queue[i].client:
		return 0
	default:
		return i + 1
	}
	for _, x := range t.queue[:i+1] {
		if !x.together {
			return i
		}
	}
	return 0
}
