// Package rsync moves files of an rsync daemon by the program rsync
// (rsync(1), rsyncd.conf(5)), since people do not copy with a Go library. The
// first name of a path is the module.
//
// The program dials by itself: of a configuration, Dial is used only to read
// the daemon's greeting, and Block is not used.
package rsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/stage"
)

const port = "873"

// client opens sessions of one daemon.
type client struct{ cfg transfer.Config }

// New returns a client of cfg.Host.
func New(cfg transfer.Config) transfer.Client { return &client{cfg} }

// session is a program with its arguments.
type session struct {
	transfer.Operating
	cfg      transfer.Config
	program  string
	version  version
	password string
	info     transfer.Info
}

var _ transfer.Outside = (*session)(nil)

// Open finds the program and reads the daemon's greeting. There is no
// separate login: the first call returns the daemon's refusal.
func (c *client) Open(ctx context.Context) (transfer.Session, error) {
	s := &session{cfg: c.cfg}
	s.Do = s.operations()
	if err := checkName(c.cfg.Path); err != nil {
		return nil, err
	}
	if strings.ContainsAny(c.cfg.User, "@:/") {
		return nil, fault.Usagef("give a user name without @ : /", "rsync: invalid user %q", c.cfg.User)
	}
	// The program says its version while the daemon greets.
	var protocol string
	var greeted error
	var greeting sync.WaitGroup
	watched, stop := context.WithCancel(ctx)
	defer stop()
	greeting.Go(func() { protocol, greeted = s.greeting(watched) })
	err := s.find(ctx)
	if err != nil {
		stop()
	}
	if greeting.Wait(); greeted != nil {
		greeted = fmt.Errorf("rsync: opening %s: %w", c.cfg.Host, greeted)
	}
	if err = cmp.Or(err, greeted); err != nil {
		return nil, err
	}
	if c.cfg.User != "" && c.cfg.Password != nil {
		password, err := c.cfg.Password()
		if err != nil {
			return nil, fmt.Errorf("rsync: reading the password: %w", err)
		}
		s.password = password
	}
	s.describe(protocol)
	return s, nil
}

// find looks for the program and reads its version.
func (s *session) find(ctx context.Context) (err error) {
	const hint = "install rsync 3.1 or newer at this end"
	if s.program, err = exec.LookPath("rsync"); err != nil {
		return fault.Failf(hint, "rsync: %w", err)
	}
	ask := exec.CommandContext(ctx, s.program, "--version")
	ask.Env = []string{"LC_ALL=C"}
	out, err := ask.Output()
	if err != nil {
		return fmt.Errorf("rsync: asking for its version: %w", errors.Join(context.Cause(ctx), err))
	}
	v, ok := parseVersion(string(out))
	if !ok || !v.atLeast(3, 1) {
		return fault.Failf(hint, "rsync: %s is another program, or too old", s.program)
	}
	s.version = v
	return nil
}

// greeting returns the version of the daemon's protocol.
func (s *session) greeting(ctx context.Context) (protocol string, err error) {
	wires := transfer.NewWires(s.cfg)
	watched, explain := wires.Guard(ctx)
	conn, err := wires.Data(watched, s.address())
	if err == nil {
		protocol, err = readGreeting(conn)
	}
	return protocol, errors.Join(explain(err), wires.Close())
}

func (s *session) address() string {
	if s.cfg.Port == "" {
		return net.JoinHostPort(s.cfg.Host, port)
	}
	return net.JoinHostPort(s.cfg.Host, s.cfg.Port)
}

func (s *session) describe(protocol string) {
	buffers := "the system's own socket buffers"
	if s.cfg.Buffer > 0 {
		buffers = fmt.Sprintf("SO_SNDBUF and SO_RCVBUF %d", s.cfg.Buffer)
	}
	s.info = transfer.Info{
		Server: "rsync daemon, protocol " + protocol, Client: "rsync " + s.version.String(),
		Details: []string{
			"whole files, neither compressed nor encrypted", buffers,
			"each file is one connection of the program, which requests it from the daemon first",
		},
	}
	if s.discards() {
		s.info.Details = append(s.info.Details, "--to nowhere uses --write-devices to "+os.DevNull)
	}
}

// discards reports whether the program can write to the null device.
func (s *session) discards() bool { return os.DevNull == "/dev/null" && s.version.atLeast(3, 2) }

// Info returns what Open found.
func (s *session) Info() transfer.Info { return s.info }

// Sockets returns nil: the program has the sockets.
func (s *session) Sockets() []net.Conn { return nil }

// Close does nothing.
func (s *session) Close() error { return nil }

// checkName refuses what is no name, and what the daemon would treat as a
// pattern.
func checkName(p string) error {
	if err := transfer.CheckName(p); err != nil {
		return err
	}
	if i := strings.IndexAny(p, `*?[\`); i >= 0 {
		return fault.Usagef("give it another name", "rsync: %q: %w: %q has a special meaning for a daemon", p, transfer.ErrName, p[i])
	}
	return nil
}

// target returns the program's argument. The program decodes nothing, so
// nothing is encoded.
func (s *session) target(p string) string {
	user := ""
	if s.cfg.User != "" {
		user = s.cfg.User + "@"
	}
	return "rsync://" + user + s.address() + "/" + p
}

// timeout returns how long nothing may move.
func (s *session) timeout() time.Duration {
	if s.cfg.Timeout > 0 {
		return s.cfg.Timeout
	}
	return transfer.DefaultTimeout
}

// call runs the program for one file or a listing.
func (s *session) call(ctx context.Context, w want, args ...string) (string, error) {
	// The daemon gets it too. The daemon must not give up first: a connection
	// that it closes looks broken here, not silent.
	seconds := int(math.Ceil(2 * s.timeout().Seconds()))
	// Without it the program's small messages would wait for acknowledgements
	// (Nagle).
	options := "TCP_NODELAY"
	if s.cfg.Buffer > 0 {
		options += fmt.Sprintf(",SO_SNDBUF=%d,SO_RCVBUF=%d", s.cfg.Buffer, s.cfg.Buffer)
	}
	all := []string{"--no-motd", "--no-human-readable", "--outbuf=L", fmt.Sprintf("--timeout=%d", seconds), fmt.Sprintf("--contimeout=%d", seconds), "--sockopts=" + options}
	return s.run(ctx, w, append(all, args...)...)
}

// list requests one file, and reports whether the module has it.
func (s *session) list(ctx context.Context, p string) (e entry, found bool, err error) {
	// The program and the daemon would wait for each other a tenth of a second
	// more.
	answered := func(text string) bool {
		_, ok := parseEntry(text)
		return ok || strings.Contains(text, noFile)
	}
	out, err := s.call(ctx, want{denied: transfer.ErrDenied, answered: answered}, "--list-only", "--", s.target(p))
	switch e, found = parseEntry(out); {
	case found, errors.Is(err, errNoFile), strings.Contains(out, noFile):
		return e, found, nil
	case err == nil:
		err = errors.New("the program's listing cannot be read")
	}
	return e, found, err
}

// file returns the size of a regular file.
func (s *session) file(ctx context.Context, p string) (int64, error) {
	e, found, err := s.list(ctx, p)
	switch {
	case err != nil:
		return 0, err
	case !found:
		return 0, errNoFile
	case e.kind != '-':
		return 0, fmt.Errorf("%w: it is a folder, a link or a device", transfer.ErrMissing)
	}
	return e.size, nil
}

// operations returns the operations of a session.
func (s *session) operations() transfer.Operations {
	return transfer.Operations{Protocol: "rsync", Check: checkName, Size: s.file, Get: s.get, Put: s.put, Remove: s.remove}
}

// Fetch makes the program write a file here.
func (s *session) Fetch(ctx context.Context, p, local string, progress func(int64)) (n int64, err error) {
	err = s.Operate(ctx, "getting", p, func(ctx context.Context) error {
		n, err = s.fetch(ctx, p, local, progress)
		return err
	})
	return n, err
}

func (s *session) fetch(ctx context.Context, p, local string, progress func(int64)) (int64, error) {
	switch {
	case local != "":
		return s.land(ctx, p, local, progress)
	case s.discards():
		return s.take(ctx, p, os.DevNull, progress, "--write-devices")
	}
	size, err := s.file(ctx, p)
	if err != nil {
		return 0, err
	}
	folder, err := stage.New(size)
	if err != nil {
		return 0, err
	}
	defer folder.Close()
	return s.take(ctx, p, folder.File("file"), progress)
}

// take makes the program write a file to a path, and returns its size. It
// asks the daemon nothing before: that would take another connection.
func (s *session) take(ctx context.Context, p, to string, progress func(int64), args ...string) (int64, error) {
	var came int64
	count := func(n int64) {
		came = n
		if progress != nil {
			progress(n)
		}
	}
	args = append(args, "--whole-file", "--info=progress2", whole, "--", s.target(p), to)
	out, err := s.call(ctx, want{denied: transfer.ErrDenied, progress: count}, args...)
	if err != nil {
		return 0, err
	}
	size, moved := parseWhole(out)
	switch {
	case !moved: // the program skips what is no file, and reports success
		if _, err = s.file(ctx, p); err == nil {
			err = fmt.Errorf("%w: the program transferred no file", transfer.ErrShort)
		}
		return 0, err
	case came < size:
		return 0, fmt.Errorf("%w: %d of %d", transfer.ErrShort, came, size)
	}
	return size, nil
}

// land makes the program write a file under a known temporary name, so that
// it can be removed in any case, and renames the complete file.
func (s *session) land(ctx context.Context, p, local string, progress func(int64)) (int64, error) {
	local, err := filepath.Abs(local)
	if err != nil {
		return 0, err
	}
	temp := local + transfer.FetchEnding
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a killed program
		return 0, err
	}
	size, err := s.take(ctx, p, temp, progress, "--inplace")
	if err == nil {
		var facts os.FileInfo
		if facts, err = os.Stat(temp); err == nil && facts.Size() < size {
			err = fmt.Errorf("%w: %d of %d", transfer.ErrShort, facts.Size(), size)
		}
	}
	if err == nil {
		err = os.Rename(temp, local)
	}
	if err != nil {
		_ = os.Remove(temp) // it may not exist yet
	}
	return size, err
}

// get makes the program write a file to memory or the disk, and passes it on.
func (s *session) get(ctx context.Context, p string, w io.Writer) (n int64, err error) {
	if w == io.Discard {
		return s.fetch(ctx, p, "", nil)
	}
	size, err := s.file(ctx, p)
	if err != nil {
		return 0, err
	}
	folder, err := stage.New(size)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	local := folder.File("file")
	if _, err := s.land(ctx, p, local, nil); err != nil {
		return 0, err
	}
	file, err := os.Open(local)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return transfer.Copy(transfer.Sink(ctx, w), file, 0)
}

// put writes a file to memory or the disk, and makes the program send it.
func (s *session) put(ctx context.Context, p string, r io.Reader, size int64, overwrite bool) (err error) {
	folder, err := stage.New(size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	local := folder.File("file")
	// Readable for everyone, like the copy at the server; the folder is
	// private.
	file, err := os.OpenFile(local, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = transfer.Copy(file, transfer.Source(ctx, r, size), 0)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return s.send(ctx, local, p, overwrite, nil)
}

// Send makes the program create a file from a local one. The daemon renames
// it when it is complete.
func (s *session) Send(ctx context.Context, local, p string, overwrite bool, progress func(int64)) error {
	return s.Operate(ctx, "putting", p, func(ctx context.Context) error { return s.send(ctx, local, p, overwrite, progress) })
}

func (s *session) send(ctx context.Context, local, p string, overwrite bool, progress func(int64)) error {
	local, err := filepath.Abs(local)
	if err == nil {
		err = s.vacant(ctx, p, overwrite)
	}
	if err != nil {
		return err
	}
	args := []string{"--whole-file", "--ignore-times", "--info=progress2", whole}
	if !overwrite {
		args = append(args, "--ignore-existing") // a file created there since the check
	}
	out, err := s.call(ctx, want{denied: transfer.ErrReadOnly, progress: progress}, append(args, "--", local, s.target(p))...)
	if _, moved := parseWhole(out); err == nil && !moved {
		err = transfer.ErrExists
	}
	return err
}

// vacant reports whether the name may be written to.
func (s *session) vacant(ctx context.Context, p string, overwrite bool) error {
	e, found, err := s.list(ctx, p)
	if err == nil && found && (!overwrite || e.kind != '-') {
		return transfer.ErrExists
	}
	return err
}

// remove makes the daemon delete the one file, by syncing an empty folder:
// the protocol has no other way.
func (s *session) remove(ctx context.Context, p string) (err error) {
	if _, err := s.file(ctx, p); err != nil {
		return err
	}
	empty, err := stage.New(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	dir, name := path.Split(p)
	_, err = s.call(ctx, want{denied: transfer.ErrReadOnly}, "--recursive", "--delete", "--include=/"+name, "--exclude=*", "--", empty.Path+"/", s.target(dir))
	return err
}
