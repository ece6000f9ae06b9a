package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"
)

// sayer tells what happens while a command serves: a line with the time for
// people, a JSON line for programs. Several goroutines may use it.
type sayer struct {
	e    *env
	json bool
	mu   sync.Mutex
	last map[string]string // what was said of a topic last
}

// tell says that something of a kind has happened. More are fields for programs.
func (s *sayer) tell(kind, text string, more map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(kind, text, more)
}

// once says it unless it was the last thing said of that topic.
func (s *sayer) once(topic, kind, text string, more map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]string{}
	}
	if s.last[topic] == text {
		return
	}
	s.last[topic] = text
	s.write(kind, text, more)
}

// forget has the next word on a topic said, whatever it is.
func (s *sayer) forget(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, topic)
}

// warn says what goes wrong without ending anything.
func (s *sayer) warn(text string) { s.tell("warning", text, nil) }

func (s *sayer) write(kind, text string, more map[string]any) {
	now := time.Now()
	text = unsecret(text)
	if s.json {
		line := map[string]any{"event": kind, "at": now, "text": text}
		maps.Copy(line, more)
		json.NewEncoder(s.e.out).Encode(line)
		return
	}
	if text = printable(text); kind == "warning" {
		fmt.Fprintf(s.e.err, "%s warning: %s\n", now.Format("15:04:05"), text)
		return
	}
	fmt.Fprintf(s.e.out, "%s %s\n", now.Format("15:04:05"), text)
}
