package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/plan/planfile"
	words "thru/internal/report/watch"
	"thru/internal/unit"
	"thru/internal/watch/alert"
	"thru/internal/watch/record"
)

// leastKey is the shortest key that signs a webhook, in bytes.
const leastKey = 16

// sinksOf returns the sinks that a plan names. It reads the keys of webhooks.
func sinksOf(all []planfile.Sink) (sinks []alert.Sink, err error) {
	for _, x := range all {
		switch x.Kind {
		case planfile.SinkAlertmanager:
			sinks = append(sinks, alert.Alertmanager(x.To))
		case planfile.SinkExec:
			sinks = append(sinks, alert.Program(x.Args...))
		case planfile.SinkMail:
			sinks = append(sinks, alert.Mail(x.To))
		case planfile.SinkJournal:
			sinks = append(sinks, alert.Journal(alert.JournalSocket))
		case planfile.SinkWebhook:
			key, err := signingKey(x.Secret)
			if err != nil {
				return nil, err
			}
			sinks = append(sinks, alert.Webhook(x.To, key))
		}
	}
	return sinks, nil
}

// signingKey reads the key of a webhook; without a file there is none.
func signingKey(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Usagef("write a key into it that the receiver knows too", "secret: %w", err)
	}
	if key = bytes.TrimSpace(key); len(key) < leastKey {
		return nil, fault.Usagef("openssl rand -hex 32 makes one", "secret: %s has a key of %d bytes, less than %d", file, len(key), leastKey)
	}
	return key, nil
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

// save writes the state.
func (s *watchState) save(state []byte) error {
	s.State = state
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("keeping the state of the watch: %w", err)
	}
	return bus.WritePrivate(filepath.Join(s.folder, "state.json"), text, true)
}

// outbox returns what sends alarms to the sinks of a plan.
func (s *watchState) outbox(all []planfile.Sink, v *watchView) (*alert.Outbox, error) {
	o := &alert.Outbox{
		Warn: v.warn, Done: func(sink string) { v.Line(sink + " takes alarms again") },
		Save: func(waiting []byte) error {
			return bus.WritePrivate(filepath.Join(s.folder, "alarms.json"), waiting, true)
		},
		Lasting: func() []alert.Message {
			return unit.Mapped(v.metrics.Alarms(), func(a record.Alarm) alert.Message { return message(a, time.Now()) })
		},
	}
	sinks, err := sinksOf(all)
	if err != nil {
		return nil, err
	}
	waiting, err := s.read("alarms.json")
	if err != nil {
		return nil, err
	}
	return o, o.Open(waiting, sinks)
}

// message returns what is sent of an alarm.
func message(a record.Alarm, at time.Time) alert.Message {
	return alert.Message{Schema: record.Schema, At: at, Text: words.Alarm(a, at, time.Local), Alarm: a}
}
