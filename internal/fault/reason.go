package fault

import "errors"

// Reason is why something failed, for programs, which cannot rely on the text. It travels with the error, also from an agent to its client.
type Reason string

// Reasons that several parts of the program share.
const (
	PeerGone Reason = "peer-gone"    // the other end has closed or reset the connection: only it knows why
	Taken    Reason = "tune-taken"   // another tuning holds the host
	Foreign  Reason = "tune-foreign" // something else has changed a setting meanwhile
)

// Because adds a reason to an error; an empty reason leaves it as it is.
func Because(r Reason, err error) error {
	if r == "" || err == nil {
		return err
	}
	return &reasoned{err, r}
}

// ReasonOf returns the reason of an error, or "".
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

// Unwrap returns the error without its reason.
func (r *reasoned) Unwrap() error { return r.error }
