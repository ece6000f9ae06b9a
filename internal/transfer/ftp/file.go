package ftp

import (
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

// Info returns what is known so far: facts about data connections after the
// first one.
func (s *session) Info() transfer.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	info.Details = slices.Clone(info.Details)
	return info
}

// operations returns the operations of a session.
func (s *session) operations() transfer.Operations {
	return transfer.Operations{
		Protocol: "ftp", Get: s.get, Put: s.put,
		Size: func(ctx context.Context, path string) (int64, error) {
			s.ctx = ctx
			return s.size(path)
		},
		Remove: func(ctx context.Context, path string) error {
			s.ctx = ctx
			return judge(s.conn.Delete(path), removing)
		},
	}
}

// size returns the size of a file (RFC 3659, section 4).
func (s *session) size(path string) (int64, error) {
	size, err := s.conn.FileSize(path)
	if err != nil {
		return 0, judge(err, reading)
	}
	return size, transfer.CheckSize(size)
}

// get writes a file's bytes to w.
func (s *session) get(ctx context.Context, path string, w io.Writer) (int64, error) {
	s.ctx = ctx
	size, err := s.size(path)
	if err != nil {
		return 0, err
	}
	file, err := s.conn.Retr(path)
	var reply *textproto.Error
	if errors.As(err, &reply) && reply.Code == ftp.StatusFileUnavailable { // the file exists: the server reported its size
		return 0, fmt.Errorf("%w (%w)", transfer.ErrDenied, err)
	}
	if err != nil {
		return 0, judge(err, reading)
	}
	sink := &transfer.Noting{W: transfer.Most(transfer.Sink(ctx, w), size)}
	_, err = transfer.Copy(sink, file, s.cfg.Block)
	return sink.N, sink.Ended(ctx, size, judge(errors.Join(err, file.Close()), reading))
}

// put writes to a temporary name and renames the complete file.
func (s *session) put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	s.ctx = ctx
	if _, err := s.size(path); err == nil && !overwrite {
		return transfer.ErrExists
	}
	temp := transfer.TempName(path)
	source := transfer.Source(ctx, r, size)
	err := judge(s.conn.Stor(temp, source), writing)
	if source.Err != nil {
		err = source.Err
	}
	if err == nil {
		err = s.finish(temp, path, size, overwrite)
	}
	if err != nil && source.Began {
		err = s.undo(temp, err)
	}
	return err
}

// finish renames a file that the server has completely.
func (s *session) finish(temp, path string, size int64, overwrite bool) error {
	if got, err := s.size(temp); err == nil && got != size {
		return fmt.Errorf("the server has %d of %d bytes", got, size)
	}
	if _, err := s.size(path); err == nil && !overwrite { // the name was taken meanwhile
		return transfer.ErrExists
	}
	rename := func(from, to string) error { return judge(s.conn.Rename(from, to), writing) }
	if !overwrite {
		return rename(temp, path)
	}
	return transfer.Replace(temp, path, rename, s.conn.Delete) // a rename on Windows servers replaces nothing
}

// undo removes an incomplete file, and returns the cause. It works only while
// the session lives.
func (s *session) undo(temp string, cause error) error {
	err := s.conn.Delete(temp)
	var reply *textproto.Error
	if err == nil || errors.As(err, &reply) && reply.Code == ftp.StatusFileUnavailable { // 550: it does not exist
		return cause
	}
	return &transfer.Left{Path: temp, Cause: cause, Err: err}
}

// Close sends QUIT, and does not wait for an answer.
func (s *session) Close() error {
	_ = s.conn.Quit() // a broken connection is closed anyway
	return s.Wires.Close()
}

// task is the operation that a reply belongs to.
type task int

const (
	reading task = iota
	writing
	removing
)

// judge converts a reply to an error (RFC 959, 4.2). Servers use 550 both for
// missing files and for forbidden ones, so their text decides.
func judge(err error, doing task) error {
	var reply *textproto.Error
	if !errors.As(err, &reply) {
		return unlike(err)
	}
	words := strings.ToLower(reply.Msg)
	denied := strings.Contains(words, "denied") || strings.Contains(words, "permi") || strings.Contains(words, "not allowed") || strings.Contains(words, "read-only")
	var kind error
	switch code := reply.Code; {
	case code == ftp.StatusNotLoggedIn || code == ftp.StatusInvalidCredentials:
		kind = transfer.ErrLogin
	case code == 452 || code == ftp.StatusExceededStorage, strings.Contains(words, "no space"), strings.Contains(words, "writing to local file"):
		kind = transfer.ErrFull // vsftpd reports the latter with 451
	case strings.Contains(words, "reuse"): // vsftpd's 522
		kind = errors.New("the server requires that data connections resume the TLS session of the control connection")
	case doing == writing && (code == 550 || code == 553 || code == 532), denied && doing == removing:
		kind = transfer.ErrReadOnly
	case code == 550 && denied:
		kind = transfer.ErrDenied
	case code == 550:
		kind = transfer.ErrMissing
	default:
		kind = errors.New("the server refused")
	}
	return fmt.Errorf("%w (%d %.200q)", kind, reply.Code, reply.Msg)
}

// unlike explains an error without a reply: of the connection, or an invalid
// answer.
func unlike(err error) error {
	var number *strconv.NumError
	var addr *net.AddrError
	switch {
	case errors.As(err, &number):
		return fault.Failf("check for a proxy or a firewall in between: the server's answer is not FTP", "the server answered %.60q instead of a number", number.Num)
	case errors.As(err, &addr):
		return fault.Failf("check for a proxy or a firewall in between: the server's answer is not FTP", "the server named an invalid data port")
	case errors.Is(err, io.EOF):
		return fault.Failf("check the server's log", "the server closed the connection before its answer")
	}
	return err
}
