package nfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// errReply means that a reply lacks required values, or has impossible ones.
var errReply = errors.New("a reply that is too short or invalid")

// errForgotten means that the server no longer knows the session.
var errForgotten = errors.New("the server lost this session: it restarted, or was not reachable for too long")

// status is why a server refused: nfsstat3 or nfsstat4, which share most
// numbers.
type status struct {
	code uint32
	four bool // of NFS 4
}

// Statuses that the code distinguishes.
const (
	codeMissing   = 2
	codeNotFolder = 20
	codeDelay     = 10008
	codeGrace     = 10013
	codeWrongSec  = 10016
	codeMinor     = 10021
)

// statusNames are the names shown to people. Numbers from 10011 are those of
// version 4.
var statusNames = map[uint32]string{
	1: "PERM", codeMissing: "NOENT", 5: "IO", 13: "ACCES", 17: "EXIST", 18: "XDEV", codeNotFolder: "NOTDIR", 21: "ISDIR", 22: "INVAL", 27: "FBIG", 28: "NOSPC", 30: "ROFS",
	63: "NAMETOOLONG", 69: "DQUOT", 70: "STALE", 10001: "BADHANDLE", 10006: "SERVERFAULT", codeDelay: "JUKEBOX",
	10011: "EXPIRED", 10012: "LOCKED", codeGrace: "GRACE", 10014: "FHEXPIRED", 10015: "SHARE_DENIED", codeWrongSec: "WRONGSEC", 10018: "RESOURCE", 10019: "MOVED",
	codeMinor: "MINOR_VERS_MISMATCH", 10022: "STALE_CLIENTID", 10023: "STALE_STATEID", 10025: "BAD_STATEID", 10029: "SYMLINK", 10040: "BADCHAR", 10041: "BADNAME",
	10052: "BADSESSION", 10053: "BADSLOT", 10063: "SEQ_MISORDERED", 10078: "DEADSESSION", 10083: "WRONG_TYPE",
}

// Error returns its name in the standard.
func (s status) Error() string {
	version := 3
	if s.four {
		version = 4
	}
	switch name := statusNames[s.code]; {
	case name == "":
		return fmt.Sprintf("nfsstat%d %d", version, s.code)
	case s.four && s.code == codeDelay:
		return "NFS4ERR_DELAY"
	case s.four && name == "ACCES":
		return "NFS4ERR_ACCESS"
	default:
		return fmt.Sprintf("NFS%dERR_%s", version, name)
	}
}

// meaning returns the error that callers know; denied is the meaning of "no
// access" here.
func (s status) meaning(denied error) error {
	switch s.code {
	case 1, 13:
		return denied
	case codeMissing, codeNotFolder, 70, 10014, 10029, 10083:
		return transfer.ErrMissing
	case 17, 21:
		return transfer.ErrExists
	case 28, 69:
		return transfer.ErrFull
	case 30:
		return transfer.ErrReadOnly
	case 63, 10040, 10041:
		return transfer.ErrName
	case codeWrongSec:
		return errKerberos
	case 10011, 10022, 10023, 10025, 10052, 10078:
		return errForgotten
	}
	return nil
}

// errKerberos means that the server does not accept AUTH_SYS.
var errKerberos = fmt.Errorf("%w: it accepts only Kerberos, which thru does not support", transfer.ErrLogin)

// hasCode reports whether an error is a status of that number.
func hasCode(err error, code uint32) bool {
	s := status{}
	return errors.As(err, &s) && s.code == code
}

// refined joins an error with the one that callers know.
func refined(err, denied error) error {
	var known error
	if s := (status{}); errors.As(err, &s) {
		known = s.meaning(denied)
	} else if errors.Is(err, errBroken) {
		known = transfer.ErrShort
	}
	if known == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", known, err)
}

// firstWait and lastWait are the first and the longest wait before a call is
// repeated to a server that asks for time.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

// patient repeats a call while the server asks for time, at most for the time
// of a silence.
func patient[T any](ctx context.Context, most time.Duration, call func() (T, error)) (T, error) {
	if most <= 0 {
		most = transfer.DefaultTimeout
	}
	begin := time.Now()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		got, err := call()
		grace := hasCode(err, codeGrace)
		switch {
		case !grace && !hasCode(err, codeDelay):
			return got, err
		case time.Since(begin)+wait > most:
			if grace {
				err = fault.Failf("try again in 90 s, or wait longer (--timeout 2m): the server has just started and waits for its clients", "%w", err)
			}
			return got, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return got, context.Cause(ctx)
		}
	}
}
