package console

import (
	"fmt"
	"io"
	"strings"

	"thru/internal/control"
)

// Board shows on a terminal what a command is doing: lines that stay, and below
// them a few that are drawn anew. Elsewhere it shows nothing but whom it waits for.
// It implements control.Observer for what all commands show.
type Board struct {
	W       io.Writer // nil: not a terminal
	Width   int
	print   func(text string) // a line on stderr, also where that is no terminal; nil: nothing
	pending int               // lines at the bottom that will be drawn anew
}

// Board is that of the person at stderr; a silent one shows nothing.
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

// Progress is the board of what is being done.
func (c *Console) Progress() interface {
	Checking(what string)
	Clear()
} {
	return c.Board(false)
}

// Printf prints on the terminal alone.
func (b *Board) Printf(format string, args ...any) {
	if b.W != nil {
		fmt.Fprintf(b.W, format, args...)
	}
}

// Clear removes the lines at the bottom.
func (b *Board) Clear() {
	if b.pending > 1 {
		b.Printf("\x1b[%dA", b.pending-1)
	}
	if b.pending > 0 {
		b.Printf("\r\x1b[J")
	}
	b.pending = 0
}

// Line prints one that stays.
func (b *Board) Line(format string, args ...any) {
	b.Clear()
	b.Printf(format+"\n", args...)
}

// Now keeps lines at the bottom.
func (b *Board) Now(lines ...string) {
	b.Clear()
	b.Printf("%s", strings.Join(lines, "\n"))
	b.pending = len(lines)
}

// Checking keeps a line that says what is done before any traffic.
func (b *Board) Checking(what string) { b.Now(what + " ...") }

// Hear implements control.Observer. Waiting may take long, so that it is said also
// where nobody watches.
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

// otherTests counts those that are ahead.
func otherTests(n int) string {
	if n == 1 {
		return "another test"
	}
	return fmt.Sprintf("%d other tests", n)
}
