package console

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"thru/internal/fault"
)

// EventLog reports events while a command serves: a line with the time for people, a JSON line for programs.
// Several goroutines may use it.
type EventLog struct {
	On   *Console
	JSON bool
	mu   sync.Mutex
	last map[string]string // last text of each topic
}

// Notify reports an event of a kind. more holds fields for programs.
func (l *EventLog) Notify(kind, text string, more map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(kind, text, more)
}

// Once reports an event unless the last text of that topic was the same.
func (l *EventLog) Once(topic, kind, text string, more map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[string]string{}
	}
	if l.last[topic] == text {
		return
	}
	l.last[topic] = text
	l.write(kind, text, more)
}

// Forget makes the next Once of a topic report in any case.
func (l *EventLog) Forget(topic string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, topic)
}

// Warn reports a problem that ends nothing.
func (l *EventLog) Warn(text string) { l.Notify("warning", text, nil) }

func (l *EventLog) write(kind, text string, more map[string]any) {
	level := levelOf(kind)
	text = fault.Unsecret(text)
	if l.JSON {
		if !l.On.Logs(level) {
			return
		}
		line := map[string]any{"event": kind, "at": time.Now(), "text": text}
		maps.Copy(line, more)
		json.NewEncoder(l.On.Out).Encode(line)
		return
	}
	if text = fault.Printable(text); kind == "warning" {
		l.On.Event(level, l.On.Err, "warning: "+text)
		return
	}
	l.On.Event(level, l.On.Out, text)
}

// levelOf returns the level of a kind of event.
func levelOf(kind string) Level {
	switch kind {
	case "warning", "refused", "disconnected", "problem":
		return Warning
	}
	return Info
}
