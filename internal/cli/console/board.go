package console

import (
	"fmt"
	"io"
	"strings"

	"thru/internal/control"
)

// Board shows on a terminal what a command is doing: lines that stay, and below them a few lines that it
// redraws. Without a terminal it prints only which end point the command waits for. It implements
// control.Observer for the events that all commands show.
type Board struct {
	W       io.Writer // nil: not a terminal
	Width   int
	print   func(text string) // prints a line to stderr, also without a terminal; nil: nothing
	pending int               // lines at the bottom that are redrawn
}

// Board returns the board of stderr; a silent one shows nothing.
func (c *Console) Board(silent bool) *Board {
	if silent {
		return &Board{}
	}
	b := &Board{print: c.Line}
	if width, ok := terminalSize(c.Err); ok {
		b.W, b.Width = c.Err, width
	}
	return b
}

// Progress returns the board of stderr as an interface.
func (c *Console) Progress() interface {
	Checking(what string)
	Clear()
} {
	return c.Board(false)
}

// Printf prints on the terminal only.
func (b *Board) Printf(format string, args ...any) {
	if b.W != nil {
		fmt.Fprintf(b.W, format, args...)
	}
}

// Clear removes the redrawn lines at the bottom.
func (b *Board) Clear() {
	if b.pending > 1 {
		b.Printf("\x1b[%dA", b.pending-1)
	}
	if b.pending > 0 {
		b.Printf("\r\x1b[J")
	}
	b.pending = 0
}

// Line prints a line that stays.
func (b *Board) Line(format string, args ...any) {
	b.Clear()
	b.Printf("%s\n", folded(fmt.Sprintf(format, args...), b.Width))
}

// Now shows lines at the bottom until the next call.
func (b *Board) Now(lines ...string) {
	b.Clear()
	b.Printf("%s", strings.Join(lines, "\n"))
	b.pending = len(lines)
}

// Checking shows a line about a step before any traffic.
func (b *Board) Checking(what string) { b.Now(what + " ...") }

// Hear implements control.Observer. It prints a wait also without a terminal, because a wait may take long.
func (b *Board) Hear(e control.Event) {
	switch e := e.(type) {
	case control.Checking:
		b.Checking(e.What)
	case control.Waiting:
		b.Clear()
		if b.print != nil {
			b.print(fmt.Sprintf("%s is busy: waiting for %s", e.EndPoint, otherTests(e.Ahead)))
		}
	}
}

// otherTests words the number of tests ahead in the queue.
func otherTests(n int) string {
	if n == 1 {
		return "another test"
	}
	return fmt.Sprintf("%d other tests", n)
}
