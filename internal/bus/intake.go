package bus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"
)

// Bounds of incoming results.
const (
	intakeBytes = 256 << 20 // of all incoming results
	intakeAtime = 64        // agents that deliver at a time
	intakeKeeps = 4         // results that are written at a time
	intakeTime  = 30 * time.Second
	intakeIdle  = 2 * time.Second // after which a delivery yields its place to another
	intakeRate  = 64              // messages of an agent per second: 16 MiB of parts
	intakeBurst = 256
)

// intake assembles the results that agents deliver.
type intake struct {
	r      *Registry
	keeps  chan struct{}
	wg     sync.WaitGroup
	mu     sync.Mutex
	closed bool
	held   int                      // bytes received
	coming map[string]*incoming     // by agent: one at a time
	rights map[string]*rate.Limiter // by agent: message rate
}

// incoming is a partly received result.
type incoming struct {
	spoolMessage
	body  []byte
	asked time.Time
	whole bool // complete, being stored
}

func newIntake(r *Registry) *intake {
	return &intake{r: r, keeps: make(chan struct{}, intakeKeeps), coming: map[string]*incoming{}, rights: map[string]*rate.Limiter{}}
}

// hear handles a message to thru.spool.AGENT.any|CONTROLLER.
func (in *intake) hear(m *nats.Msg) {
	t := tokens(m.Subject, 4)
	if t == nil || !validKey(t[2]) {
		return
	}
	agent := t[2]
	part, ok := parseSpool(m.Data)
	if !ok {
		return
	}
	if !in.due(agent, time.Now()) {
		return // else it could have each ack sent to it many times over
	}
	a, whole := in.take(agent, part, time.Now())
	switch {
	case whole != nil:
		go in.keep(agent, whole)
	case a != (ackMessage{}):
		in.acknowledge(agent, part.Transfer, a)
	}
}

// due reports whether an agent's rate allows another message now.
func (in *intake) due(agent string, now time.Time) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.rights[agent]
	if p == nil {
		if len(in.rights) >= maxHosts {
			clear(in.rights) // a few agents then exceed their rate
		}
		p = rate.NewLimiter(intakeRate, intakeBurst)
		in.rights[agent] = p
	}
	return p.AllowN(now, 1)
}

// room makes room for a delivery by dropping another: for a place the one that
// paused longest, for bytes the largest. The caller holds the lock.
func (in *intake) room(agent string, bytes int, now time.Time) bool {
	if in.coming[agent] == nil && len(in.coming) >= intakeAtime {
		idle := in.other(agent, func(a, b *incoming) bool { return a.asked.Before(b.asked) })
		if idle == "" || now.Sub(in.coming[idle].asked) < intakeIdle {
			return false
		}
		in.drop(idle)
	}
	own := bytes
	if x := in.coming[agent]; x != nil {
		own += len(x.body)
	}
	for in.held+bytes > intakeBytes {
		most := in.other(agent, func(a, b *incoming) bool { return len(a.body) > len(b.body) })
		if most == "" || len(in.coming[most].body) <= own {
			return false
		}
		in.drop(most)
	}
	return true
}

// other returns the agent whose delivery is first in that order, except but and
// those being stored; empty where there is none. The caller holds the lock.
func (in *intake) other(but string, before func(a, b *incoming) bool) string {
	first := ""
	for agent, x := range in.coming {
		if agent != but && !x.whole && (first == "" || before(x, in.coming[first])) {
			first = agent
		}
	}
	return first
}

// parseSpool parses untrusted bytes.
func parseSpool(b []byte) (spoolMessage, bool) {
	var m spoolMessage
	ok := decode(b, &m) == nil && validID(m.Transfer) && validSpoolID(m.ID) && len(m.SHA256) == 2*sha256.Size &&
		m.Size > 0 && m.Size <= spoolBytes && m.Offset >= 0 && m.Offset <= m.Size && len(m.Part) <= m.Size-m.Offset
	return m, ok
}

// take adds a part. It returns the ack to send, or the result when it is complete
// and must be stored first.
func (in *intake) take(agent string, m spoolMessage, now time.Time) (ackMessage, *incoming) {
	in.mu.Lock()
	defer in.mu.Unlock()
	x := in.coming[agent]
	if x != nil && x.Transfer != m.Transfer && !x.whole { // the agent has started again
		in.drop(agent)
		x = nil
	}
	switch {
	case in.closed:
		return ackMessage{Error: "the controller is shutting down"}, nil
	case in.r.conf.Intake == nil:
		return ackMessage{Error: "the controller stores no results"}, nil
	case x != nil && x.whole:
		return ackMessage{}, nil // the ack comes when it is stored
	case x == nil && len(m.Part) > 0:
		return ackMessage{Error: "the controller has dropped its first parts: it was restarted, or needed the memory for other results"}, nil
	case !in.room(agent, len(m.Part), now):
		in.drop(agent)
		return ackMessage{Error: "the controller is busy with other results"}, nil
	case x == nil:
		x = &incoming{spoolMessage: m}
		in.coming[agent] = x
	case x.Size != m.Size || x.SHA256 != m.SHA256 || x.ID != m.ID:
		in.drop(agent)
		return ackMessage{Error: "the parts belong to different results"}, nil
	case m.Offset == len(x.body):
		x.body = append(x.body, m.Part...)
		in.held += len(m.Part)
	}
	x.asked = now
	if len(x.body) < x.Size {
		return ackMessage{Controller: in.r.key, Next: len(x.body)}, nil
	}
	x.whole = true
	in.wg.Add(1)
	return ackMessage{}, x
}

// keep stores a complete result (begun by take), and sends the ack.
func (in *intake) keep(agent string, x *incoming) {
	defer in.wg.Done()
	in.keeps <- struct{}{}
	defer func() { <-in.keeps }()
	var a ackMessage
	want, err := hex.DecodeString(x.SHA256)
	sum := sha256.Sum256(x.body)
	switch {
	case err != nil || !bytes.Equal(sum[:], want):
		a.Error = "the result was damaged in transit"
	default:
		err := in.r.conf.Intake(Spooled{Agent: agent, Name: in.r.nameOf(agent), ID: x.ID, Body: x.body})
		if a.Done = err == nil; err != nil {
			a.Error = printable(err.Error(), maxSentence)
		}
	}
	in.mu.Lock()
	in.drop(agent)
	in.mu.Unlock()
	in.acknowledge(agent, x.Transfer, a)
}

func (in *intake) acknowledge(agent, transfer string, a ackMessage) {
	in.r.nc.Publish(ackSubject(agent, transfer), jsonOf(a))
}

// drop drops an agent's delivery. The caller holds the lock.
func (in *intake) drop(agent string) {
	if x := in.coming[agent]; x != nil {
		in.held -= len(x.body)
		delete(in.coming, agent)
	}
}

// expire drops deliveries that have stopped.
func (in *intake) expire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for agent, x := range in.coming {
		if !x.whole && time.Since(x.asked) > intakeTime {
			in.drop(agent)
		}
	}
}

// close accepts no more parts, and waits for the results being stored.
func (in *intake) close() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.wg.Wait()
}
