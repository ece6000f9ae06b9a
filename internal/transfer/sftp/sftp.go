// Package sftp moves files by the SSH file transfer protocol, version 3
// (draft-ietf-secsh-filexfer-02), through the libraries pkg/sftp and x/crypto/ssh.
package sftp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// library is the library of the protocol, as in go.mod.
const library = "pkg/sftp v1.13.12"

// inFlight is how many requests are in flight at once, as in OpenSSH's sftp
// (-R); x/crypto/ssh allows 2 MiB in flight, which is as many of 32 KiB.
const (
	inFlight = 64
	window   = 2 << 20 // of its channel, in bytes
)

// largestBlock is the limit of OpenSSH's server for one request
// (SFTP_MAX_MSG_LENGTH, minus its header).
const largestBlock = 255 << 10

// New returns a client.
func New(cfg transfer.Config) transfer.Client { return client{cfg} }

type client struct{ cfg transfer.Config }

// session is one connection after login, with one SFTP channel.
type session struct {
	transfer.Operating
	cfg  transfer.Config
	ssh  *ssh.Client
	sftp *sftp.Client
	info transfer.Info
}

// Open connects, verifies the server's key, and logs in.
func (c client) Open(ctx context.Context) (transfer.Session, error) {
	s := &session{cfg: c.cfg}
	s.Operating = transfer.Operating{Wires: transfer.NewWires(c.cfg), Do: s.operations()}
	s.info = transfer.Info{Client: library, Library: true}
	watched, done := s.Greet(ctx)
	if err := done(s.open(watched)); err != nil {
		return nil, errors.Join(err, s.closeAll())
	}
	return s, nil
}

func (s *session) open(ctx context.Context) error {
	if s.cfg.Block > largestBlock {
		return fault.Usagef("lower the block to at most 255 KiB, the limit of servers", "sftp: a block of %d bytes", s.cfg.Block)
	}
	addr := net.JoinHostPort(s.cfg.Host, cmp.Or(s.cfg.Port, "22"))
	trust, err := s.trust(addr)
	if err != nil {
		return err
	}
	login := &login{cfg: s.cfg, ctx: ctx}
	defer login.close()
	conn, err := s.Control(ctx, addr)
	if err != nil {
		return err
	}
	config := &ssh.ClientConfig{
		User: s.cfg.User, Auth: login.methods(), HostKeyCallback: trust.check, HostKeyAlgorithms: trust.algorithms(addr),
	}
	config.User = cmp.Or(config.User, os.Getenv("USER"))
	secure, channels, requests, err := ssh.NewClientConn(conn, addr, config)
	if err != nil {
		return login.explain(err)
	}
	s.ssh = ssh.NewClient(secure, channels, requests)
	s.info.Server = printable(string(secure.ServerVersion()))
	s.info.Fingerprint = trust.fingerprint
	s.info.Details = details(secure)
	return s.subsystem()
}

// subsystem opens the SFTP channel.
func (s *session) subsystem() error {
	block := cmp.Or(s.cfg.Block, 32<<10)
	client, err := sftp.NewClient(s.ssh,
		sftp.MaxPacketUnchecked(block), sftp.MaxConcurrentRequestsPerFile(inFlight),
		sftp.UseConcurrentReads(true), sftp.UseConcurrentWrites(true), sftp.UseFstat(true))
	if err != nil {
		return fault.Failf("check that the server has `Subsystem sftp` in its sshd_config", "sftp: opening its channel: %w", err)
	}
	s.sftp = client
	s.info.InFlight = min(int64(inFlight*block), window)
	s.info.Details = append(s.info.Details, fmt.Sprintf("%d requests of %d KiB in flight, in a window of 2 MiB", inFlight, block>>10))
	return nil
}

// details returns what was negotiated; the cipher matters most for the rate
// on a fast path.
func details(conn ssh.Conn) []string {
	known, ok := conn.(ssh.AlgorithmsConnMetadata)
	if !ok {
		return nil
	}
	a := known.Algorithms()
	say := func(direction string, d ssh.DirectionAlgorithms) string {
		if d.MAC == "" || strings.Contains(d.Cipher, "gcm") || strings.Contains(d.Cipher, "poly1305") {
			return direction + " " + d.Cipher
		}
		return direction + " " + d.Cipher + " with " + d.MAC
	}
	return []string{
		"key exchange " + a.KeyExchange, "host key " + a.HostKey,
		say("cipher up", a.Write), say("cipher down", a.Read),
	}
}

// printable returns a server's text without terminal control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), 255)], "?"))
}

// Info returns what is known since Open.
func (s *session) Info() transfer.Info {
	info := s.info
	info.Details = slices.Clone(info.Details)
	return info
}

// Close ends the channel and the connection.
func (s *session) Close() error {
	err := s.closeAll()
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil // it had ended before
	}
	return err
}

// closeAll closes the connection first: that ends its goroutines, without
// waiting for the remote end.
func (s *session) closeAll() error {
	err := s.Wires.Close()
	if s.ssh != nil {
		s.ssh.Close()
		s.ssh.Wait()
	}
	if s.sftp != nil {
		s.sftp.Close()
		waitFor(s.sftp)
	}
	return err
}

// waitFor waits until the library's reader has ended, which happens with the
// connection.
func waitFor(c *sftp.Client) {
	ended := make(chan struct{})
	go func() { defer close(ended); c.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
}
