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

// Info is what is known by now: of the data connections, after the first.
func (s *session) Info() transfer.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	info.Details = slices.Clone(info.Details)
	return info
}

// operations are those of a session.
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

// size of a file (RFC 3659, section 4).
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
	if errors.As(err, &reply) && reply.Code == ftp.StatusFileUnavailable { // it is there: its size was told
		return 0, fmt.Errorf("%w (%w)", transfer.ErrDenied, err)
	}
	if err != nil {
		return 0, judge(err, reading)
	}
	sink := &transfer.Noting{W: transfer.Most(transfer.Sink(ctx, w), size)}
	_, err = transfer.Copy(sink, file, s.cfg.Block)
	return sink.N, sink.Ended(ctx, size, judge(errors.Join(err, file.Close()), reading))
}

// put writes to a temporary name and gives the file its own when it is whole.
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

// finish gives a file its name, when the server has all of it.
func (s *session) finish(temp, path string, size int64, overwrite bool) error {
	if got, err := s.size(temp); err == nil && got != size {
		return fmt.Errorf("the server has %d of %d bytes", got, size)
	}
	if _, err := s.size(path); err == nil && !overwrite { // it came meanwhile
		return transfer.ErrExists
	}
	rename := func(from, to string) error { return judge(s.conn.Rename(from, to), writing) }
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

// Close says goodbye, and does not wait for an answer.
func (s *session) Close() error {
	_ = s.conn.Quit() // a connection that broke is closed all the same
	return s.Wires.Close()
}

// task is what a reply was to.
type task int

const (
	reading task = iota
	writing
	removing
)

// judge makes an error of a reply (RFC 959, 4.2). 550 is all that servers say of what
// is missing and of what is not allowed, so their words decide.
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
		kind = transfer.ErrFull // vsftpd says the last, with 451
	case strings.Contains(words, "reuse"): // vsftpd's 522
		kind = errors.New("it wants the TLS session of the control connection for data, which was not taken up")
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

// unlike explains an error that is no reply: the connection, or an answer that is none.
func unlike(err error) error {
	var number *strconv.NumError
	var addr *net.AddrError
	switch {
	case errors.As(err, &number):
		return fault.Failf("the server's answer is no FTP: is a proxy or a firewall between?", "the server says %.60q, where a number is wanted", number.Num)
	case errors.As(err, &addr):
		return fault.Failf("the server's answer is no FTP: is a proxy or a firewall between?", "the server names a port for data that is none")
	case errors.Is(err, io.EOF):
		return fault.Failf("the server's log says why", "the server closed the connection before its answer")
	}
	return err
}
