// Package fault adds to an error what a user needs next: a hint and the exit code of the process. Everything else about an error is ordinary wrapping:
// "package: doing what: cause".
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Exit codes of the program. Verdict means: measured, but below the requirement.
const (
	OK     = 0
	Failed = 1
	Usage  = 2
	// Inconclusive means that the hosts or the traffic generator of a measurement could not have shown the answer.
	Inconclusive = 4
	Verdict      = 3
)

// ErrInterrupted is the error of what the user ended.
var ErrInterrupted = errors.New("interrupted")

// Error is an error with a hint and an exit code.
type Error struct {
	Code int
	Hint string
	Err  error
}

// Error returns the message without the hint.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error with an exit code and a hint; format may wrap with %w.
func New(code int, hint, format string, args ...any) error {
	return &Error{Code: code, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// Failf returns an error that ends the command with Failed.
func Failf(hint, format string, args ...any) error { return New(Failed, hint, format, args...) }

// Usagef returns an error that ends the command with Usage.
func Usagef(hint, format string, args ...any) error { return New(Usage, hint, format, args...) }

// Hint returns the outermost hint in err's chain, or "".
func Hint(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// Joined joins the non-empty ones of several hints or reasons into one line.
func Joined(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

// Text returns an error with its hint, for a field that holds both.
func Text(err error) string {
	if hint := Hint(err); hint != "" {
		return err.Error() + ": " + hint
	}
	return err.Error()
}

// Code returns the exit code for err: OK for nil, Failed by default.
func Code(err error) int {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) && e.Code != OK {
		return e.Code
	}
	return Failed
}
