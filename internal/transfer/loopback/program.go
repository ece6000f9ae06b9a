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
	"time"

	"thru/internal/transfer/stage"
)

const (
	// mostMemory is what the files of a server may take of it, in bytes: a transfer has
	// as much again on its way.
	mostMemory = 1 << 30
	// upWithin is how long a program may take until it listens.
	upWithin = 5 * time.Second
	// lookEvery is how often that is looked at.
	lookEvery = 5 * time.Millisecond
)

// program is a server that is a process of its own, over a private folder in memory.
type program struct {
	path   string
	folder *stage.Folder // private: configuration, and data in its folder "data"
	room   int64
	port   string

	cmd  *exec.Cmd
	said head
	over chan struct{} // closed when it has ended
}

// newProgram finds a program, and makes its folder. close removes that again.
func newProgram(name string) (*program, error) {
	found, err := find(name)
	if err != nil {
		return nil, err
	}
	free, known := stage.Room(stage.Memory)
	if !known {
		return nil, fmt.Errorf("%w: its files need a folder in memory, and there is no %s", ErrNone, stage.Memory)
	}
	p := &program{path: found, room: min(free/4, mostMemory)}
	if p.folder, err = stage.In(stage.Memory); err != nil {
		return nil, err
	}
	if err = os.Mkdir(p.data(), 0o700); err == nil {
		p.port, err = freePort()
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// find looks for a program also where daemons are.
func find(name string) (string, error) {
	if found, err := exec.LookPath(name); err == nil {
		return found, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%w: %s is not installed", ErrNone, name)
}

func freePort() (string, error) {
	l, err := listen()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// data is the folder of its files.
func (p *program) data() string { return p.folder.File("data") }

// write makes a file beside the data, and returns its path.
func (p *program) write(name, text string) (string, error) {
	file := p.folder.File(name)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// start runs it, and returns when it listens.
func (p *program) start(ctx context.Context, args ...string) error {
	p.cmd = exec.Command(p.path, args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.WaitDelay = time.Second
	own(p.cmd)
	if err := p.run(); err != nil {
		p.cmd = nil
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", p.port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.over:
			return fmt.Errorf("%s ended at once: %.200q", filepath.Base(p.path), strings.TrimSpace(string(p.said.b)))
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w", filepath.Base(p.path), context.Cause(ctx))
		case <-time.After(lookEvery):
		}
	}
}

// run starts it on a thread that lives until it has ended: the kernel ends it with
// the thread that has started it (PR_SET_PDEATHSIG(2const)).
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
			_ = p.cmd.Wait() // it is killed in the end
		}
	}()
	return <-started
}

// saidMost bounds what is kept of what a program says, in bytes.
const saidMost = 4 << 10

// head keeps the begin of it. It is read when the program has ended.
type head struct{ b []byte }

// Write keeps what there is room for.
func (t *head) Write(b []byte) (int, error) {
	t.b = append(t.b, b[:min(len(b), saidMost-len(t.b))]...)
	return len(b), nil
}

// offer makes a file of so many bytes that takes no room: a hole.
func (p *program) offer(bytes int64) error {
	name := filepath.Join(p.data(), fmt.Sprint(bytes))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(bytes), f.Close())
}

// close ends it with its children, and removes what it had.
func (p *program) close() error {
	if p.cmd != nil {
		end(p.cmd)
		<-p.over
	}
	return p.folder.Close()
}

// server is what clients see of it.
func (p *program) server() *Server {
	return &Server{
		Is: filepath.Base(p.path) + " on this machine, over a folder in memory", Most: p.room,
		host: "127.0.0.1", port: p.port, root: share + "/", offer: p.offer, close: p.close,
	}
}

// share is the name of the one module or share, and the user that it is for.
const share = "thru"
