package session

import (
	"errors"
	"net"
	"syscall"

	"thru/internal/fault"
	"thru/internal/sock"
	"thru/internal/transfer"
)

// Hinted adds a fix to an error where the failing client has not added one.
func Hinted(err error, overwrite bool) error {
	exists := "replace it with --overwrite"
	if overwrite {
		exists = "name a file: thru does not replace a folder"
	}
	if err == nil || fault.Hint(err) != "" {
		return err
	}
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return fault.Failf("check the name, or give an address in the URL", "%w", err)
	}
	for _, x := range []struct {
		is   error
		hint string
	}{
		{transfer.ErrLogin, "give USER@ in the URL, and the password in THRU_PASSWORD or with --password-stdin"},
		{transfer.ErrMissing, "give the path as on the server; for smb begin with the share, for rsync with the module"},
		{transfer.ErrReadOnly, "name an existing folder that this user may write to"},
		{transfer.ErrFull, "lower --size, or free space"},
		{transfer.ErrExists, exists},
		{transfer.ErrShort, "check the server's log: it ended the transfer early"},
		{transfer.ErrUnknown, "accept this one only: --pin SHA256"},
		{transfer.ErrDenied, "give a user with read permission: USER@ in the URL"},
		{transfer.ErrSource, "send a file that does not change during the transfer"},
		{transfer.ErrSilent, "check for a firewall that drops packets silently, or wait longer: --timeout TIME"},
		{syscall.ECONNREFUSED, "check that the server runs on that port, or give another in the URL: PROTO://HOST:PORT/PATH"},
		{syscall.ECONNRESET, "check the server's log: the server or a device on the path closed the connection"},
		{syscall.EPIPE, "check the server's log: the server or a device on the path closed the connection"},
		{syscall.ENAMETOOLONG, "give a shorter name"},
	} {
		if number, is := x.is.(syscall.Errno); errors.Is(err, x.is) || is && sock.Is(err, number) {
			return fault.Failf(x.hint, "%w", err)
		}
	}
	return err
}
