package cli

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

// thruPassword holds a password, where stdin does not.
const thruPassword = "THRU_PASSWORD"

// takePassword takes it out of the environment: ssh, iperf3 and all else that is
// started has no use for it.
func takePassword() *string {
	text, ok := os.LookupEnv(thruPassword)
	if !ok {
		return nil
	}
	os.Unsetenv(thruPassword)
	return &text
}

// longestPassword bounds what is read of stdin, in bytes.
const longestPassword = 4096

// passwords are where a command has its passwords from: the first line of stdin
// or the environment, which all logins share, or a person, who is asked for each.
type passwords struct {
	env   *env
	stdin bool

	mu    sync.Mutex        // clients log in at once
	line  *string           // of stdin, once it is read
	known map[string]string // that a person has typed, by whose they are
}

func newPasswords(e *env, stdin bool) *passwords {
	return &passwords{env: e, stdin: stdin, known: map[string]string{}}
}

// of returns what gives the password of one login, and asks for it once. none is
// what the error is where there is no password.
func (p *passwords) of(whose string, none error) func() (string, error) {
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

func (p *passwords) ask(whose string, none error) (string, error) {
	if p.stdin {
		return p.fromStdin()
	}
	if p.env.password != nil {
		return *p.env.password, nil
	}
	if text, ok := p.known[whose]; ok {
		return text, nil
	}
	if f, ok := p.env.in.(*os.File); ok && isTerminal(p.env.in) {
		fmt.Fprint(p.env.err, printable(strings.TrimSpace("password "+whose)+": "))
		text, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(p.env.err)
		if err != nil {
			return "", fmt.Errorf("cli: reading the password: %w", err)
		}
		p.known[whose] = string(text)
		return string(text), nil
	}
	return "", fault.Failf(thruPassword+"=..., or --password-stdin", "%w: it wants a password, and none was given", none)
}

// interruptible asks until an interrupt, after which the terminal shows again what is typed.
func (e *env) interruptible(ctx context.Context, ask func() (string, error)) (string, error) {
	f, ok := e.in.(*os.File)
	if !ok || !isTerminal(e.in) {
		return ask()
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return ask()
	}
	text, err := until(ctx, "the terminal", ask)
	if ctx.Err() != nil {
		term.Restore(int(f.Fd()), before)
		fmt.Fprintln(e.err)
	}
	return text, err
}

func (p *passwords) fromStdin() (string, error) {
	if p.line != nil {
		return *p.line, nil
	}
	text, err := bufio.NewReader(io.LimitReader(p.env.in, longestPassword+1)).ReadString('\n')
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", fmt.Errorf("cli: reading the password: %w", err)
	case len(text) > longestPassword:
		return "", fault.Usagef("the password alone stands in the first line", "what stdin gives is longer than %d bytes: no password", longestPassword)
	}
	text = strings.TrimRight(text, "\r\n")
	p.line = &text
	return text, nil
}
