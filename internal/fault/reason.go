package fault

import "errors"

// Reason is why something failed, for a program, which cannot go by words. It
// travels with the error, also from an agent to its client.
type Reason string

// Reasons that several parts of the program know.
const (
	PeerGone Reason = "peer-gone"    // the other end has closed or reset the connection: it knows why
	Taken    Reason = "tune-taken"   // the host is being tuned by another
	Foreign  Reason = "tune-foreign" // somebody else has changed a setting meanwhile
)

// Because gives an error a reason; where that is empty it is left as it is.
func Because(r Reason, err error) error {
	if r == "" || err == nil {
		return err
	}
	return &reasoned{err, r}
}

// ReasonOf is the reason of an error, or "".
func ReasonOf(err error) Reason {
	var r *reasoned
	if errors.As(err, &r) {
		return r.reason
	}
	return ""
}

// reasoned is an error with a reason.
type reasoned struct {
	error
	reason Reason
}

// Unwrap returns what has it.
func (r *reasoned) Unwrap() error { return r.error }
