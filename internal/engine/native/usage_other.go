//go:build !unix

package native

// read has nothing to ask here.
func (u *usage) read() { u.UserNs = notKnown }
