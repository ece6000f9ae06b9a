// Package transfer moves whole files as applications do: real clients of real
// protocols, against existing servers. Each protocol is a Client of its own;
// none knows another, and none judges its result.
//
// # One transfer
//
//  1. `thru transfer`: package session has the clients (package clients), control/transfer.go the order: login, the network (an ordinary test of
//     one direction), the disks (as `thru disk`), the client alone, then the transfer over memory and over the disk. thru:// needs an agent at the
//     server: agent/file.go opens a port for each file (own.Door), and agent/target.go keeps complete files.
//  2. Package runner runs all clients of a run at once, counts and compares the bytes (stream.go: a keyed stream), and reads the sockets of its
//     Dialer. A program that moves the bytes itself is timed from its call (outside.go); its files are in a locked private folder
//     (stage), so that the next run removes what a killed one has left.
//  3. Meanwhile control/observe.go tells the agent at the server about these connections. The agent reads its end of them
//     (agent/observe.go, sock.Diag) and their processes.
//  4. The client's own ceiling is measured against a server of its protocol on this machine (session/ceiling.go, loopback): in this
//     process, or the system's program over a folder in memory, with the cipher and the block sizes of the real server.
//  5. cause.Transfer names the layer that limits; a stored result is judged again. The data connections of the sending end are
//     an ordinary flow, which the rules of any flow judge (cause/transfer/tcp.go).
//
// For rsync thru runs the system's program: nobody copies with a library of it.
package transfer

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"time"
)

// Errors that callers distinguish.
var (
	ErrLogin    = errors.New("the server refused the login")
	ErrMissing  = errors.New("no such file or share")
	ErrReadOnly = errors.New("the server does not allow this user to write there")
	ErrFull     = errors.New("not enough free space")
	ErrExists   = errors.New("a file or folder with that name already exists")
	ErrShort    = errors.New("fewer bytes arrived than the server announced")
	ErrLong     = errors.New("more bytes arrived than the server announced")
	ErrEndless  = errors.New("the server keeps sending before a file was requested")
	ErrUnknown  = errors.New("the server's certificate or host key is not known")
	ErrDenied   = errors.New("the server does not allow this user to read it")
	ErrName     = errors.New("the file name is not allowed")
	ErrSilent   = errors.New("no data in either direction until the timeout")
	ErrSource   = errors.New("the data to send ended early")
)

// Config configures a client of one URL. Secrets never appear in an error.
type Config struct {
	Host, Port string // port: empty for the protocol's default
	Path       string // as in the URL, decoded, without a leading slash where the protocol has none
	User       string
	Password   func() (string, error) // called once, where the server asks for one
	Pin        string                 // SHA-256 of the only certificate or host key to accept; empty: the system's trust
	Insecure   bool                   // accept any certificate or host key
	Roots      *x509.CertPool         // trusted instead of the system's certificates, where not nil
	KnownHosts string                 // SSH's file of host keys; empty: the user's
	Key        string                 // file of a private SSH key, tried before the agent's
	Buffer     int                    // SO_SNDBUF and SO_RCVBUF, set before the connection is made; 0 leaves the defaults; a custom Dial sets them itself
	Block      int                    // bytes per read and write of the protocol; 0: the protocol's default
	Dial       func(ctx context.Context, network, addr string) (net.Conn, error)
	Timeout    time.Duration // longest time without any byte in either direction; 0 is DefaultTimeout
}

// Info describes a server and the session with it.
type Info struct {
	Server      string   // product and version by the server
	Client      string   // library or program with version
	Fingerprint string   // of certificate or host key: "sha256:..."
	Details     []string // what was negotiated: cipher, dialect, block sizes
	Library     bool     // its bytes pass through this process
	InFlight    int64    // most bytes of requests in flight; 0: it streams, or they are not known
	Block       int      // negotiated bytes per read and write; 0: the protocol has none, or they are Config.Block
}

// Client moves files of one server. It is used by one goroutine at a time.
type Client interface {
	// Open connects and logs in. The session must be closed.
	Open(ctx context.Context) (Session, error)
}

// Session is a connection after login. A cancelled or silent one has ended:
// its methods fail from then on, and only Close remains.
type Session interface {
	Info() Info
	// Size returns the size of a file; ErrMissing where there is none.
	Size(ctx context.Context, path string) (int64, error)
	// Get writes a file's bytes to w and returns their number.
	Get(ctx context.Context, path string, w io.Writer) (int64, error)
	// Put creates a file from size bytes of r. Without overwrite an existing
	// file is ErrExists. Put removes an incomplete file; where it cannot, the
	// error is Left.
	Put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error
	// Remove removes a file that Put created.
	Remove(ctx context.Context, path string) error
	// Sockets returns the open connections that carry data, where the
	// protocol exposes them: for TCP_INFO. It may be called during any other
	// method.
	Sockets() []net.Conn
	Close() error
}

// CheckSize refuses an impossible file size of a server.
func CheckSize(bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("transfer: the server reports a size of %d bytes", bytes)
	}
	return nil
}

// Left means that an upload failed, and that its session could no longer
// remove the incomplete file. Another session may.
type Left struct {
	Path  string // for Remove
	Cause error  // why the upload failed
	Err   error  // why it could not be removed
}

// Error returns both errors.
func (l *Left) Error() string {
	return fmt.Sprintf("%v; its session could not remove %s: %v", l.Cause, path.Base(l.Path), l.Err)
}

// Unwrap returns both.
func (l *Left) Unwrap() []error { return []error{l.Cause, l.Err} }
