package bus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of the results that come in.
const (
	intakeBytes = 256 << 20 // of all on their way in
	intakeAtime = 64        // agents that deliver at a time
	intakeKeeps = 4         // results that are written at a time
	intakeTime  = 30 * time.Second
)

// intake puts together what agents deliver.
type intake struct {
	r      *Registry
	keeps  chan struct{}
	wg     sync.WaitGroup
	mu     sync.Mutex
	closed bool
	held   int
	coming map[string]*incoming // by agent: one at a time
}

// incoming is a result on its way in.
type incoming struct {
	spoolMessage
	body  []byte
	asked time.Time
	whole bool // being kept
}

func newIntake(r *Registry) *intake {
	return &intake{r: r, keeps: make(chan struct{}, intakeKeeps), coming: map[string]*incoming{}}
}

// hear takes a message to thru.spool.AGENT.any|CONTROLLER.
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
	a, whole := in.take(agent, part, time.Now())
	switch {
	case whole != nil:
		go in.keep(agent, whole)
	case a != (ackMessage{}):
		in.say(agent, part.Transfer, a)
	}
}

// parseSpool reads foreign bytes.
func parseSpool(b []byte) (spoolMessage, bool) {
	var m spoolMessage
	ok := decode(b, &m) == nil && validID(m.Transfer) && validSpoolID(m.ID) && len(m.SHA256) == 2*sha256.Size &&
		m.Size > 0 && m.Size <= spoolBytes && m.Offset >= 0 && m.Offset <= m.Size && len(m.Part) <= m.Size-m.Offset
	return m, ok
}

// take adds a part. It returns what to say to the agent, or the result when it
// is whole and has to be kept first.
func (in *intake) take(agent string, m spoolMessage, now time.Time) (ackMessage, *incoming) {
	in.mu.Lock()
	defer in.mu.Unlock()
	x := in.coming[agent]
	if x != nil && x.Transfer != m.Transfer && !x.whole { // it has begun anew
		in.drop(agent)
		x = nil
	}
	switch {
	case in.closed:
		return ackMessage{Error: "the controller ends"}, nil
	case in.r.conf.Intake == nil:
		return ackMessage{Error: "the controller keeps no results"}, nil
	case x != nil && x.whole:
		return ackMessage{}, nil // the word comes when it is kept
	case x == nil && len(m.Part) > 0:
		return ackMessage{Error: "the controller was started anew"}, nil
	case x == nil && (in.held+m.Size > intakeBytes || len(in.coming) >= intakeAtime):
		return ackMessage{Error: "the controller is busy with other results"}, nil
	case x == nil:
		x = &incoming{spoolMessage: m, body: make([]byte, 0, min(m.Size, spoolPart))}
		in.coming[agent] = x
		in.held += m.Size
	case x.Size != m.Size || x.SHA256 != m.SHA256 || x.ID != m.ID:
		in.drop(agent)
		return ackMessage{Error: "two parts are not of one result"}, nil
	case m.Offset == len(x.body):
		x.body = append(x.body, m.Part...)
	}
	x.asked = now
	if len(x.body) < x.Size {
		return ackMessage{Controller: in.r.key, Next: len(x.body)}, nil
	}
	x.whole = true
	in.wg.Add(1)
	return ackMessage{}, x
}

// keep hands a whole result on (begun by take), and says what became of it.
func (in *intake) keep(agent string, x *incoming) {
	defer in.wg.Done()
	in.keeps <- struct{}{}
	defer func() { <-in.keeps }()
	var a ackMessage
	want, err := hex.DecodeString(x.SHA256)
	sum := sha256.Sum256(x.body)
	switch {
	case err != nil || !bytes.Equal(sum[:], want):
		a.Error = "the result was damaged on its way"
	default:
		err := in.r.conf.Intake(Spooled{Agent: agent, Name: in.r.nameOf(agent), ID: x.ID, Body: x.body})
		if a.Done = err == nil; err != nil {
			a.Error = printable(err.Error(), maxSentence)
		}
	}
	in.mu.Lock()
	in.drop(agent)
	in.mu.Unlock()
	in.say(agent, x.Transfer, a)
}

func (in *intake) say(agent, transfer string, a ackMessage) {
	in.r.nc.Publish(ackSubject(agent, transfer), jsonOf(a))
}

// drop needs the lock.
func (in *intake) drop(agent string) {
	if x := in.coming[agent]; x != nil {
		in.held -= x.Size
		delete(in.coming, agent)
	}
}

// expire forgets what does not go on.
func (in *intake) expire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for agent, x := range in.coming {
		if !x.whole && time.Since(x.asked) > intakeTime {
			in.drop(agent)
		}
	}
}

// close takes no more, and waits for what is being kept.
func (in *intake) close() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.wg.Wait()
}
