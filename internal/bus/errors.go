package bus

import (
	"errors"

	"thru/internal/fault"
)

// Errors of a failed login or an unusable answer. The errors of Dial and Client
// wrap one of these and carry a hint (package fault).
var (
	ErrUnknownHost = errors.New("unknown host")
	ErrRefused     = errors.New("connection refused")
	ErrUnreachable = errors.New("no route to host")
	ErrTimeout     = errors.New("no answer")
	ErrNotThru     = errors.New("not a thru end point")
	ErrCertificate = errors.New("unexpected certificate")
	ErrSecret      = errors.New("access denied")
	ErrWire        = errors.New("wire versions differ")
	ErrFamily      = errors.New("address family not available")
	ErrLost        = errors.New("connection lost")
	ErrClosed      = errors.New("connection closed")
)

// Reason is why an agent refused a request.
type Reason = fault.Reason

// Reasons that concern a file.
const (
	ReasonMissing  Reason = "missing"   // no such file or folder
	ReasonExists   Reason = "exists"    // the name exists already
	ReasonDenied   Reason = "denied"    // no permission to read
	ReasonReadOnly Reason = "read-only" // no permission to write
	ReasonFull     Reason = "full"      // no space, or the operator's limit is reached
	ReasonShort    Reason = "short"     // fewer bytes than announced
	ReasonSilent   Reason = "silent"    // no byte passed for too long
)
