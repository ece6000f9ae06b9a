package bus

import (
	"errors"

	"thru/internal/fault"
)

// Why a client did not get in, or an answer could not be used. The errors of
// Dial and Client wrap one of these and carry a hint (package fault).
var (
	ErrUnknownHost = errors.New("unknown host")
	ErrRefused     = errors.New("connection refused")
	ErrUnreachable = errors.New("no route to host")
	ErrTimeout     = errors.New("no answer")
	ErrNotThru     = errors.New("not a thru end point")
	ErrCertificate = errors.New("unexpected certificate")
	ErrSecret      = errors.New("not let in")
	ErrWire        = errors.New("wire versions differ")
	ErrFamily      = errors.New("address family not available")
	ErrLost        = errors.New("connection lost")
	ErrClosed      = errors.New("connection closed")
)

// Reason is why an agent refused.
type Reason = fault.Reason

// Reasons of what is about a file.
const (
	ReasonMissing  Reason = "missing"   // there is no such file or folder
	ReasonExists   Reason = "exists"    // there is something of that name
	ReasonDenied   Reason = "denied"    // it may not be read
	ReasonReadOnly Reason = "read-only" // it may not be written there
	ReasonFull     Reason = "full"      // there is no room, or none that the operator grants
	ReasonShort    Reason = "short"     // fewer bytes came, or were there, than was said
	ReasonSilent   Reason = "silent"    // no byte passed for too long
)
