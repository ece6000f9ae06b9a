package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"thru/internal/fault"
)

// Sayer reports events while a command serves: a line with the time for people, a JSON line for programs.
// Several goroutines may use it.
type Sayer struct {
	On   *Console
	JSON bool
	mu   sync.Mutex
	last map[string]string // last text of each topic
}

// Notify reports an event of a kind. more holds fields for programs.
func (s *Sayer) Notify(kind, text string, more map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(kind, text, more)
}

// Once reports an event unless the last text of that topic was the same.
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

// Forget makes the next Once of a topic report in any case.
func (s *Sayer) Forget(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, topic)
}

// Warn reports a problem that ends nothing.
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
