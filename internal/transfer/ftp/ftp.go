// Package ftp moves files by FTP (RFC 959) and FTPS (RFC 4217) through the
// library jlaffaye/ftp: passive connections only (EPSV, RFC 2428), type I.
package ftp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"github.com/jlaffaye/ftp"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// library is the library of the protocol, as in go.mod.
const library = "jlaffaye/ftp v0.2.4"

// implicitPort is the port where TLS begins with the first byte (mentioned in
// RFC 4217, section 2.2).
const implicitPort = "990"

// goodbye limits the wait for the server to close after an upload.
const goodbye = 2 * time.Second

// New returns a client of a server by scheme "ftp" or "ftps". The latter
// starts TLS by AUTH, except on port 990.
func New(scheme string, cfg transfer.Config) transfer.Client { return client{scheme, cfg} }

type client struct {
	scheme string
	cfg    transfer.Config
}

// session is one control connection after login.
type session struct {
	transfer.Operating
	cfg  transfer.Config
	tls  *tls.Config // for control and data; nil: not encrypted
	conn *ftp.ServerConn

	ctx context.Context // of the present operation: the library dials without one

	mu   sync.Mutex
	info transfer.Info
	met1 bool // TLS details of the control connection are known
	met2 bool // those of a data connection too
}

// Open connects and logs in.
func (c client) Open(ctx context.Context) (transfer.Session, error) {
	s := &session{cfg: c.cfg}
	s.Operating = transfer.Operating{Wires: transfer.NewWires(c.cfg), Do: s.operations()}
	s.info = transfer.Info{Client: library, Library: true}
	if c.scheme == "ftps" {
		s.tls = c.cfg.TLS()
		known := s.tls.VerifyConnection
		s.tls.VerifyConnection = func(state tls.ConnectionState) error {
			if err := known(state); err != nil {
				return err
			}
			s.met(state)
			return nil
		}
	} else {
		s.info.Details = append(s.info.Details, "password and data in clear text")
	}
	watched, done := s.Greet(ctx)
	if err := done(s.open(watched)); err != nil {
		return nil, errors.Join(err, s.Wires.Close())
	}
	return s, nil
}

func (s *session) open(ctx context.Context) error {
	port := cmp.Or(s.cfg.Port, "21")
	greeting := &greeting{}
	options := []ftp.DialOption{
		ftp.DialWithDialFunc(s.dial(port == implicitPort)),
		ftp.DialWithDebugOutput(greeting),
	}
	if s.tls != nil && port != implicitPort {
		options = append(options, ftp.DialWithExplicitTLS(s.tls))
	} else if s.tls != nil {
		options = append(options, ftp.DialWithTLS(s.tls))
	}
	s.ctx = ctx
	conn, err := ftp.Dial(net.JoinHostPort(s.cfg.Host, port), options...)
	var reply *textproto.Error
	if s.tls != nil && errors.As(err, &reply) {
		return fault.Failf("use ftp:// for FTP without TLS: it sends password and data in clear text", "ftp: connecting: the server does not start TLS (%.200q)", reply.Error())
	}
	if err != nil {
		return fmt.Errorf("ftp: %w", unlike(err))
	}
	s.conn, s.info.Server = conn, greeting.end()
	// TLS begins with the first command; an error of it is no refused login.
	if err := conn.NoOp(); err != nil && !errors.As(err, &reply) {
		return fmt.Errorf("ftp: connecting: %w", err)
	}
	user, password, err := s.credentials()
	if err != nil {
		return err
	}
	if err := conn.Login(user, password); err != nil {
		return loginError(err, password, s.tls == nil)
	}
	return nil
}

// dial makes the library's connections: the control connection first.
func (s *session) dial(implicit bool) func(network, addr string) (net.Conn, error) {
	first := true
	return func(_, addr string) (net.Conn, error) {
		if first {
			first = false
			conn, err := s.Control(s.ctx, addr)
			if err != nil {
				return nil, err
			}
			if _, ok := conn.RemoteAddr().(*net.TCPAddr); !ok {
				return nil, errors.Join(errors.New("it is not a TCP connection"), conn.Close()) // the library assumes one
			}
			conn = &replies{Conn: conn}
			if s.tls == nil || !implicit {
				return conn, nil
			}
			return tls.Client(conn, s.tls), nil
		}
		conn, err := s.Data(s.ctx, addr)
		if err != nil || s.tls == nil {
			return conn, err
		}
		// The handshake waits for the first byte: servers begin it after the
		// command.
		return &sealed{Conn: tls.Client(transfer.Buffered(conn), s.tls), of: s}, nil
	}
}

// longest limits a server's answer to one command, with its TLS handshake, in
// bytes: the library would keep all of it in memory.
const longest = 64 << 10

// errEndless ends a session with a server that exceeds longest.
var errEndless = errors.New("the server's answer is longer than 64 KiB")

// replies is a control connection that limits answers.
type replies struct {
	net.Conn
	mu       sync.Mutex
	received int // bytes since the latest command
}

// Read counts the bytes. After an excess all reads fail.
func (r *replies) Read(b []byte) (int, error) {
	r.mu.Lock()
	over := r.received > longest
	r.mu.Unlock()
	if over {
		return 0, errEndless
	}
	n, err := r.Conn.Read(b)
	r.mu.Lock()
	r.received += n
	r.mu.Unlock()
	return n, err
}

// Write restarts the count.
func (r *replies) Write(b []byte) (int, error) {
	r.mu.Lock()
	if r.received <= longest {
		r.received = 0
	}
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// met stores TLS details: first of the control connection, then of the first
// data connection.
func (s *session) met(state tls.ConnectionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := "control"
	if s.met1 {
		what = "data"
	}
	if s.info.Fingerprint = transfer.Fingerprint(state.PeerCertificates[0].Raw); !s.met2 {
		s.info.Details = append(s.info.Details, what+": "+transfer.Describe(state))
	}
	s.met1, s.met2 = true, s.met1
}

// sealed is a data connection with TLS.
type sealed struct {
	*tls.Conn
	of   *session
	sent bool
}

// ReadFrom serves io.Copy: it uses blocks of the requested size.
func (c *sealed) ReadFrom(r io.Reader) (int64, error) {
	c.sent = true
	return transfer.Copy(struct{ io.Writer }{c.Conn}, r, c.of.cfg.Block)
}

// Close after an upload first waits until the server closes: unread session
// tickets would make the close a reset, which costs the server the last
// bytes.
func (c *sealed) Close() error {
	if c.sent && c.Conn.CloseWrite() == nil {
		c.Conn.SetReadDeadline(time.Now().Add(goodbye))
		io.Copy(io.Discard, io.LimitReader(c.Conn, 64<<10))
	}
	c.Conn.Close()
	return nil
}

// credentials returns those of the user, or of a guest (RFC 1635).
func (s *session) credentials() (user, password string, err error) {
	user = cmp.Or(s.cfg.User, "anonymous")
	if user == "anonymous" || user == "ftp" {
		return user, "thru@", nil
	}
	if s.cfg.Password == nil {
		return "", "", fault.Failf("give a password, or omit the user for an anonymous login", "ftp: logging in: %w: the server requires a password", transfer.ErrLogin)
	}
	if password, err = s.cfg.Password(); err != nil {
		return "", "", fmt.Errorf("ftp: asking for the password: %w", err)
	}
	if strings.ContainsAny(user+password, "\r\n") {
		return "", "", fault.Usagef("remove the line break: it ends an FTP command", "ftp: logging in: user or password contains a line break")
	}
	return user, password, nil
}

// loginError removes the password, which a server may repeat, from its text.
// clear means without TLS.
func loginError(err error, password string, clear bool) error {
	text := err.Error()
	if password != "" {
		text = strings.ReplaceAll(text, password, "...")
	}
	var broken net.Error
	if errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, errEndless) {
		return fmt.Errorf("ftp: logging in: %w", unlike(err))
	}
	hint := "check user and password"
	if clear && (strings.Contains(text, "encrypt") || strings.Contains(text, "TLS") || strings.Contains(text, "SSL")) {
		hint = "use ftps://: the server requires TLS"
	}
	return fault.Failf(hint, "ftp: logging in: %w (%.200q)", transfer.ErrLogin, text)
}

// greeting keeps the beginning of the server's first text only: the library
// passes it the commands too, including the password.
type greeting struct {
	text []byte
	over bool
}

// Write keeps some bytes.
func (g *greeting) Write(b []byte) (int, error) {
	if !g.over {
		g.text = append(g.text, b[:min(len(b), max(0, 4096-len(g.text)))]...)
	}
	return len(b), nil
}

// end returns the server's name by the greeting.
func (g *greeting) end() string {
	g.over = true
	return parseGreeting(string(g.text))
}

// parseGreeting parses the last line of reply 220 (RFC 959, 4.2).
func parseGreeting(greeting string) string {
	for line := range strings.Lines(greeting) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "220 "); ok {
			text = strings.Map(func(r rune) rune {
				if r < ' ' || r == 0x7f {
					return -1
				}
				return r
			}, strings.ToValidUTF8(text, "?"))
			return strings.Trim(text[:min(len(text), 200)], "() ")
		}
	}
	return ""
}
