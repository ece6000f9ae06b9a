package remote

import (
	"context"
	"fmt"
	"io"
)

// scribe is a person that writes the output down, and is never asked.
type scribe struct{ w io.Writer }

func (s scribe) Line(text string)            { fmt.Fprintln(s.w, text) }
func (s scribe) Warn(what string, err error) { fmt.Fprintln(s.w, what+":", err) }
func (scribe) Progress() progress            { return unseen{} }
func (scribe) Asks() io.Writer               { return nil }
func (scribe) Interruptible(_ context.Context, ask func() (string, error)) (string, error) {
	return ask()
}

// unseen is a progress without output.
type unseen struct{}

func (unseen) Checking(string) {}
func (unseen) Clear()          {}

// noPassword is a login without a password.
func noPassword(string, error) func() (string, error) {
	return func() (string, error) { return "", nil }
}
