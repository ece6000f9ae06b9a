package ftp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/jlaffaye/ftp"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// Info is what is known by now: of the data connections, after the first.
func (s *session) Info() transfer.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	info.Details = slices.Clone(info.Details)
	return info
}

// guard runs an operation over one path.
func (s *session) guard(ctx context.Context, path string, do func(context.Context) error) error {
	if err := transfer.CheckName(path); err != nil {
		return err
	}
	watched, done := s.wires.Guard(ctx)
	s.ctx = watched
	if err := watched.Err(); err != nil {
		return done(fmt.Errorf("ftp: %w", context.Cause(watched)))
	}
	return done(do(watched))
}

// Size of a file (RFC 3659, section 4).
func (s *session) Size(ctx context.Context, path string) (size int64, err error) {
	err = s.guard(ctx, path, func(context.Context) error {
		size, err = s.size(path)
		return err
	})
	return size, err
}

func (s *session) size(path string) (int64, error) {
	size, err := s.conn.FileSize(path)
	if err != nil {
		return 0, judge("asking for its size", err, false)
	}
	return size, transfer.CheckSize(size)
}

// Get writes a file's bytes to w.
func (s *session) Get(ctx context.Context, path string, w io.Writer) (n int64, err error) {
	err = s.guard(ctx, path, func(ctx context.Context) error {
		n, err = s.fetch(ctx, path, w)
		return err
	})
	return n, err
}

func (s *session) fetch(ctx context.Context, path string, w io.Writer) (int64, error) {
	size, err := s.size(path)
	if err != nil {
		return 0, err
	}
	file, err := s.conn.Retr(path)
	var reply *textproto.Error
	if errors.As(err, &reply) && reply.Code == ftp.StatusFileUnavailable { // it is there: its size was told
		return 0, fmt.Errorf("ftp: getting it: %w (%w)", transfer.ErrDenied, err)
	}
	if err != nil {
		return 0, judge("getting it", err, false)
	}
	sink := &transfer.Noting{W: transfer.Most(transfer.Sink(ctx, w), size)}
	n, err := transfer.Copy(sink, file, s.cfg.Block)
	closed := file.Close()
	switch {
	case sink.Err != nil:
		return n, fmt.Errorf("ftp: getting it: %w", sink.Err)
	case ctx.Err() != nil:
		return n, fmt.Errorf("ftp: getting it: %w", cmp.Or(err, closed, context.Cause(ctx)))
	case n < size:
		return n, fmt.Errorf("ftp: getting it: %w: %d of %d (%w)", transfer.ErrShort, n, size, errors.Join(err, closed, io.ErrUnexpectedEOF))
	case err != nil || closed != nil:
		return n, judge("getting it", errors.Join(err, closed), false)
	}
	return n, nil
}

// Put writes to a temporary name and gives the file its own when it is whole.
func (s *session) Put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	return s.guard(ctx, path, func(ctx context.Context) error {
		if _, err := s.size(path); err == nil && !overwrite {
			return fmt.Errorf("ftp: putting it: %w", transfer.ErrExists)
		}
		temp := transfer.TempName(path)
		source := &source{r: transfer.Source(ctx, r, size)}
		err := s.conn.Stor(temp, source)
		switch {
		case source.err != nil && !errors.Is(source.err, io.EOF):
			err = fmt.Errorf("ftp: putting it: %w", source.err)
		case err != nil:
			err = judge("putting it", err, true)
		default:
			err = s.finish(temp, path, size, overwrite)
		}
		if err != nil && source.began {
			err = s.undo(temp, err)
		}
		return err
	})
}

// finish gives a file its name, when the server has all of it.
func (s *session) finish(temp, path string, size int64, overwrite bool) error {
	if got, err := s.size(temp); err == nil && got != size {
		return fmt.Errorf("ftp: putting it: the server has %d of %d bytes", got, size)
	}
	if _, err := s.size(path); err == nil && !overwrite { // it came meanwhile
		return fmt.Errorf("ftp: naming it: %w", transfer.ErrExists)
	}
	rename := func(from, to string) error {
		if err := s.conn.Rename(from, to); err != nil {
			return judge("naming it", err, true)
		}
		return nil
	}
	if !overwrite {
		return rename(temp, path)
	}
	return transfer.Replace(temp, path, rename, s.conn.Delete) // servers on Windows replace nothing
}

// undo removes what is half there, and returns the cause. While the session lives, it can.
func (s *session) undo(temp string, cause error) error {
	err := s.conn.Delete(temp)
	var reply *textproto.Error
	if err == nil || errors.As(err, &reply) && reply.Code == ftp.StatusFileUnavailable { // 550: it is not there
		return cause
	}
	return &transfer.Left{Path: temp, Cause: cause, Err: err}
}

// source remembers what became of the reader.
type source struct {
	r     io.Reader
	err   error
	began bool
}

// Read passes on.
func (s *source) Read(b []byte) (int, error) {
	s.began = true
	n, err := s.r.Read(b)
	if err != nil {
		s.err = err
	}
	return n, err
}

// Remove removes a file.
func (s *session) Remove(ctx context.Context, path string) error {
	return s.guard(ctx, path, func(context.Context) error {
		if err := s.conn.Delete(path); err != nil {
			return judge("removing it", err, false)
		}
		return nil
	})
}

// Sockets are the data connections, if there are.
func (s *session) Sockets() []net.Conn { return s.wires.Sockets() }

// Close says goodbye, and does not wait for an answer.
func (s *session) Close() error {
	_ = s.conn.Quit() // a connection that broke is closed all the same
	return s.wires.Close()
}

// judge makes an error of a reply (RFC 959, 4.2). 550 is all that servers say of what
// is missing and of what is not allowed, so their words decide.
func judge(doing string, err error, writing bool) error {
	var reply *textproto.Error
	if !errors.As(err, &reply) {
		return unlike(doing, err)
	}
	words := strings.ToLower(reply.Msg)
	denied := strings.Contains(words, "denied") || strings.Contains(words, "permi") || strings.Contains(words, "not allowed") || strings.Contains(words, "read-only")
	var kind error
	switch code := reply.Code; {
	case code == ftp.StatusNotLoggedIn || code == ftp.StatusInvalidCredentials:
		kind = transfer.ErrLogin
	case code == 452 || code == ftp.StatusExceededStorage, strings.Contains(words, "no space"), strings.Contains(words, "writing to local file"):
		kind = transfer.ErrFull // vsftpd says the last, with 451
	case strings.Contains(words, "reuse"): // vsftpd's 522
		kind = errors.New("it wants the TLS session of the control connection for data, which was not taken up")
	case writing && (code == 550 || code == 553 || code == 532), denied && doing == "removing it":
		kind = transfer.ErrReadOnly
	case code == 550 && denied:
		kind = transfer.ErrDenied
	case code == 550:
		kind = transfer.ErrMissing
	default:
		kind = errors.New("the server refused")
	}
	return fmt.Errorf("ftp: %s: %w (%d %.200q)", doing, kind, reply.Code, reply.Msg)
}

// unlike explains an error that is no reply: the connection, or an answer that is none.
func unlike(doing string, err error) error {
	var number *strconv.NumError
	var addr *net.AddrError
	switch {
	case errors.As(err, &number):
		return fault.Failf("the server's answer is no FTP: is a proxy or a firewall between?", "ftp: %s: the server says %.60q, where a number is wanted", doing, number.Num)
	case errors.As(err, &addr):
		return fault.Failf("the server's answer is no FTP: is a proxy or a firewall between?", "ftp: %s: the server names a port for data that is none", doing)
	case errors.Is(err, io.EOF):
		return fault.Failf("the server's log says why", "ftp: %s: the server closed the connection before its answer", doing)
	}
	return fmt.Errorf("ftp: %s: %w", doing, err)
}
