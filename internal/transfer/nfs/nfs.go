// Package nfs moves files of an NFS server over TCP, by version 3 (RFC 1813)
// or 4.1 (RFC 8881), in user space: it needs no mount, and keeps several READ
// or WRITE calls in flight.
//
// It makes the calls itself: the Go libraries dial by themselves, wait for
// each call, do not end with a context, and support version 3 only. XDR takes
// a few lines (xdr.go): an encoder by reflection would need a struct for each
// call and reply, which is more code than writing the fields in order.
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
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/pump"
)

const (
	// linger limits the end of a session.
	linger = 700 * time.Millisecond
	// largest is the most that one call moves: long the NFSSVC_MAXBLKSIZE of
	// Linux.
	largest = 1 << 20
)

// dialect is a version of the protocol, on a connection to a server that
// supports it.
type dialect interface {
	// root returns dir, or the deepest folder on the path to it that can be
	// mounted.
	root(ctx context.Context, dir string) (mounted, error)
	// limits returns the largest reads and writes below a folder.
	limits(ctx context.Context, dir []byte) (limits, error)
	lookup(ctx context.Context, dir []byte, name string) (node, error)
	// open prepares a file for reading.
	open(ctx context.Context, n node) (node, error)
	// create creates a new file, ready for writing.
	create(ctx context.Context, dir []byte, name string) (node, error)
	// shut closes a file of open or create.
	shut(ctx context.Context, n node) error
	// read reads into b, and returns the number of bytes.
	read(ctx context.Context, n node, b []byte, off int64) (int, error)
	// write writes b, which the server may keep in memory until commit.
	write(ctx context.Context, n node, b []byte, off int64) (int, verifier, error)
	// commit makes the server write all to its disk.
	commit(ctx context.Context, n node) (verifier, error)
	remove(ctx context.Context, dir []byte, name string) error
	// rename renames a file within its folder and replaces an existing one.
	rename(ctx context.Context, dir []byte, from, to string) error
	// leave ends the server's state for this client.
	leave(ctx context.Context)
	// describe sets the names of the version and the server, and returns how
	// many calls the server takes at once (0: no limit).
	describe(info *transfer.Info) (calls int)
}

// limits are the largest reads and writes of a server.
type limits struct{ reads, writes uint32 }

// mounted is a folder of the server with its handle.
type mounted struct {
	dir    string // as a URL has it, "" for the root
	handle []byte
}

// node is a file or a folder.
type node struct {
	handle []byte
	state  stateid // of an open file in version 4
	attributes
}

// Kinds of nodes (ftype3, nfs_ftype4).
const (
	kindRegular = 1
	kindFolder  = 2
)

// attributes are the file attributes that thru uses.
type attributes struct {
	kind uint32
	size uint64
}

// client opens sessions of one server.
type client struct {
	cfg  transfer.Config
	four bool // version 4.1 only, instead of 3 first
}

// New returns a client of cfg.Host by version 3, or by 4.1 where the server
// does not offer that. cfg.User is UID or UID.GID, which the server trusts
// (AUTH_SYS, RFC 5531 appendix A); empty means the user of this process. It
// asks Dial for ports below 1024 (transfer.LowPort), since most servers
// require them.
func New(cfg transfer.Config) transfer.Client { return &client{cfg, false} }

// NewFour is New with version 4.1 only.
func NewFour(cfg transfer.Config) transfer.Client { return &client{cfg, true} }

// link is the connection of a version.
type link struct {
	cfg   transfer.Config
	cred  []byte
	wires *transfer.Wires
	rpc   *caller // to the server's NFS; nil: not connected yet
}

// dial connects from a port below 1024 where possible.
func (l *link) dial(ctx context.Context, port string) (net.Conn, error) {
	return l.wires.Control(transfer.LowPort(ctx), net.JoinHostPort(l.cfg.Host, port))
}

// connect connects to the server's NFS, unless it is connected.
func (l *link) connect(ctx context.Context, port string) error {
	if l.rpc != nil {
		return nil
	}
	conn, err := l.dial(ctx, port)
	if err == nil {
		l.rpc = newCaller(conn, l.cred)
	}
	return err
}

// session is a connection with its mounted folders.
type session struct {
	*link
	transfer.Operating
	nfs   dialect
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
	l := &link{cfg: c.cfg, cred: credential(uid, gid), wires: transfer.NewWires(c.cfg)}
	s := &session{link: l}
	s.Operating = transfer.Operating{Wires: l.wires, Do: s.operations()}
	watched, explain := s.wires.Greet(ctx)
	if err = explain(s.open(watched, c.four)); err != nil {
		s.end()
		return nil, fmt.Errorf("nfs: opening %s: %w", c.cfg.Host, err)
	}
	s.info.Details = append(s.info.Details, fmt.Sprintf("as user %d, group %d (AUTH_SYS), from %s", uid, gid, s.from()))
	return s, nil
}

// identity returns the user and group for the server.
func identity(user string) (uid, gid uint32, err error) {
	if user == "" {
		return uint32(max(0, os.Getuid())), uint32(max(0, os.Getgid())), nil // -1 on systems without them
	}
	first, second, found := strings.Cut(user, ".") // a colon begins a password in a URL
	if !found {
		second = first
	}
	u, err := strconv.ParseUint(first, 10, 32)
	g, err2 := strconv.ParseUint(second, 10, 32)
	if errors.Join(err, err2) != nil {
		return 0, 0, fault.Usagef("write nfs://UID@HOST/... or nfs://UID.GID@HOST/...", "nfs: the user %q is not a number", user)
	}
	return uint32(u), uint32(g), nil
}

// credential is AUTH_SYS (RFC 5531, appendix A).
func credential(uid, gid uint32) []byte {
	body := appendUint32(appendOpaque(appendUint32(nil, 0), "thru"), uid, gid, 0)
	return appendOpaque(appendUint32(nil, authSys), body)
}

// open chooses the version and mounts the folder.
func (s *session) open(ctx context.Context, four bool) error {
	three := errNoProgram
	if !four {
		three = s.openBy(ctx, &v3{link: s.link})
	}
	if !errors.Is(three, errNoProgram) {
		return three
	}
	err := s.openBy(ctx, &v4{link: s.link})
	minor := hasCode(err, codeMinor)
	switch {
	case minor && four:
		return fault.Failf("enable 4.1 at the server: in /etc/nfs.conf `vers4.1=y` in [nfsd]", "the server supports NFS 4, but not 4.1: %w", err)
	case minor:
		return fault.Failf("enable NFS 3 or 4.1 at the server (thru supports only these): in /etc/nfs.conf `vers3=y` or `vers4.1=y` in [nfsd]", "the server supports NFS 4, but neither 4.1 nor NFS 3: %w", err)
	case errors.Is(err, errNoProgram) && four:
		return fault.Failf("use nfs:// for NFS 3", "NFS 4.1: %w", err)
	case errors.Is(err, errNoProgram):
		return fault.Failf("enable NFS 3 or 4.1 at the server: in /etc/nfs.conf `vers3=y` or `vers4.1=y` in [nfsd]", "NFS 3: %w; NFS 4.1: %w", three, err)
	}
	return err
}

// openBy mounts the folder by one version.
func (s *session) openBy(ctx context.Context, by dialect) error {
	s.nfs, s.mounts, s.folders = by, nil, map[string][]byte{}
	root, err := s.root(ctx, parent(s.cfg.Path))
	if err != nil {
		return refused(err)
	}
	most, err := by.limits(ctx, root.handle)
	if err != nil {
		return refused(err)
	}
	s.describe(root, most)
	return nil
}

// refused adds a fix to an error of a server that admits nobody, or nobody
// from here.
func refused(err error) error {
	err = refined(err, transfer.ErrLogin)
	switch {
	case errors.Is(err, errKerberos):
		return fault.Failf("export it with sec=sys too", "%w", err)
	case !errors.Is(err, transfer.ErrLogin) && !errors.Is(err, transfer.ErrMissing) || fault.Hint(err) != "":
		return err
	}
	return fault.Failf("export it to this address at the server; add `insecure` if this user cannot use a port below 1024; with NFS 4 a path begins at the pseudo root", "%w", err)
}

func (s *session) describe(root mounted, most limits) {
	block := int(min(most.reads, most.writes, largest))
	if s.cfg.Block > 0 {
		block = min(block, s.cfg.Block)
	}
	s.shape = pump.Fit(block, s.wires.RTT())
	s.info = transfer.Info{Library: true, Block: s.shape.Block}
	if calls := s.nfs.describe(&s.info); calls > 0 {
		s.shape.Depth = min(s.shape.Depth, calls)
	}
	s.info.InFlight = s.shape.Most()
	s.info.Details = append(s.info.Details, "/"+root.dir+" mounted in user space",
		fmt.Sprintf("the server accepts reads of %d bytes and writes of %d", most.reads, most.writes),
		fmt.Sprintf("%d calls of %d bytes in flight; writes unstable, committed at the end", s.shape.Depth, s.shape.Block))
}

// from returns the kind of port that the server sees.
func (s *session) from() string {
	if a, ok := s.rpc.conn.LocalAddr().(*net.TCPAddr); ok && a.Port < 1024 {
		return "a port below 1024"
	}
	return "a port above 1023"
}

// Info returns what was negotiated, and with version 4.1 the server's name.
func (s *session) Info() transfer.Info { return s.info }

// Close ends the server's state for the client, and closes the connection.
func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), linger)
	defer cancel()
	watched, explain := s.wires.Guard(ctx)
	s.nfs.leave(watched)
	_ = explain(nil)
	return s.end()
}

func (s *session) end() error {
	err := s.wires.Close()
	if s.rpc != nil {
		_ = s.rpc.close() // closed above; this waits for its receiver
	}
	return err
}

// root returns the mounted folder that contains dir, and mounts it if needed.
func (s *session) root(ctx context.Context, dir string) (mounted, error) {
	for _, m := range s.mounts {
		if m.dir == "" || dir == m.dir || strings.HasPrefix(dir, m.dir+"/") {
			return m, nil
		}
	}
	m, err := s.nfs.root(ctx, dir)
	if err == nil {
		s.mounts = append(s.mounts, m)
		s.folders[m.dir] = m.handle
	}
	return m, err
}

// folder returns the handle of a folder.
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
	n, err := s.nfs.lookup(ctx, above, path.Base(dir))
	if err != nil {
		return nil, err
	}
	s.folders[dir] = n.handle
	return n.handle, nil
}

// parent returns the folder of a path, "" at the end.
func parent(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

// file finds a regular file.
func (s *session) file(ctx context.Context, p string) (node, error) {
	dir, err := s.folder(ctx, parent(p))
	if err != nil {
		return node{}, refined(err, transfer.ErrDenied)
	}
	n, err := s.nfs.lookup(ctx, dir, path.Base(p))
	switch {
	case err != nil:
		return node{}, refined(err, transfer.ErrDenied)
	case n.kind != kindRegular:
		return node{}, fmt.Errorf("%w: it is a folder, a link or a device", transfer.ErrMissing)
	case n.size > 1<<62:
		return node{}, fmt.Errorf("the server reports a size of %d bytes", n.size)
	}
	return n, nil
}

// operations returns the operations of a session. Clean-up runs with a
// context that outlives theirs by the grace of the wires.
func (s *session) operations() transfer.Operations {
	return transfer.Operations{
		Protocol: "nfs", Get: s.get, Put: s.put,
		Size: func(ctx context.Context, p string) (int64, error) {
			n, err := s.file(ctx, p)
			return int64(n.size), err
		},
		Remove: func(ctx context.Context, p string) error {
			dir, err := s.folder(ctx, parent(p))
			if err == nil {
				err = s.nfs.remove(ctx, dir, path.Base(p))
			}
			return refined(err, transfer.ErrReadOnly)
		},
	}
}

// get reads a file with several calls in flight.
func (s *session) get(ctx context.Context, p string, w io.Writer) (int64, error) {
	n, err := s.file(ctx, p)
	if err == nil {
		n, err = s.nfs.open(ctx, n)
	}
	if err != nil {
		return 0, refined(err, transfer.ErrDenied)
	}
	done, err := pump.Read(ctx, w, int64(n.size), s.shape, func(ctx context.Context, b []byte, off int64) (int, error) {
		return s.nfs.read(ctx, n, b, off)
	})
	_ = s.nfs.shut(context.WithoutCancel(ctx), n) // all data is read
	return done, refined(err, transfer.ErrDenied)
}

// put writes a file under a temporary name, and renames it when all is
// committed.
func (s *session) put(ctx context.Context, p string, r io.Reader, size int64, overwrite bool) error {
	dir, err := s.folder(ctx, parent(p))
	if err == nil {
		err = s.free(ctx, p, overwrite)
	}
	if err != nil {
		return refined(err, transfer.ErrReadOnly)
	}
	persistent, temp := context.WithoutCancel(ctx), path.Base(transfer.TempName(p))
	n, err := s.nfs.create(ctx, dir, temp)
	if err == nil {
		err = s.fill(ctx, n, r, size)
		if failed := s.nfs.shut(persistent, n); err == nil {
			err = failed
		}
	}
	if err == nil {
		err = s.free(ctx, p, overwrite)
	}
	if err == nil {
		err = s.nfs.rename(ctx, dir, temp, path.Base(p))
	}
	if err == nil {
		return nil
	}
	if left := s.nfs.remove(persistent, dir, temp); left != nil && !hasCode(left, codeMissing) && n.handle != nil {
		err = &transfer.Left{Path: path.Join(path.Dir(p), temp), Cause: err, Err: left}
	}
	return refined(err, transfer.ErrReadOnly)
}

// fill writes and commits all data.
func (s *session) fill(ctx context.Context, file node, r io.Reader, size int64) error {
	var boot boots
	err := pump.Write(ctx, r, size, s.shape, func(ctx context.Context, b []byte, off int64) (int, error) {
		n, v, err := s.nfs.write(ctx, file, b, off)
		if err == nil {
			err = boot.same(v)
		}
		return n, err
	})
	if err != nil || size == 0 {
		return err
	}
	v, err := s.nfs.commit(ctx, file)
	if err != nil {
		return err
	}
	return boot.same(v)
}

// free reports whether the name may be written to.
func (s *session) free(ctx context.Context, p string, overwrite bool) error {
	n, err := s.nfs.lookup(ctx, s.folders[parent(p)], path.Base(p))
	switch {
	case hasCode(err, codeMissing):
		return nil
	case err != nil:
		return err
	case !overwrite || n.kind == kindFolder:
		return transfer.ErrExists
	}
	return nil
}

// verifier identifies a server's boot: a change means that it may have lost
// what was written and not committed.
type verifier uint64

// errRebooted means that written data may be lost.
var errRebooted = errors.New("the server restarted meanwhile, and may have lost written data")

// boots checks that the verifier does not change.
type boots struct {
	mu    sync.Mutex
	known bool
	first verifier
}

func (b *boots) same(v verifier) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known {
		b.first, b.known = v, true
	}
	if v != b.first {
		return errRebooted
	}
	return nil
}
