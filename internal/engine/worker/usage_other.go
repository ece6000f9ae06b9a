//go:build !unix

package worker

// read has nothing to ask here.
func (u *usage) read() { u.UserNs = notKnown }
