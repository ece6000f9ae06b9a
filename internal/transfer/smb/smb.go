// Package smb moves files of an SMB2 or SMB3 server ([MS-SMB2]). The first
// name of a path is the share. It refuses SMB1, which has one request in
// flight, and neither secure signatures nor encryption.
package smb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	smb2 "github.com/cloudsoda/go-smb2"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/pump"
)

const (
	port    = "445"
	library = "github.com/cloudsoda/go-smb2"

	// credits limits the requests in flight, at 64 KiB each ([MS-SMB2]
	// 3.2.4.1.5).
	credits = 512
	// largest is the limit of Windows for one request, whatever it announces.
	largest = 1 << 20
	// linger is the time after the end of an operation to close and remove an
	// incomplete file.
	linger = 700 * time.Millisecond
)

// client opens sessions of one server.
type client struct{ cfg transfer.Config }

// New returns a client of cfg.Host. cfg.User may be DOMAIN;user or
// DOMAIN\user; empty means a guest.
func New(cfg transfer.Config) transfer.Client { return &client{cfg} }

// Open connects, logs in and connects to the share that cfg.Path begins with.
func (c *client) Open(ctx context.Context) (_ transfer.Session, err error) {
	share, _, _ := strings.Cut(c.cfg.Path, "/")
	if err := checkName(share); err != nil {
		return nil, err
	}
	initiator, err := c.initiator()
	if err != nil {
		return nil, err
	}
	s := &session{cfg: c.cfg, share: share}
	s.Operating = transfer.Operating{Wires: transfer.NewWires(c.cfg), Do: s.operations()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Wires.Close())
		}
	}()
	watched, explain := s.Greet(ctx)
	err = explain(s.open(watched, initiator))
	if err != nil {
		return nil, fmt.Errorf("smb: opening %s of %s: %w", share, c.cfg.Host, err)
	}
	return s, nil
}

// initiator asks for the password, where there is a user.
func (c *client) initiator() (*initiator, error) {
	domain, user, found := strings.Cut(strings.ReplaceAll(c.cfg.User, ";", `\`), `\`)
	if !found {
		domain, user = "", domain
	}
	i := &initiator{NTLMInitiator: smb2.NTLMInitiator{User: user, Domain: domain}}
	switch {
	case user == "":
		i.User = "guest"
	case c.cfg.Password != nil:
		password, err := c.cfg.Password()
		if err != nil {
			return nil, fmt.Errorf("smb: reading the password: %w", err)
		}
		i.Password = password
	}
	return i, nil
}

// session is a connection to one share.
type session struct {
	transfer.Operating
	cfg   transfer.Config
	share string
	smb   *smb2.Session
	tree  *smb2.Share
	shape pump.Shape
	info  transfer.Info
	over  atomic.Bool // an operation was cut off
}

// open implements Open. On an error the caller closes the wires.
func (s *session) open(ctx context.Context, i *initiator) error {
	address := net.JoinHostPort(s.cfg.Host, cmp.Or(s.cfg.Port, port))
	conn, err := s.Control(ctx, address)
	if err != nil {
		return err
	}
	seen := &tap{Conn: conn}
	dialer := &smb2.Dialer{MaxCreditBalance: credits, Initiator: i}
	s.smb, err = dialer.DialConn(ctx, seen, s.cfg.Host)
	if err != nil {
		if _, spoken := seen.negotiated(); !spoken && s.onlyOld(ctx, address) {
			return fault.Failf("enable SMB2 or SMB3 at the server: in Samba `server max protocol = SMB3`", "%w", ErrOld)
		}
		return refined(err, transfer.ErrLogin)
	}
	tree, err := s.smb.WithContext(ctx).Mount(s.share)
	if err != nil {
		return refined(err, transfer.ErrLogin)
	}
	s.tree = tree
	s.describe(seen, i)
	return nil
}

// describe sets the sizes, and stores what was negotiated.
func (s *session) describe(seen *tap, i *initiator) {
	n, _ := seen.negotiated()
	encrypted := seen.stop()
	s.shape = pump.Fit(n.block(s.cfg.Block), s.RTT())
	s.info = transfer.Info{
		Server: i.server(), Client: named(), Library: true, Block: s.shape.Block, InFlight: s.shape.Most(),
		Details: append(n.describe(encrypted),
			fmt.Sprintf("%d requests of %d bytes in flight, %d credits requested", s.shape.Depth, s.shape.Block, credits)),
	}
}

// named returns the library and its version in this program.
func named() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == library {
				return "cloudsoda/go-smb2 " + module.Version
			}
		}
	}
	return "cloudsoda/go-smb2"
}

// Info returns what was negotiated.
func (s *session) Info() transfer.Info { return s.info }

// operations returns the operations of a session.
func (s *session) operations() transfer.Operations {
	return transfer.Operations{
		Protocol: "smb", Check: checkName, Get: s.get, Put: s.put,
		Size: func(ctx context.Context, p string) (n int64, err error) {
			tree, name, done, err := s.work(ctx, p)
			if err == nil {
				defer done()
				n, err = size(tree, name)
			}
			return n, err
		},
		Remove: func(ctx context.Context, p string) error {
			tree, name, done, err := s.work(ctx, p)
			if err == nil {
				defer done()
				err = refined(tree.Remove(name), transfer.ErrReadOnly)
			}
			return err
		},
	}
}

// work prepares one operation on a path: it returns the share, whose context
// ends a little after ctx, so that an incomplete file can still be closed and
// removed, and the name on the share.
func (s *session) work(ctx context.Context, p string) (tree *smb2.Share, name string, done func(), err error) {
	share, name, _ := strings.Cut(p, "/")
	if !strings.EqualFold(share, s.share) || name == "" {
		return nil, "", nil, fmt.Errorf("%w: it is not a file of the share %s", transfer.ErrMissing, s.share)
	}
	persistent, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		s.over.Store(true)
		time.AfterFunc(linger, cancel)
	})
	return s.tree.WithContext(persistent), name, func() {
		stop()
		cancel() // also the context that the library's finalizers would wait for
	}, nil
}

func size(tree *smb2.Share, name string) (int64, error) {
	facts, err := tree.Stat(name)
	switch {
	case err != nil:
		return 0, refined(err, transfer.ErrDenied)
	case facts.IsDir():
		return 0, fmt.Errorf("%w: it is a folder", transfer.ErrMissing)
	}
	return facts.Size(), transfer.CheckSize(facts.Size())
}

// get reads a file with several requests in flight.
func (s *session) get(ctx context.Context, p string, w io.Writer) (int64, error) {
	tree, name, done, err := s.work(ctx, p)
	if err != nil {
		return 0, err
	}
	defer done()
	size, err := size(tree, name)
	if err != nil {
		return 0, err
	}
	file, err := tree.Open(name)
	if err != nil {
		return 0, refined(err, transfer.ErrDenied)
	}
	n, err := pump.Read(ctx, w, size, s.shape, func(_ context.Context, b []byte, off int64) (int, error) {
		n, err := file.ReadAt(b, off)
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: the file ends at %d", transfer.ErrShort, off+int64(n))
		}
		return n, err
	})
	return n, refined(errors.Join(err, file.Close()), transfer.ErrDenied)
}

// put writes a file under a temporary name, and renames it when it is
// complete.
func (s *session) put(ctx context.Context, p string, r io.Reader, size int64, overwrite bool) error {
	tree, name, done, err := s.work(ctx, p)
	if err != nil {
		return err
	}
	defer done()
	if err := free(tree, name, overwrite); err != nil {
		return err
	}
	temp := transfer.TempName(name)
	file, err := tree.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return refined(err, transfer.ErrReadOnly)
	}
	err = pump.Write(ctx, r, size, s.shape, func(_ context.Context, b []byte, off int64) (int, error) { return file.WriteAt(b, off) })
	err = errors.Join(err, file.Close())
	if err == nil {
		err = free(tree, name, overwrite)
	}
	if err == nil {
		err = tree.Rename(temp, name)
	}
	if err == nil {
		return nil
	}
	if left := tree.Remove(temp); left != nil {
		return &transfer.Left{Path: s.share + "/" + temp, Cause: refined(err, transfer.ErrReadOnly), Err: left}
	}
	return refined(err, transfer.ErrReadOnly)
}

// free reports whether the name may be written to.
func free(tree *smb2.Share, name string, overwrite bool) error {
	facts, err := tree.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return refined(err, transfer.ErrDenied)
	case facts.IsDir():
		return fmt.Errorf("%w: a folder", transfer.ErrExists)
	case !overwrite:
		return transfer.ErrExists
	}
	return nil
}

// Close disconnects from the share, logs off and closes the connection. After
// an operation that was cut off it sends nothing: the library may still be
// sending from its only buffer, to which it would write the next request.
func (s *session) Close() error {
	if s.over.Load() {
		return s.Wires.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), linger)
	defer cancel()
	_ = s.tree.WithContext(ctx).Umount() // the end of the connection does the same
	_ = s.smb.WithContext(ctx).Logoff()
	return s.Wires.Close()
}

// checkName refuses what is no name, and what Windows treats as a separator,
// a stream or a pattern.
func checkName(p string) error {
	if err := transfer.CheckName(p); err != nil {
		return err
	}
	if i := strings.IndexAny(p, `\:*?"<>|`); i >= 0 {
		return fault.Usagef("give it another name", "smb: %q: %w: %q has a special meaning in SMB", p, transfer.ErrName, p[i])
	}
	return nil
}
