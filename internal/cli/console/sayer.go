package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"thru/internal/fault"
)

// Sayer tells what happens while a command serves: a line with the time for
// people, a JSON line for programs. Several goroutines may use it.
type Sayer struct {
	On   *Console
	JSON bool
	mu   sync.Mutex
	last map[string]string // what was said of a topic last
}

// Notify says that something of a kind has happened. More are fields for programs.
func (s *Sayer) Notify(kind, text string, more map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(kind, text, more)
}

// Once says it unless it was the last thing said of that topic.
func (s *Sayer) Once(topic, kind, text string, more map[string]any) {
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

// Forget has the next word on a topic said, whatever it is.
func (s *Sayer) Forget(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, topic)
}

// Warn says what goes wrong without ending anything.
func (s *Sayer) Warn(text string) { s.Notify("warning", text, nil) }

func (s *Sayer) write(kind, text string, more map[string]any) {
	now := time.Now()
	text = fault.Unsecret(text)
	if s.JSON {
		line := map[string]any{"event": kind, "at": now, "text": text}
		maps.Copy(line, more)
		json.NewEncoder(s.On.Out).Encode(line)
		return
	}
	if text = fault.Printable(text); kind == "warning" {
		fmt.Fprintf(s.On.Err, "%s warning: %s\n", now.Format("15:04:05"), text)
		return
	}
	fmt.Fprintf(s.On.Out, "%s %s\n", now.Format("15:04:05"), text)
}
