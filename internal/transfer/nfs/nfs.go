// Package nfs moves files of an NFS server by version 3 over TCP (RFC 1813), in
// user space: it needs no mount, and keeps several READ or WRITE calls in flight.
//
// The calls are made here, not by a library: those there are for Go dial by
// themselves, wait for each call, and do not end with a context.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/pump"
)

const (
	// linger bounds what a session's end may take.
	linger = 700 * time.Millisecond
	// largest is the most that one call moves: NFSSVC_MAXBLKSIZE of Linux for long.
	largest = 1 << 20
)

// client opens sessions of one server.
type client struct{ cfg transfer.Config }

// New returns a client of cfg.Host. cfg.User is UID or UID.GID, which the server
// believes (AUTH_SYS, RFC 5531 appendix A); empty is who runs this process. It asks
// Dial for ports below 1024 (transfer.LowPort), since most servers do.
func New(cfg transfer.Config) transfer.Client { return &client{cfg} }

// session is a connection with the folders that were mounted.
type session struct {
	cfg   transfer.Config
	cred  []byte
	wires *transfer.Wires
	ports ports
	rpc   *caller
	shape pump.Shape
	info  transfer.Info

	mounts  []mounted
	folders map[string][]byte // handles by path
}

// Open connects and mounts the folder of cfg.Path.
func (c *client) Open(ctx context.Context) (_ transfer.Session, err error) {
	if err := transfer.CheckName(c.cfg.Path); err != nil {
		return nil, err
	}
	uid, gid, err := identity(c.cfg.User)
	if err != nil {
		return nil, err
	}
	s := &session{cfg: c.cfg, cred: credential(uid, gid), wires: transfer.NewWires(c.cfg), folders: map[string][]byte{}}
	watched, explain := s.wires.Greet(ctx)
	if err = explain(s.open(watched, uid, gid)); err != nil {
		s.end()
		return nil, fmt.Errorf("nfs: opening %s: %w", c.cfg.Host, err)
	}
	return s, nil
}

// identity is who the server is told that it is.
func identity(user string) (uid, gid uint32, err error) {
	if user == "" {
		return uint32(max(0, os.Getuid())), uint32(max(0, os.Getgid())), nil // -1 where there are none
	}
	first, second, found := strings.Cut(user, ".") // a colon begins a password in a URL
	if !found {
		second = first
	}
	u, err := strconv.ParseUint(first, 10, 32)
	g, err2 := strconv.ParseUint(second, 10, 32)
	if errors.Join(err, err2) != nil {
		return 0, 0, fault.Usagef("write nfs://UID@HOST/... or nfs://UID.GID@HOST/...", "nfs: the user %q is no number", user)
	}
	return uint32(u), uint32(g), nil
}

// credential is AUTH_SYS (RFC 5531, appendix A).
func credential(uid, gid uint32) []byte {
	body := appendUint32(appendOpaque(appendUint32(nil, 0), "thru"), uid, gid, 0)
	return appendOpaque(appendUint32(nil, authSys), body)
}

func (s *session) open(ctx context.Context, uid, gid uint32) (err error) {
	if s.ports, err = s.findPorts(ctx); err != nil {
		return err
	}
	conn, err := s.wires.Control(transfer.LowPort(ctx), net.JoinHostPort(s.cfg.Host, s.ports.nfs))
	if err != nil {
		return err
	}
	s.rpc = newCaller(conn, s.cred)
	root, err := s.root(ctx, parent(s.cfg.Path))
	if err != nil {
		return err
	}
	most, err := s.fsinfo(ctx, root.handle)
	if err != nil {
		return err
	}
	s.describe(conn, root, most, uid, gid)
	return nil
}

func (s *session) describe(conn net.Conn, root mounted, most limits, uid, gid uint32) {
	block := int(min(most.reads, most.writes, largest))
	if s.cfg.Block > 0 {
		block = min(block, s.cfg.Block)
	}
	s.shape = pump.Fit(block)
	from := "a port above 1023"
	if a, ok := conn.LocalAddr().(*net.TCPAddr); ok && a.Port < 1024 {
		from = "a port below 1024"
	}
	s.info = transfer.Info{Client: "thru's own NFSv3 client", Library: true, Block: s.shape.Block, InFlight: s.shape.Most(), Details: []string{
		"NFS 3 over TCP, /" + root.dir + " mounted in user space",
		fmt.Sprintf("as user %d, group %d (AUTH_SYS), from %s", uid, gid, from),
		fmt.Sprintf("the server takes reads of %d bytes and writes of %d", most.reads, most.writes),
		fmt.Sprintf("%d calls of %d bytes in flight; writes unstable, committed at the end", s.shape.Depth, s.shape.Block),
	}}
}

// Info is what was agreed on. NFS has no words for what a server is.
func (s *session) Info() transfer.Info { return s.info }

// Sockets is the one connection.
func (s *session) Sockets() []net.Conn { return s.wires.Sockets() }

// Close has the server forget the mounts, and closes the connection.
func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), linger)
	defer cancel()
	watched, explain := s.wires.Guard(ctx)
	s.unmount(watched)
	_ = explain(nil)
	return s.end()
}

func (s *session) end() error {
	err := s.wires.Close()
	if s.rpc != nil {
		_ = s.rpc.close() // closed above; waits for its receiver
	}
	return err
}

// root is the mounted folder that dir lies in, mounted now if none was.
func (s *session) root(ctx context.Context, dir string) (mounted, error) {
	for _, m := range s.mounts {
		if m.dir == "" || dir == m.dir || strings.HasPrefix(dir, m.dir+"/") {
			return m, nil
		}
	}
	m, err := s.mount(ctx, dir)
	if err == nil {
		s.mounts = append(s.mounts, m)
		s.folders[m.dir] = m.handle
	}
	return m, err
}

// folder is the handle of a folder.
func (s *session) folder(ctx context.Context, dir string) ([]byte, error) {
	if handle := s.folders[dir]; handle != nil {
		return handle, nil
	}
	root, err := s.root(ctx, dir)
	if err != nil || root.dir == dir {
		return root.handle, err
	}
	above, err := s.folder(ctx, parent(dir))
	if err != nil {
		return nil, err
	}
	n, err := s.lookup(ctx, above, path.Base(dir))
	if err != nil {
		return nil, err
	}
	s.folders[dir] = n.handle
	return n.handle, nil
}

// file finds a regular file.
func (s *session) file(ctx context.Context, p string) (node, error) {
	const regular = 1
	dir, err := s.folder(ctx, parent(p))
	if err != nil {
		return node{}, refined(err, transfer.ErrDenied)
	}
	n, err := s.lookup(ctx, dir, path.Base(p))
	switch {
	case err != nil:
		return node{}, refined(err, transfer.ErrDenied)
	case n.kind != regular:
		return node{}, fmt.Errorf("%w: it is a folder, a link or a device", transfer.ErrMissing)
	case n.size > 1<<62:
		return node{}, fmt.Errorf("the server says that it has %d bytes", n.size)
	}
	return n, nil
}

// guarded does one operation on a path. lasting outlives ctx by what the wires
// leave for cleaning up.
func (s *session) guarded(ctx context.Context, doing, p string, do func(watched, lasting context.Context) error) error {
	if err := transfer.CheckName(p); err != nil {
		return err
	}
	watched, explain := s.wires.Guard(ctx)
	if err := explain(do(watched, context.WithoutCancel(ctx))); err != nil {
		return fmt.Errorf("nfs: %s %q: %w", doing, p, err)
	}
	return nil
}

// Size is the length of a file.
func (s *session) Size(ctx context.Context, p string) (size int64, err error) {
	err = s.guarded(ctx, "size of", p, func(ctx, _ context.Context) error {
		n, err := s.file(ctx, p)
		size = int64(n.size)
		return err
	})
	return size, err
}

// Get reads a file with several calls in flight.
func (s *session) Get(ctx context.Context, p string, w io.Writer) (done int64, err error) {
	err = s.guarded(ctx, "getting", p, func(ctx, _ context.Context) error {
		n, err := s.file(ctx, p)
		if err != nil {
			return err
		}
		done, err = pump.Read(ctx, w, int64(n.size), s.shape, func(ctx context.Context, b []byte, off int64) (int, error) {
			return s.read(ctx, n.handle, b, off)
		})
		return refined(err, transfer.ErrDenied)
	})
	return done, err
}

// Put writes a file under another name, which it gives up when all is committed.
func (s *session) Put(ctx context.Context, p string, r io.Reader, size int64, overwrite bool) error {
	return s.guarded(ctx, "putting", p, func(watched, lasting context.Context) error {
		dir, err := s.folder(watched, parent(p))
		if err == nil {
			err = s.free(watched, p, overwrite)
		}
		if err != nil {
			return refined(err, transfer.ErrReadOnly)
		}
		temp := path.Base(transfer.TempName(p))
		handle, err := s.create(watched, dir, temp)
		if err == nil {
			err = s.fill(watched, handle, r, size)
		}
		if err == nil {
			err = s.free(watched, p, overwrite)
		}
		if err == nil {
			err = s.rename(watched, dir, temp, path.Base(p))
		}
		if err == nil {
			return nil
		}
		gone := status(2)
		if left := s.remove(lasting, dir, temp); left != nil && !errors.Is(left, gone) && handle != nil {
			err = &transfer.Left{Path: path.Join(path.Dir(p), temp), Cause: err, Err: left}
		}
		return refined(err, transfer.ErrReadOnly)
	})
}

// fill writes all and has it committed.
func (s *session) fill(ctx context.Context, handle []byte, r io.Reader, size int64) error {
	var boot boots
	err := pump.Write(ctx, r, size, s.shape, func(ctx context.Context, b []byte, off int64) (int, error) {
		n, v, err := s.write(ctx, handle, b, off)
		if err == nil {
			err = boot.same(v)
		}
		return n, err
	})
	if err != nil || size == 0 {
		return err
	}
	v, err := s.commit(ctx, handle)
	if err != nil {
		return err
	}
	return boot.same(v)
}

// free tells whether the name may be written to.
func (s *session) free(ctx context.Context, p string, overwrite bool) error {
	const folder = 2
	n, err := s.lookup(ctx, s.folders[parent(p)], path.Base(p))
	switch {
	case errors.Is(err, status(2)):
		return nil
	case err != nil:
		return err
	case !overwrite || n.kind == folder:
		return transfer.ErrExists
	}
	return nil
}

// Remove removes a file.
func (s *session) Remove(ctx context.Context, p string) error {
	return s.guarded(ctx, "removing", p, func(ctx, _ context.Context) error {
		dir, err := s.folder(ctx, parent(p))
		if err == nil {
			err = s.remove(ctx, dir, path.Base(p))
		}
		return refined(err, transfer.ErrReadOnly)
	})
}
