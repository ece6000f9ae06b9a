package sock

import (
	"errors"
	"net"
	"os"
)

// Cause returns the cause of an error of package net, without its operation and addresses, which the caller names. A
// name without addresses has a plain cause. Other errors stay as they are.
func Cause(err error) error {
	if dns, is := errors.AsType[*net.DNSError](err); is {
		return &lookupError{dns}
	}
	if op, is := errors.AsType[*net.OpError](err); is {
		err = op.Err
	}
	if call, is := err.(*os.SyscallError); is {
		return call.Err
	}
	return err
}

// LookupHint returns the hint for an error of looking up a name; otherwise for other errors.
func LookupHint(err error, otherwise string) string {
	dns, is := errors.AsType[*net.DNSError](err)
	switch {
	case !is:
		return otherwise
	case dns.IsNotFound:
		return "check the spelling, or give its address"
	}
	return "check the DNS server, or give its address"
}

type lookupError struct{ *net.DNSError }

// Error says why a name has no addresses.
func (e *lookupError) Error() string {
	switch {
	case e.IsNotFound:
		return "unknown host"
	case e.IsTimeout:
		return "no answer from the DNS server"
	}
	return "the DNS server does not resolve it"
}

func (e *lookupError) Unwrap() error { return e.DNSError }
