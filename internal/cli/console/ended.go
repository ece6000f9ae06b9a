package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
)

// printed is an error that is already part of a printed result.
type printed struct{ error }

// Unwrap gives the error itself.
func (p printed) Unwrap() error { return p.error }

// Printed marks an error that is already part of a printed result.
func Printed(err error) error { return printed{err} }

// WasPrinted tells whether nothing is to be said of an error any more.
func WasPrinted(err error) bool {
	_, is := errors.AsType[printed](err)
	return is
}

// Signalled is the cause of a command's end by a signal: a canceled context, else.
type Signalled struct{ Signal os.Signal }

// Error implements error.
func (Signalled) Error() string { return context.Canceled.Error() }

// Unwrap gives what a canceled context says.
func (Signalled) Unwrap() error { return context.Canceled }

// VerdictError ends a command whose figures did not pass: they have been printed.
func VerdictError(v *measure.Verdict) error {
	code := fault.Verdict
	if v.Inconclusive {
		code = fault.Inconclusive
	}
	return Printed(fault.New(code, "", "%s", v.Reason))
}

// Refused says who was turned away before it came to a test.
func (c *Console) Refused(addr string, reason error) {
	fmt.Fprintf(c.Err, "%s%s: %v\n", time.Now().Format("15:04:05 "), addr, reason)
}
