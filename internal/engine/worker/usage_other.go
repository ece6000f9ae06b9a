//go:build !unix

package worker

// read has no source on this system.
func (u *usage) read() { u.UserNs = notKnown }
