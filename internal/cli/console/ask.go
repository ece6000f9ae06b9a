package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"thru/internal/fault"
)

// Confirm asks a yes/no question at the terminal. Any answer but yes is the error otherwise, and so is a missing
// terminal.
func (c *Console) Confirm(ctx context.Context, question, otherwise string) error {
	if !IsTerminal(c.In) {
		return fault.Usagef("--yes does it without asking", "there is no terminal to ask at: %s", question)
	}
	fmt.Fprint(c.Err, fault.Printable(question)+" [y/N] ")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan string)
	go LinesOf(ctx, c.In, lines)
	select {
	case line := <-lines:
		if IsYes(line) {
			return nil
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return fault.Failf("", "%s", otherwise)
}

// IsYes reports whether an answer is y or yes.
func IsYes(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// LinesOf sends each line of in to the channel until in ends or ctx is canceled.
func LinesOf(ctx context.Context, in io.Reader, to chan<- string) {
	defer close(to)
	for s := bufio.NewScanner(in); s.Scan(); {
		select {
		case to <- s.Text():
		case <-ctx.Done():
			return
		}
	}
}
