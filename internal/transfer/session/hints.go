package session

import (
	"errors"
	"net"
	"syscall"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// Hinted adds a fix to an error where the failing client has not added one.
func Hinted(err error, overwrite bool) error {
	exists := "--overwrite replaces it"
	if overwrite {
		exists = "name a file: a folder is not replaced"
	}
	if err == nil || fault.Hint(err) != "" {
		return err
	}
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return fault.Failf("is the name right? The URL takes an address too", "%w", err)
	}
	for _, x := range []struct {
		is   error
		hint string
	}{
		{transfer.ErrLogin, "USER@ in the URL; the password from THRU_PASSWORD or --password-stdin"},
		{transfer.ErrMissing, "the path is that of the server, of smb with the share first, of rsync with the module"},
		{transfer.ErrReadOnly, "a folder that is there, and that this user may write to"},
		{transfer.ErrFull, "a smaller --size, or more room"},
		{transfer.ErrExists, exists},
		{transfer.ErrShort, "the server ended the transfer early: its log says why"},
		{transfer.ErrUnknown, "--pin SHA256 accepts that one alone"},
		{transfer.ErrDenied, "USER@ in the URL names one who may read it"},
		{transfer.ErrSource, "a file that nobody changes while it is sent"},
		{transfer.ErrSilent, "--timeout TIME waits longer; a firewall drops what it does not allow without a word"},
		{syscall.ECONNREFUSED, "is the server running, and is that its port? The URL names another: PROTO://HOST:PORT/PATH"},
		{syscall.ECONNRESET, "the server, or something on the way, closed the connection: its log says why"},
		{syscall.EPIPE, "the server, or something on the way, closed the connection: its log says why"},
		{syscall.ENAMETOOLONG, "a shorter name"},
	} {
		if errors.Is(err, x.is) {
			return fault.Failf(x.hint, "%w", err)
		}
	}
	return err
}
