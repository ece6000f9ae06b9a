package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"thru/internal/fault"
)

// ThruPassword is the environment variable of a password.
const ThruPassword = "THRU_PASSWORD"

// TakePassword removes the password from the environment and returns it: ssh, iperf3 and other child
// processes must not see it.
func TakePassword() *string {
	text, ok := os.LookupEnv(ThruPassword)
	if !ok {
		return nil
	}
	os.Unsetenv(ThruPassword)
	return &text
}

// longestPassword limits what is read of stdin, in bytes.
const longestPassword = 4096

// Passwords returns the passwords of a command. The first line of stdin or the environment gives one for all
// logins; at a terminal the user is asked for each.
type Passwords struct {
	on    *Console
	stdin bool

	mu    sync.Mutex        // clients log in concurrently
	line  *string           // of stdin, once read
	known map[string]string // typed passwords by login
}

// NewPasswords reads passwords from stdin, or else from the environment or the terminal.
func NewPasswords(c *Console, stdin bool) *Passwords {
	return &Passwords{on: c, stdin: stdin, known: map[string]string{}}
}

// Of returns a function that returns the password of one login and asks for it once. The function returns
// none if there is no password.
func (p *Passwords) Of(whose string, none error) func() (string, error) {
	var known *string
	return func() (string, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if known != nil {
			return *known, nil
		}
		text, err := p.ask(whose, none)
		if err == nil {
			known = &text
		}
		return text, err
	}
}

func (p *Passwords) ask(whose string, none error) (string, error) {
	if p.stdin {
		return p.fromStdin()
	}
	if p.on.Password != nil {
		return *p.on.Password, nil
	}
	if text, ok := p.known[whose]; ok {
		return text, nil
	}
	if f, ok := p.on.In.(*os.File); ok && IsTerminal(p.on.In) {
		fmt.Fprint(p.on.Err, fault.Printable(strings.TrimSpace("password "+whose)+": "))
		text, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(p.on.Err)
		if err != nil {
			return "", fmt.Errorf("console: reading the password: %w", err)
		}
		p.known[whose] = string(text)
		return string(text), nil
	}
	return "", fault.Failf(ThruPassword+"=..., or --password-stdin", "%w: it requires a password, and none was given", none)
}

// Interruptible calls ask until ctx is canceled, and then restores the terminal's echo.
func (c *Console) Interruptible(ctx context.Context, ask func() (string, error)) (string, error) {
	f, ok := c.In.(*os.File)
	if !ok || !IsTerminal(c.In) {
		return ask()
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return ask()
	}
	text, err := fault.Until(ctx, "the terminal", ask)
	if ctx.Err() != nil {
		term.Restore(int(f.Fd()), before)
		fmt.Fprintln(c.Err)
	}
	return text, err
}

func (p *Passwords) fromStdin() (string, error) {
	if p.line != nil {
		return *p.line, nil
	}
	text, err := bufio.NewReader(io.LimitReader(p.on.In, longestPassword+1)).ReadString('\n')
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", fmt.Errorf("console: reading the password: %w", err)
	case len(text) > longestPassword:
		return "", fault.Usagef("give only the password in the first line", "the first line of stdin is longer than %d bytes: not a password", longestPassword)
	}
	text = strings.TrimRight(text, "\r\n")
	p.line = &text
	return text, nil
}
