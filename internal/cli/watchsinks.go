package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/plan/planfile"
	words "thru/internal/report/watch"
	"thru/internal/watch/alert"
	"thru/internal/watch/record"
)

// leastKey is the shortest key that signs a webhook, in bytes.
const leastKey = 16

// sinkOf returns the sink that a plan names. It reads the key of a webhook.
func sinkOf(s planfile.Sink) (alert.Sink, error) {
	switch s.Kind {
	case planfile.SinkAlertmanager:
		return alert.Alertmanager{URL: s.To}, nil
	case planfile.SinkExec:
		return alert.Program{Args: s.Args}, nil
	case planfile.SinkMail:
		return alert.Mail{To: s.To}, nil
	case planfile.SinkJournal:
		return alert.Journal{}, nil
	}
	if s.Secret == "" {
		return alert.Webhook{URL: s.To}, nil
	}
	key, err := os.ReadFile(s.Secret)
	if err != nil {
		return nil, fault.Usagef("write a key into it that the receiver knows too", "secret: %w", err)
	}
	if key = bytes.TrimSpace(key); len(key) < leastKey {
		return nil, fault.Usagef("openssl rand -hex 32 makes one", "secret: %s has a key of %d bytes, less than %d", s.Secret, len(key), leastKey)
	}
	return alert.Webhook{URL: s.To, Key: key}, nil
}

// sinksOf returns the sinks that a plan names.
func sinksOf(all []planfile.Sink) (sinks []alert.Sink, err error) {
	for _, x := range all {
		sink, err := sinkOf(x)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, sink)
	}
	return sinks, nil
}

// watchState is what a watch remembers between two runs: in a folder of its own, since two at a time would take each other's samples.
type watchState struct {
	folder string
	unlock func()
	Watch  string          `json:"watch"` // its name at the agents
	State  json.RawMessage `json:"state,omitempty"`
}

// openWatch opens the state of the watch with a seed, in the folder of a state.
func openWatch(state string, seed uint64) (_ *watchState, err error) {
	s := &watchState{folder: filepath.Join(state, "watch", fmt.Sprintf("%016x", seed))}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return nil, fault.Failf("set $XDG_STATE_HOME to a folder that can be written", "keeping the state of the watch: %w", err)
	}
	if s.unlock, err = bus.LockFile(filepath.Join(s.folder, "lock")); err != nil {
		return nil, fault.Failf("end the other one first", "another thru watches them already: %w", err)
	}
	text, err := s.read("state.json")
	if err == nil && text != nil {
		if err = json.Unmarshal(text, s); err != nil {
			err = fault.Failf("remove the file: the watch begins anew", "reading the state of the watch: %s: %w", filepath.Join(s.folder, "state.json"), err)
		}
	}
	if err != nil {
		s.unlock()
		return nil, err
	}
	if s.Watch == "" {
		s.Watch = bus.NewWatch()
	}
	return s, nil
}

// read reads a file of the state; nil: there is none.
func (s *watchState) read(name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(s.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of the watch: %w", err)
	}
	return text, nil
}

// name returns a name that the runs of the watch share.
func (s *watchState) name() string { return filepath.Base(s.folder) }

// save writes the state.
func (s *watchState) save(state []byte) error {
	s.State = state
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("keeping the state of the watch: %w", err)
	}
	return bus.WritePrivate(filepath.Join(s.folder, "state.json"), text, true)
}

// alarms sends the alarms of a watch.
type alarms struct {
	*alert.Outbox
	raised map[string]alert.Message
	mu     sync.Mutex
}

// openAlarms returns the sinks of a plan.
func (s *watchState) openAlarms(sinks []planfile.Sink, v *watchView) (*alarms, error) {
	a := &alarms{Outbox: &alert.Outbox{Warn: v.warn}, raised: map[string]alert.Message{}}
	a.Save = func(waiting []byte) error {
		return bus.WritePrivate(filepath.Join(s.folder, "alarms.json"), waiting, true)
	}
	a.Done = func(s alert.Sink) { v.Line(s.Name() + " takes alarms again") }
	var err error
	if a.Sinks, err = sinksOf(sinks); err != nil {
		return nil, err
	}
	waiting, err := s.read("alarms.json")
	if err != nil {
		return nil, err
	}
	return a, a.Open(waiting)
}

// hear sends an alarm on.
func (a *alarms) hear(e record.Event, warn func(error)) {
	if e.Alarm == nil || e.Kind == record.Suspected {
		return
	}
	m := message(*e.Alarm, e.At)
	a.mu.Lock()
	a.raised[e.Alarm.ID] = m
	if m.Over() {
		delete(a.raised, e.Alarm.ID)
	}
	a.mu.Unlock()
	if err := a.Put(m); err != nil {
		warn(err)
	}
}

// message returns what is sent of an alarm.
func message(a record.Alarm, at time.Time) alert.Message {
	return alert.Message{Schema: record.Schema, At: at, Text: words.Alarm(a, at, time.Local), Alarm: a}
}

// goOn takes an alarm that the last run has sent, and that is not over.
func (a *alarms) goOn(x record.Alarm) { a.raised[x.ID] = message(x, time.Now()) }

// same reports whether an update says to a person what was said before.
func (a *alarms) same(e record.Event) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.raised[e.Alarm.ID].Text == words.Alarm(*e.Alarm, e.At, time.Local)
}

// run sends until the context ends.
func (a *alarms) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { a.Run(ctx) })
	wg.Go(func() {
		for every := time.NewTicker(alert.RepeatEvery); ; {
			a.Repeat(ctx, a.lasting()) // at the begin those of the last run: meanwhile Alertmanager may have ended them
			select {
			case <-ctx.Done():
				every.Stop()
				return
			case <-every.C:
			}
		}
	})
	wg.Wait()
}

// lasting returns the alarms that are not over.
func (a *alarms) lasting() (all []alert.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, m := range a.raised {
		m.At = now
		all = append(all, m)
	}
	return all
}
