// Package loopback runs a server of each file protocol on this machine: it
// serves from memory, over loopback, at full speed. A client's rate against
// it is the client's own ceiling: no network path and no disk takes part.
//
// Most servers run in this process, made only for the clients of package
// transfer. Where there is no library, the system's server program serves a
// folder in memory.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"

	"thru/internal/transfer"
	"thru/internal/transfer/servers"
)

// ErrNone means that this machine has no server of a protocol.
var ErrNone = errors.New("this machine has no such server to measure the client against")

// Options make a server similar to the client's real one.
type Options struct {
	// Fill returns the contents of a file from an offset, for a client that
	// compares it; nil leaves the memory as it is. Server programs do not
	// call it.
	Fill func(b []byte, offset int64)
	// Agreed has the details of a session with the real server
	// (transfer.Info): cipher and signatures are to be the same.
	Agreed []string
}

// Server is a running server.
type Server struct {
	Is   string // in words: "a server in this process", "smbd on this machine"
	Most int64  // bytes that it has room for, for all clients together; 0: no limit

	host, port     string
	user, password string
	pin            string                    // fingerprint of its certificate or host key
	root           string                    // prefix of its paths
	offer          func(bytes int64) error   // creates the file of Path; nil: it exists
	refused        func(address string) bool // addresses that its client must not dial; nil: none
	close          func() error
}

// Serve starts the server of a protocol of package clients. ErrNone, with the
// reason, means that there is none here. The server must be closed.
func Serve(ctx context.Context, protocol string, o Options) (*Server, error) {
	var s *Server
	var err error
	switch protocol {
	case "http", "https":
		s, err = serveHTTP(o, protocol == "https")
	case "ftp", "ftps":
		s, err = serveFTP(o, protocol == "ftps")
	case "sftp":
		s, err = serveSFTP(o)
	case "nfs", "nfs4":
		s, err = serveNFS(o, protocol == "nfs4")
	case "rsync":
		s, err = serveProgram(ctx, func(dir, port string) (servers.Server, error) { return servers.Rsync(dir, port, "") })
	case "smb":
		s, err = serveProgram(ctx, readySamba(o.Agreed))
	default:
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("loopback: serving %s: %w", protocol, err)
	}
	return s, nil
}

// Config returns the configuration of the real server's client, changed to
// this server.
func (s *Server) Config(real transfer.Config) transfer.Config {
	c := real
	c.Host, c.Port, c.Path, c.Pin, c.Insecure = s.host, s.port, s.root+"none", s.pin, false
	c.User, c.Password, c.Key = s.user, func() (string, error) { return s.password, nil }, ""
	if real.Dial != nil {
		c.Dial = s.keep(real.Dial)
	}
	return c
}

// keep makes a dialler refuse other addresses, for clients that also dial
// those.
func (s *Server) keep(dial dialer) dialer {
	if s.refused == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if s.refused(address) {
			return nil, fmt.Errorf("loopback: %s is not this server's", address)
		}
		return dial(modest{ctx}, network, address)
	}
}

// modest is a context without values: a port below 1024 (transfer.LowPort)
// would be missing for the real server for a minute.
type modest struct{ context.Context }

// Value returns nil.
func (modest) Value(any) any { return nil }

// dialer makes a connection like net.Dialer.DialContext.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Path returns the path of a file of so many bytes to download.
func (s *Server) Path(bytes int64) (string, error) {
	if s.offer != nil {
		if err := s.offer(bytes); err != nil {
			return "", fmt.Errorf("loopback: making a file to download: %w", err)
		}
	}
	return s.root + fmt.Sprint(bytes), nil
}

// Upload returns the path of the file that a client may create.
func (s *Server) Upload(client int) string { return fmt.Sprintf("%sup.%d", s.root, client+1) }

// Close stops the server with all its connections, and waits until nothing is
// left.
func (s *Server) Close() error { return s.close() }
