// Package loopback has a server of each file protocol on this machine: it serves
// memory, over loopback, as fast as it can. What a client reaches there is the
// client's own ceiling: no path and no disk takes part.
//
// Most are in this process, made for the clients of package transfer and no others.
// Where there is no library for one, the system's program serves a folder in memory.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"

	"thru/internal/transfer"
	"thru/internal/transfer/servers"
)

// ErrNone says that there is no server of a protocol here.
var ErrNone = errors.New("there is no server of it on this machine to measure its client against")

// Options are what makes a server like the one that is the client's real one.
type Options struct {
	// Fill makes what a file holds from an offset on, for a client that compares it;
	// nil leaves whatever the memory holds. Servers of programs do not ask for it.
	Fill func(b []byte, offset int64)
	// Agreed are the details of a session with the real server (transfer.Info): the
	// cipher and the signatures are to be the same.
	Agreed []string
}

// Server is one that runs.
type Server struct {
	Is   string // in words: "a server in this process", "smbd on this machine"
	Most int64  // bytes that it has room for, of all clients together; 0: as many as one likes

	host, port     string
	user, password string
	pin            string                    // fingerprint of its certificate or host key
	root           string                    // what its paths begin with
	offer          func(bytes int64) error   // makes the file that Path names; nil: it is there
	refused        func(address string) bool // addresses that its client must not dial; nil: none
	close          func() error
}

// Serve starts the server of a protocol, one of package clients. ErrNone says that
// there is none here, with the reason. It must be closed.
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

// Config is that of the real server's client, led to this one.
func (s *Server) Config(real transfer.Config) transfer.Config {
	c := real
	c.Host, c.Port, c.Path, c.Pin, c.Insecure = s.host, s.port, s.root+"none", s.pin, false
	c.User, c.Password, c.Key = s.user, func() (string, error) { return s.password, nil }, ""
	if real.Dial != nil {
		c.Dial = s.keep(real.Dial)
	}
	return c
}

// keep has a dialler refuse what is not this server's, where the client also asks others.
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

// modest is a context that asks for nothing by its values: a port below 1024
// (transfer.LowPort) would be one less, for a minute, for the real server.
type modest struct{ context.Context }

// Value is none.
func (modest) Value(any) any { return nil }

// dialer makes a connection, as net.Dialer.DialContext does.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Path is that of a file of so many bytes, which can be downloaded.
func (s *Server) Path(bytes int64) (string, error) {
	if s.offer != nil {
		if err := s.offer(bytes); err != nil {
			return "", fmt.Errorf("loopback: making a file to download: %w", err)
		}
	}
	return s.root + fmt.Sprint(bytes), nil
}

// Upload is the path of the file that a client may make.
func (s *Server) Upload(client int) string { return fmt.Sprintf("%sup.%d", s.root, client+1) }

// Close ends it with all its connections, and waits until nothing of it is left.
func (s *Server) Close() error { return s.close() }
