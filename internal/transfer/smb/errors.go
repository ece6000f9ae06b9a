package smb

import (
	"errors"
	"fmt"
	"io/fs"

	smb2 "github.com/cloudsoda/go-smb2"

	"thru/internal/transfer"
)

// ErrOld means that the server supports only SMB1.
var ErrOld = errors.New("the server supports only SMB1, which is insecure and slow, and which thru refuses")

// Status codes of [MS-ERREF] 2.3.1 that callers distinguish.
const (
	noSuchFile       = 0xC000000F
	accountLimited   = 0xC000006E
	logonFailure     = 0xC000006D
	wrongPassword    = 0xC000006A
	noSuchUser       = 0xC0000064
	passwordExpired  = 0xC0000071
	accountDisabled  = 0xC0000072
	diskFull         = 0xC000007F
	writeProtected   = 0xC00000A2
	badNetworkName   = 0xC00000CC
	quotaExceeded    = 0xC0000044
	logonTypeRefused = 0xC000015B
	mustChange       = 0xC0000224
	accountLocked    = 0xC0000234
)

// refined joins an error of the library with the one that callers know.
// denied is the meaning of "access denied" in this call.
func refined(err, denied error) error {
	known := meaning(err, denied)
	if known == nil || errors.Is(err, known) {
		return err
	}
	return fmt.Errorf("%w (%w)", known, err)
}

func meaning(err, denied error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return transfer.ErrExists
	case errors.Is(err, fs.ErrNotExist):
		return transfer.ErrMissing
	case errors.Is(err, fs.ErrPermission):
		return denied
	}
	if broken := (*smb2.TransportError)(nil); errors.As(err, &broken) {
		return transfer.ErrShort
	}
	var response *smb2.ResponseError
	if !errors.As(err, &response) {
		return nil
	}
	switch response.Code {
	case logonFailure, wrongPassword, noSuchUser, accountLimited, passwordExpired, accountDisabled, logonTypeRefused, mustChange, accountLocked:
		return transfer.ErrLogin
	case badNetworkName, noSuchFile:
		return transfer.ErrMissing
	case diskFull, quotaExceeded:
		return transfer.ErrFull
	case writeProtected:
		return transfer.ErrReadOnly
	}
	return nil
}
