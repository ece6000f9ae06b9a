package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/pkg/sftp"

	"thru/internal/transfer"
)

// Status codes; those beyond the first are newer than version 3, but servers
// send them (draft-ietf-secsh-filexfer-13, 9.1).
const (
	statusFailure  = 4
	statusExists   = 11
	statusReadOnly = 12
	statusNoSpace  = 14
	statusQuota    = 15
)

// readOnlyDisk is SSH2_FXE_STATVFS_ST_RDONLY (OpenSSH's PROTOCOL, section 4.4).
const readOnlyDisk = 1

// place returns a path for the server: from its root, or after a leading ~/
// from the user's home, as in curl's URLs.
func place(path string) string {
	if home, ok := strings.CutPrefix(path, "~/"); ok {
		return home
	}
	return "/" + path
}

// unplace is the inverse of place.
func unplace(path string) string {
	if absolute, ok := strings.CutPrefix(path, "/"); ok {
		return absolute
	}
	return "~/" + path
}

// operations returns the operations of a session.
func (s *session) operations() transfer.Operations {
	return transfer.Operations{
		Protocol: "sftp", Get: s.get, Put: s.put,
		Size: func(_ context.Context, path string) (int64, error) {
			info, err := s.sftp.Stat(place(path))
			if err != nil {
				return 0, judge(err, false)
			}
			return info.Size(), regular(info)
		},
		Remove: func(_ context.Context, path string) error { return judge(s.sftp.Remove(place(path)), true) },
	}
}

// regular refuses anything but a regular file.
func regular(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is not a regular file", transfer.ErrMissing)
	}
	return transfer.CheckSize(info.Size())
}

// get writes a file's bytes to w.
func (s *session) get(ctx context.Context, path string, w io.Writer) (int64, error) {
	file, err := s.sftp.Open(place(path))
	if err != nil {
		return 0, judge(err, false)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, judge(err, false)
	}
	if err := regular(info); err != nil {
		return 0, err
	}
	sink := &transfer.Noting{W: transfer.Most(transfer.Sink(ctx, w), info.Size())}
	_, err = file.WriteTo(sink)
	return sink.N, sink.Ended(ctx, info.Size(), judge(err, false))
}

// put writes to a temporary name and renames the complete file.
func (s *session) put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	path = place(path)
	if there, err := s.sftp.Lstat(path); err == nil && (!overwrite || there.IsDir()) {
		return transfer.ErrExists
	}
	temp := transfer.TempName(path)
	file, err := s.sftp.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return s.whyNot(temp, err)
	}
	source := transfer.Source(ctx, r, size)
	_, err = file.ReadFromWithConcurrency(source, inFlight)
	err = errors.Join(err, file.Close())
	switch {
	case source.Err != nil:
		err = source.Err
	case err != nil:
		err = s.whyNot(temp, err)
	default:
		err = s.finish(temp, path, size, overwrite)
	}
	if err != nil {
		err = s.undo(temp, err)
	}
	return err
}

// whyNot explains a failed write. OpenSSH reports only "Failure" for a full
// or read-only disk; its extension statvfs@openssh.com shows which.
func (s *session) whyNot(temp string, err error) error {
	var status *sftp.StatusError
	if !errors.As(err, &status) || status.Code != statusFailure {
		return judge(err, true)
	}
	disk, asked := s.sftp.StatVFS(path.Dir(temp))
	switch {
	case asked == nil && disk.Flag&readOnlyDisk != 0:
		return fmt.Errorf("%w (%w)", transfer.ErrReadOnly, err)
	case asked == nil && disk.Bavail*disk.Frsize < largestBlock:
		return fmt.Errorf("%w (%w)", transfer.ErrFull, err)
	}
	return judge(err, true)
}

// finish renames a file that the server has completely. The protocol's own
// rename replaces nothing; OpenSSH's extension does, atomically.
func (s *session) finish(temp, path string, size int64, overwrite bool) error {
	if info, err := s.sftp.Stat(temp); err == nil && info.Size() != size {
		return fmt.Errorf("the server has %d of %d bytes", info.Size(), size)
	}
	if !overwrite {
		err := s.sftp.Rename(temp, path)
		if _, there := s.sftp.Lstat(path); err != nil && there == nil { // the name was taken meanwhile
			return fmt.Errorf("%w (%w)", transfer.ErrExists, err)
		}
		return judge(err, true)
	}
	if _, ok := s.sftp.HasExtension("posix-rename@openssh.com"); ok {
		return judge(s.sftp.PosixRename(temp, path), true)
	}
	rename := func(from, to string) error { return judge(s.sftp.Rename(from, to), true) }
	err := transfer.Replace(temp, path, rename, s.sftp.Remove)
	if left := (*transfer.Left)(nil); errors.As(err, &left) {
		left.Path = unplace(left.Path)
	}
	return err
}

// undo removes an incomplete file, and returns the cause. It works only while
// the session lives.
func (s *session) undo(temp string, cause error) error {
	if err := s.sftp.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &transfer.Left{Path: unplace(temp), Cause: cause, Err: err}
	}
	return cause
}

// judge converts a server's status to an error. Version 3 has no status for a
// full disk: OpenSSH reports "Failure" for it, and for much else.
func judge(err error, writing bool) error {
	if err == nil {
		return nil
	}
	var status *sftp.StatusError
	code := uint32(0)
	if errors.As(err, &status) {
		code = status.Code
	}
	var kind error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind = transfer.ErrMissing
	case errors.Is(err, fs.ErrPermission) && writing, code == statusReadOnly:
		kind = transfer.ErrReadOnly
	case errors.Is(err, fs.ErrPermission):
		kind = transfer.ErrDenied
	case code == statusNoSpace || code == statusQuota:
		kind = transfer.ErrFull
	case errors.Is(err, fs.ErrExist), code == statusExists:
		kind = transfer.ErrExists
	}
	if kind == nil || errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w (%w)", kind, err)
}
