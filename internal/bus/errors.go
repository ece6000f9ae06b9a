package bus

import "errors"

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
