package loopback

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Limits for a client.
const (
	longestCommand = 8 << 10 // bytes of a line
	dataWait       = 10 * time.Second
)

// serveFTP is an FTP server (RFC 959, 2428, 3659, 4217) with what our client
// needs: passive connections by EPSV only.
func serveFTP(o Options, encrypted bool) (*Server, error) {
	var config *tls.Config
	var pin string
	if encrypted {
		var err error
		if config, pin, err = secure(o); err != nil {
			return nil, err
		}
	}
	files := newShelf(o)
	d, err := openDoor(func(d *door, conn net.Conn) {
		s := &ftpSession{door: d, files: files, tls: config}
		s.serve(conn)
	})
	if err != nil {
		return nil, err
	}
	s, err := d.server()
	if err != nil {
		return nil, err
	}
	s.pin = pin
	return s, nil
}

// ftpSession is one control connection.
type ftpSession struct {
	door    *door
	files   *shelf
	tls     *tls.Config
	conn    net.Conn
	in      *bufio.Reader
	sealed  bool         // the control connection uses TLS
	passive net.Listener // for the next data connection; nil: none was requested
	from    string       // the name in RNFR
}

func (s *ftpSession) serve(conn net.Conn) {
	s.talk(conn)
	defer s.closePassive()
	if s.reply(220, "thru") != nil {
		return
	}
	for {
		line, err := s.in.ReadSlice('\n')
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
		if err := s.obey(strings.ToUpper(verb), rest); err != nil {
			return
		}
	}
}

// talk continues over another connection.
func (s *ftpSession) talk(conn net.Conn) {
	s.conn, s.in = conn, bufio.NewReaderSize(conn, longestCommand)
}

func (s *ftpSession) reply(code int, text string) error {
	_, err := fmt.Fprintf(s.conn, "%d %s\r\n", code, text)
	return err
}

// obey answers a command. An error ends the session.
func (s *ftpSession) obey(verb, rest string) error {
	switch verb {
	case "USER":
		return s.reply(230, "in")
	case "PASS", "TYPE", "OPTS", "NOOP", "PBSZ", "PROT":
		return s.reply(200, "yes")
	case "FEAT":
		_, err := io.WriteString(s.conn, "211-has\r\n EPSV\r\n SIZE\r\n UTF8\r\n211 end\r\n")
		return err
	case "AUTH":
		return s.seal()
	case "EPSV":
		return s.listen()
	case "SIZE":
		return s.size(rest)
	case "RETR":
		return s.retrieve(rest)
	case "STOR":
		return s.store(rest)
	case "DELE":
		return s.judge(s.files.Remove(rest), 250)
	case "RNFR":
		s.from = rest
		_, there := s.files.Size(rest)
		return s.judge(there, 350)
	case "RNTO":
		return s.judge(s.files.Rename(s.from, rest), 250)
	case "QUIT":
		return errors.Join(s.reply(221, "bye"), io.EOF)
	}
	return s.reply(502, "not here")
}

// judge replies that it was done, or that there is no such file.
func (s *ftpSession) judge(done bool, code int) error {
	if !done {
		return s.reply(550, "no such file")
	}
	return s.reply(code, "done")
}

func (s *ftpSession) size(name string) error {
	size, there := s.files.Size(name)
	if !there {
		return s.judge(false, 0)
	}
	return s.reply(213, fmt.Sprint(size))
}

// seal starts TLS on the control connection, and on later data connections.
func (s *ftpSession) seal() error {
	if s.tls == nil || s.sealed {
		return s.reply(502, "not here")
	}
	if err := s.reply(234, "go on"); err != nil {
		return err
	}
	s.sealed = true
	s.talk(tls.Server(s.conn, s.tls))
	return nil
}

func (s *ftpSession) closePassive() {
	if s.passive != nil {
		s.door.drop(s.passive)
		s.passive = nil
	}
}

// listen opens a port for the next data connection.
func (s *ftpSession) listen() error {
	s.closePassive()
	l, err := listen()
	if err != nil {
		return s.reply(425, "no port is free")
	}
	if !s.door.add(l) {
		return errors.Join(net.ErrClosed, l.Close())
	}
	s.passive = l
	return s.reply(229, fmt.Sprintf("here (|||%d|)", l.Addr().(*net.TCPAddr).Port))
}

// data returns the connection for a file's data. release closes it.
func (s *ftpSession) data() (conn net.Conn, release func() error, err error) {
	if s.passive == nil {
		return nil, nil, s.reply(425, "EPSV first")
	}
	defer s.closePassive()
	if err := s.reply(150, "go on"); err != nil {
		return nil, nil, err
	}
	if l, ok := s.passive.(*net.TCPListener); ok {
		_ = l.SetDeadline(time.Now().Add(dataWait)) // an open port takes it
	}
	raw, err := s.passive.Accept()
	if err != nil {
		return nil, nil, err
	}
	if !s.door.add(raw) {
		return nil, nil, errors.Join(net.ErrClosed, raw.Close())
	}
	conn = raw
	if s.sealed {
		conn = tls.Server(raw, s.tls)
	}
	return conn, func() error {
		defer s.door.drop(raw)
		if sealed, ok := conn.(*tls.Conn); ok {
			return sealed.Close() // confirms that nothing was cut off
		}
		return nil
	}, nil
}

func (s *ftpSession) retrieve(name string) error {
	size, there := s.files.Size(name)
	if !there {
		return s.judge(false, 0)
	}
	conn, release, err := s.data()
	if conn == nil {
		return err
	}
	err = s.files.pour(conn, size)
	return s.ended(errors.Join(err, release()))
}

func (s *ftpSession) store(name string) error {
	conn, release, err := s.data()
	if conn == nil {
		return err
	}
	size, err := drain(conn)
	s.files.Remove(name)
	s.files.Grow(name, size)
	return s.ended(errors.Join(err, release()))
}

// ended replies how a data connection ended.
func (s *ftpSession) ended(err error) error {
	if err != nil {
		return s.reply(426, "the data connection broke")
	}
	return s.reply(226, "done")
}
