package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"thru/internal/engine"
	"thru/internal/host"
	"thru/internal/measure"
)

// Session is the agent's side of one worker.
type Session struct {
	end     engine.End
	token   string
	proc    *process
	without []string
	out     frameWriter
	replies chan readyReply // the first frameReady
	joined  chan struct{}   // closed when a listening worker has all its streams
	updates chan engine.Update
	over    chan struct{} // closed when the reader has ended
	closing chan struct{} // closed by Close
	once    sync.Once

	stopped  chan struct{} // closed at frameStopped
	adopts   bool          // the connections come from the engine
	carrier  *os.File      // carries them to the worker; nil on Windows
	conclude func() error  // Task.Conclude
	since    int64         // argument of DataSince

	mu       sync.Mutex
	ready    engine.Ready
	evidence evidence
	failure  error     // error of Failed
	aborted  error     // error of Abort
	back     *evidence // other direction of two-way traffic
}

func newSession(e engine.End, p *process, token string, without []string) *Session {
	s := &Session{
		end: e, token: token, proc: p, without: without, out: frameWriter{w: p.in},
		replies: make(chan readyReply, 1), joined: make(chan struct{}),
		stopped: make(chan struct{}), updates: make(chan engine.Update, 64), over: make(chan struct{}), closing: make(chan struct{}),
	}
	s.evidence = newEvidence(e, e.Sends)
	if e.Spec.Duplex {
		s.back = new(newEvidence(e, !e.Sends))
	}
	go s.read()
	return s
}

// open sends the worker its task and waits for its answer.
func (s *Session) open(ctx context.Context) error {
	if err := s.out.json(frameOpen, s.command()); err != nil {
		return errors.Join(err, s.proc.death())
	}
	return s.answered(ctx)
}

// command returns the worker's task.
func (s *Session) command() openCommand {
	cmd := openCommand{
		Spec: s.end.Spec, Sends: s.end.Sends, Dials: s.end.Dials, Targets: s.end.Targets, Token: s.token,
		Addrs: s.end.Listen.Addrs, Device: s.end.Listen.Device, First: s.end.Listen.First, Last: s.end.Listen.Last, Offset: s.end.Listen.Offset,
		PeerFirst: s.end.PeerPorts[0], PeerLast: s.end.PeerPorts[1],
		RateBps: lower(s.end.MaxRate, s.end.Spec.MaxRate), Deadline: int64(connectWait), Without: s.without,
	}
	if s.end.Dials {
		cmd.Deadline = int64(replyWait)
	}
	if s.adopts {
		cmd.Deadline = int64(takeWait)
	}
	return cmd
}

// answered waits until the worker reports that it is connected, or listens.
func (s *Session) answered(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, replyWait+time.Second)
	defer cancel()
	select {
	case r := <-s.replies:
		if r.Error != nil {
			return r.Error.err()
		}
		s.mu.Lock()
		s.ready = engine.Ready{Token: s.token, Port: r.Port, Local: r.Local, Peer: r.Peer, Conns: r.Conns, RTTIdle: r.RTT, Skipped: r.Skipped}
		s.mu.Unlock()
		return nil
	case <-s.over:
		return s.proc.death()
	case <-wait.Done():
		return fmt.Errorf("worker: opening the end %s: the worker did not answer: %w", s.end.Name, context.Cause(wait))
	}
}

// lower returns the smaller of two limits; 0 means no limit.
func lower(a, b int64) int64 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// Ready implements engine.Session.
func (s *Session) Ready() engine.Ready {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// Process implements engine.Session.
func (s *Session) Process() int { return s.proc.cmd.Process.Pid }

// Updates implements engine.Session.
func (s *Session) Updates() <-chan engine.Update { return s.updates }

// Evidence implements engine.Session.
func (s *Session) Evidence() measure.Evidence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.evidence.document()
}

// Back implements engine.Session.
func (s *Session) Back() (measure.Evidence, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back == nil {
		return measure.Evidence{}, false
	}
	return s.back.document(), true
}

// Far implements engine.Session: an engine whose far end has no agent has its own Far.
func (s *Session) Far() (far, back *measure.Evidence) { return nil, nil }

// Joined implements engine.Session.
func (s *Session) Joined(ctx context.Context) error {
	if s.end.Dials || s.adopts {
		return nil
	}
	select {
	case <-s.joined:
		return nil
	case <-s.over:
		return s.reason(errors.New("worker: starting: the session has ended"))
	case <-ctx.Done():
		return fmt.Errorf("worker: starting: the data connections are missing: %w", context.Cause(ctx))
	}
}

// Start implements engine.Session. A listening end waits for its connections first.
func (s *Session) Start(ctx context.Context, ramp time.Duration, near host.PlacementFacts) error {
	if ramp < 0 || ramp > measure.MaxRamp {
		return fmt.Errorf("worker: starting: a ramp of %v is outside 0 to %v", ramp, measure.MaxRamp)
	}
	if err := s.Joined(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.evidence.e.RampNs = int64(ramp)
	if s.back != nil {
		s.back.e.RampNs = int64(ramp)
	}
	s.mu.Unlock()
	if err := s.out.json(frameStart, startCommand{RampNs: int64(ramp), Since: s.since, Near: &near}); err != nil {
		return s.reason(err)
	}
	return nil
}

// reason returns why the worker takes no more commands: its own final error, if it sent one.
func (s *Session) reason(err error) error {
	select {
	case <-s.over:
	case <-time.After(replyWait):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.failure, err)
}

// Close implements engine.Session.
func (s *Session) Close() error {
	s.once.Do(func() {
		close(s.closing)
		s.proc.end()
		s.proc.out.Close()
		s.carrier.Close()
	})
	<-s.over
	return nil
}

// read turns the worker's frames into evidence and updates until the worker ends.
func (s *Session) read() {
	defer close(s.over)
	defer close(s.updates)
	finished := false
	for !finished {
		kind, payload, err := readFrame(s.proc.out)
		if err != nil {
			s.lost(err)
			break
		}
		finished = s.handle(kind, payload)
	}
	// Nothing more is expected; the pipe must not fill while the worker ends.
	io.Copy(io.Discard, s.proc.out)
}

// lost reports a worker that ended without frameDone, unless Close ended it.
func (s *Session) lost(err error) {
	select {
	case <-s.closing:
		return
	default:
	}
	s.mu.Lock()
	aborted := s.aborted
	s.mu.Unlock()
	switch {
	case aborted != nil:
		err = aborted
	case errors.Is(err, io.EOF):
		err = s.proc.death()
	}
	s.fail(err)
}

func (s *Session) fail(err error) {
	s.mu.Lock()
	s.evidence.e.Error, s.failure = err.Error(), err
	if s.back != nil {
		s.back.e.Error = err.Error()
	}
	s.mu.Unlock()
	s.update(engine.Update{Kind: engine.Failed, Err: err})
}

// update never blocks forever: an agent that has closed the session reads no more.
func (s *Session) update(u engine.Update) {
	select {
	case s.updates <- u:
	case <-s.closing:
	}
}

// handle processes one frame; it returns true after the last.
func (s *Session) handle(kind byte, payload []byte) (last bool) {
	switch kind {
	case frameReady:
		return s.handleReady(payload)
	case frameJoined:
		var r readyReply
		if err := json.Unmarshal(payload, &r); err == nil {
			s.mu.Lock()
			s.ready.Local, s.ready.Peer, s.ready.Conns = r.Local, r.Peer, r.Conns
			s.mu.Unlock()
		}
		close(s.joined)
	case frameSample:
		sm, err := parseSample(payload)
		if err != nil {
			s.fail(err)
			return true
		}
		for _, u := range s.add(sm) {
			s.update(u)
		}
	case frameStopped:
		close(s.stopped)
	case frameDone:
		s.handleDone(payload)
		return true
	}
	return false
}

// add processes a sample; in two-way traffic the streams of the other direction are its second half.
func (s *Session) add(sm sample) []engine.Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back == nil {
		return s.evidence.add(sm)
	}
	other := sm
	half := len(sm.Streams) / 2
	sm.Streams, other.Streams = sm.Streams[:half:half], sm.Streams[half:]
	ups := s.evidence.add(sm)
	for _, u := range s.back.add(other) {
		if u.Kind == engine.Progress {
			u.Back = true
			ups = append(ups, u)
		}
	}
	return ups
}

func (s *Session) handleReady(payload []byte) (last bool) {
	var r readyReply
	if err := json.Unmarshal(payload, &r); err != nil {
		s.fail(fmt.Errorf("worker: reading the worker's reply: %w", err))
		return true
	}
	select {
	case s.replies <- r:
		s.mu.Lock()
		s.evidence.e.RTTIdle = r.RTT
		s.mu.Unlock()
	default: // a listening worker that has failed since
		if r.Error != nil {
			s.fail(r.Error.err())
			return true
		}
	}
	return false
}

func (s *Session) handleDone(payload []byte) {
	var d doneReply
	if err := json.Unmarshal(payload, &d); err != nil {
		s.fail(fmt.Errorf("worker: reading the worker's end: %w", err))
		return
	}
	s.mu.Lock()
	if s.back != nil {
		half := len(d.Streams) / 2
		other := d
		d.Streams, other.Streams = d.Streams[:half:half], d.Streams[half:]
		s.back.describe(other)
	}
	s.evidence.describe(d)
	s.mu.Unlock()
	err := d.Error.err()
	if err == nil && s.conclude != nil {
		err = s.conclude()
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.update(engine.Update{Kind: engine.Done})
}
