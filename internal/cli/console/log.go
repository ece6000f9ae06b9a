package console

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"thru/internal/fault"
)

// Level is the importance of a line of a log, as in syslog(3).
type Level int

// The levels of thru.
const (
	Error   Level = 3
	Warning Level = 4
	Info    Level = 6
)

// Log is how a command that serves prints its lines. The zero value prints all for a person.
type Log struct {
	Most    Level // the least important one that is printed; 0: Info
	JSON    bool  // errors are JSON lines too
	Journal bool  // journald reads the lines: it has the time, and takes the level from the line
}

// Logs reports whether lines of a level are printed.
func (c *Console) Logs(level Level) bool { return c.Log.Most == 0 || level <= c.Log.Most }

// Event prints what happened while a command serves: a line with the time.
func (c *Console) Event(level Level, w io.Writer, text string) {
	if c.Log.Journal {
		c.Say(level, w, text)
	} else {
		c.Say(level, w, time.Now().Format("15:04:05 ")+text)
	}
}

// Say prints a line of the log without the time.
func (c *Console) Say(level Level, w io.Writer, text string) {
	if c.Logs(level) {
		text = c.Log.mark(level) + text
		if width, ok := terminalSize(w); ok {
			text = folded(text, width)
		}
		fmt.Fprintln(w, text)
	}
}

// mark returns the prefix of a line by which journald knows its level: sd-daemon(3).
func (l Log) mark(level Level) string {
	if !l.Journal {
		return ""
	}
	return fmt.Sprintf("<%d>", level)
}

// logError prints an error as one line of the log.
func (c *Console) logError(err error) {
	if c.Log.JSON {
		json.NewEncoder(c.Err).Encode(map[string]any{
			"event": "error", "at": time.Now(), "text": fault.Unsecret(fault.Plain(err.Error())), "hint": fault.Unsecret(fault.Hint(err)),
		})
		return
	}
	fmt.Fprintln(c.Err, c.Log.mark(Error)+fault.Printable(fault.Unsecret(fault.WithHint(err))))
}
