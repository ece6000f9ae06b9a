package sftp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/pkg/sftp"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// Status codes; those beyond the first are newer than version 3, and sent all the same
// (draft-ietf-secsh-filexfer-13, 9.1).
const (
	statusFailure  = 4
	statusExists   = 11
	statusReadOnly = 12
	statusNoSpace  = 14
	statusQuota    = 15
)

// readOnlyDisk is SSH2_FXE_STATVFS_ST_RDONLY (OpenSSH's PROTOCOL, section 4.4).
const readOnlyDisk = 1

// place is a path as the server takes it: from its root, or with ~/ at the
// begin from the user's home, as curl's URLs have it.
func place(path string) string {
	if home, ok := strings.CutPrefix(path, "~/"); ok {
		return home
	}
	return "/" + path
}

// unplace is the other way round.
func unplace(path string) string {
	if absolute, ok := strings.CutPrefix(path, "/"); ok {
		return absolute
	}
	return "~/" + path
}

// guard runs an operation over one path.
func (s *session) guard(ctx context.Context, path string, do func(ctx context.Context, path string) error) error {
	if err := transfer.CheckName(path); err != nil {
		return err
	}
	watched, done := s.wires.Guard(ctx)
	if watched.Err() != nil {
		return done(fmt.Errorf("sftp: %w", context.Cause(watched)))
	}
	return done(do(watched, place(path)))
}

// Size of a file.
func (s *session) Size(ctx context.Context, path string) (size int64, err error) {
	err = s.guard(ctx, path, func(_ context.Context, path string) error {
		info, err := s.sftp.Stat(path)
		if err != nil {
			return judge("asking for its size", err, false)
		}
		size = info.Size()
		return regular(info)
	})
	return size, err
}

// regular refuses what is no file.
func regular(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("sftp: %w: what has that name is no file", transfer.ErrMissing)
	}
	return transfer.CheckSize(info.Size())
}

// Get writes a file's bytes to w.
func (s *session) Get(ctx context.Context, path string, w io.Writer) (n int64, err error) {
	err = s.guard(ctx, path, func(ctx context.Context, path string) error {
		n, err = s.fetch(ctx, path, w)
		return err
	})
	return n, err
}

func (s *session) fetch(ctx context.Context, path string, w io.Writer) (int64, error) {
	file, err := s.sftp.Open(path)
	if err != nil {
		return 0, judge("getting it", err, false)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, judge("getting it", err, false)
	}
	if err := regular(info); err != nil {
		return 0, err
	}
	sink := &transfer.Noting{W: transfer.Most(transfer.Sink(ctx, w), info.Size())}
	_, err = file.WriteTo(sink)
	switch {
	case sink.Err != nil:
		return sink.N, fmt.Errorf("sftp: getting it: %w", sink.Err)
	case ctx.Err() != nil:
		return sink.N, fmt.Errorf("sftp: getting it: %w", cmp.Or(err, context.Cause(ctx)))
	case sink.N < info.Size():
		return sink.N, fmt.Errorf("sftp: getting it: %w: %d of %d (%w)", transfer.ErrShort, sink.N, info.Size(), errors.Join(err, io.ErrUnexpectedEOF))
	case err != nil:
		return sink.N, judge("getting it", err, false)
	}
	return sink.N, nil
}

// Put writes to a temporary name and gives the file its own when it is whole.
func (s *session) Put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	return s.guard(ctx, path, func(ctx context.Context, path string) error {
		if there, err := s.sftp.Lstat(path); err == nil && (!overwrite || there.IsDir()) {
			return fmt.Errorf("sftp: putting it: %w", transfer.ErrExists)
		}
		temp := transfer.TempName(path)
		file, err := s.sftp.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if err != nil {
			return s.whyNot(temp, err)
		}
		source := &source{r: transfer.Source(ctx, r, size)}
		_, err = file.ReadFromWithConcurrency(source, inFlight)
		err = errors.Join(err, file.Close())
		switch {
		case source.err != nil:
			err = fmt.Errorf("sftp: putting it: %w", source.err)
		case err != nil:
			err = s.whyNot(temp, err)
		default:
			err = s.finish(temp, path, size, overwrite)
		}
		if err != nil {
			err = s.undo(temp, err)
		}
		return err
	})
}

// whyNot explains a write that failed. OpenSSH says nothing but "Failure" of a disk
// that is full or read-only; its extension statvfs@openssh.com tells.
func (s *session) whyNot(temp string, err error) error {
	var status *sftp.StatusError
	if !errors.As(err, &status) || status.Code != statusFailure {
		return judge("putting it", err, true)
	}
	disk, asked := s.sftp.StatVFS(path.Dir(temp))
	switch {
	case asked == nil && disk.Flag&readOnlyDisk != 0:
		return fmt.Errorf("sftp: putting it: %w (%w)", transfer.ErrReadOnly, err)
	case asked == nil && disk.Bavail*disk.Frsize < largestBlock:
		return fmt.Errorf("sftp: putting it: %w (%w)", transfer.ErrFull, err)
	}
	return judge("putting it", err, true)
}

// source remembers how the reader failed.
type source struct {
	r   io.Reader
	err error
}

// Read passes on.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// finish gives a file its name, when the server has all of it. The protocol's own
// rename replaces nothing; OpenSSH's extension does, at once.
func (s *session) finish(temp, path string, size int64, overwrite bool) error {
	if info, err := s.sftp.Stat(temp); err == nil && info.Size() != size {
		return fmt.Errorf("sftp: putting it: the server has %d of %d bytes", info.Size(), size)
	}
	if !overwrite {
		err := s.sftp.Rename(temp, path)
		if _, there := s.sftp.Lstat(path); err != nil && there == nil { // it came meanwhile
			return fmt.Errorf("sftp: naming it: %w (%w)", transfer.ErrExists, err)
		}
		return judge("naming it", err, true)
	}
	if _, ok := s.sftp.HasExtension("posix-rename@openssh.com"); ok {
		return judge("naming it", s.sftp.PosixRename(temp, path), true)
	}
	rename := func(from, to string) error { return judge("naming it", s.sftp.Rename(from, to), true) }
	err := transfer.Replace(temp, path, rename, s.sftp.Remove)
	if left := (*transfer.Left)(nil); errors.As(err, &left) {
		left.Path = unplace(left.Path)
	}
	return err
}

// undo removes what is half there, and returns the cause. While the session lives, it can.
func (s *session) undo(temp string, cause error) error {
	if err := s.sftp.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &transfer.Left{Path: unplace(temp), Cause: cause, Err: err}
	}
	return cause
}

// Remove removes a file.
func (s *session) Remove(ctx context.Context, path string) error {
	return s.guard(ctx, path, func(_ context.Context, path string) error {
		return judge("removing it", s.sftp.Remove(path), true)
	})
}

// judge makes an error of a server's status. Version 3 has no word for what is
// full: OpenSSH says "Failure" of it, and of much else.
func judge(doing string, err error, writing bool) error {
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
	default:
		return fmt.Errorf("sftp: %s: %w", doing, err)
	}
	if errors.Is(err, kind) {
		return fmt.Errorf("sftp: %s: %w", doing, err)
	}
	return fault.Failf("", "sftp: %s: %w (%w)", doing, kind, err)
}
