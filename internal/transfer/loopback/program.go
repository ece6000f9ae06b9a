package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"thru/internal/transfer"
	"thru/internal/transfer/servers"
	"thru/internal/transfer/stage"
)

const (
	// mostMemory limits the files of a server in memory, in bytes: a transfer
	// has as much again in flight.
	mostMemory = 1 << 30
	// upWithin limits the time until a program listens.
	upWithin = 5 * time.Second
	// lookEvery is the polling interval for that.
	lookEvery = 5 * time.Millisecond
)

// program is a server in a process of its own.
type program struct {
	servers.Server
	folder *stage.Folder // private, in memory: its configuration and its files

	cmd  *exec.Cmd
	said head
	over chan struct{} // closed when it has ended
}

// serveProgram starts the system's server that ready prepares.
func serveProgram(ctx context.Context, ready func(dir, port string) (servers.Server, error)) (*Server, error) {
	free, known := stage.Room(stage.Memory)
	if !known {
		return nil, fmt.Errorf("%w: its files need a folder in memory, and %s does not exist", ErrNone, stage.Memory)
	}
	folder, err := stage.In(stage.Memory)
	if err != nil {
		return nil, err
	}
	p := &program{folder: folder}
	port, err := freePort()
	if err == nil {
		p.Server, err = ready(folder.Path, port)
	}
	if errors.Is(err, servers.ErrNone) {
		err = fmt.Errorf("%w: %w", ErrNone, err)
	}
	if err == nil {
		err = p.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &Server{
		Is: filepath.Base(p.Argv[0]) + " on this machine, over a folder in memory", Most: min(free/4, mostMemory),
		host: servers.Host, port: port, user: p.Config.User, password: p.Secret, root: p.Dir + "/", offer: p.offer, close: p.close,
	}, nil
}

// readySamba prepares a Samba that signs and encrypts like the real server.
func readySamba(agreed []string) func(dir, port string) (servers.Server, error) {
	var options []string
	for _, detail := range agreed {
		switch {
		case strings.HasPrefix(detail, "signed"):
			options = append(options, "server signing = mandatory")
		case strings.HasPrefix(detail, "encrypted"):
			options = append(options, "server smb encrypt = required")
		}
	}
	return func(dir, port string) (servers.Server, error) { return servers.Samba(dir, port, options...) }
}

func freePort() (string, error) {
	l, err := listen()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// start runs the program, and returns when it listens.
func (p *program) start(ctx context.Context) error {
	p.cmd = exec.Command(p.Argv[0], p.Argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.WaitDelay = time.Second
	transfer.NewSession(p.cmd, syscall.SIGKILL)
	if err := p.run(); err != nil {
		p.cmd = nil
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Address())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.over:
			return fmt.Errorf("%s ended at once: %.200q", filepath.Base(p.Argv[0]), strings.TrimSpace(string(p.said.b)))
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w", filepath.Base(p.Argv[0]), context.Cause(ctx))
		case <-time.After(lookEvery):
		}
	}
}

// run starts the program on a thread that lives until it has ended: the
// kernel kills it with the thread that started it (PR_SET_PDEATHSIG(2const)).
func (p *program) run() error {
	p.over = make(chan struct{})
	started := make(chan error, 1)
	go func() {
		defer close(p.over)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is always killed
		}
	}()
	return <-started
}

// saidMost limits what is kept of a program's output, in bytes.
const saidMost = 4 << 10

// head keeps the beginning of the output. It is read after the program has
// ended.
type head struct{ b []byte }

// Write keeps what fits.
func (t *head) Write(b []byte) (int, error) {
	t.b = append(t.b, b[:min(len(b), saidMost-len(t.b))]...)
	return len(b), nil
}

// offer creates a file of so many bytes without disk space: a hole.
func (p *program) offer(bytes int64) error {
	name := filepath.Join(p.Folder, fmt.Sprint(bytes))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(bytes), f.Close())
}

// close kills the program with its children, and removes its files.
func (p *program) close() error {
	if p.cmd != nil {
		_ = transfer.End(p.cmd) // it may have ended
		<-p.over
	}
	return p.folder.Close()
}
