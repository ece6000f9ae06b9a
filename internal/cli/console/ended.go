package console

import (
	"context"
	"errors"
	"fmt"
	"os"

	"thru/internal/fault"
	"thru/internal/measure"
)

// printed is an error that a printed result already contains.
type printed struct{ error }

func (p printed) Unwrap() error { return p.error }

// Printed marks an error that a printed result already contains.
func Printed(err error) error { return printed{err} }

// WasPrinted reports whether an error needs no further message.
func WasPrinted(err error) bool {
	_, is := errors.AsType[printed](err)
	return is
}

// Signalled is the cause of the cancellation when a signal ended a command.
type Signalled struct{ Signal os.Signal }

// Error implements error.
func (Signalled) Error() string { return context.Canceled.Error() }

// Unwrap returns context.Canceled.
func (Signalled) Unwrap() error { return context.Canceled }

// VerdictError returns the error of a command whose printed figures did not pass.
func VerdictError(v *measure.Verdict) error {
	code := fault.Verdict
	if v.Inconclusive {
		code = fault.Inconclusive
	}
	return Printed(fault.New(code, "", "%s", v.Reason))
}

// Refused prints which client was turned away before a test, and why.
func (c *Console) Refused(addr string, reason error) {
	c.Event(Warning, c.Err, fmt.Sprintf("%s: %v", addr, reason))
}
