package platform

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"thru/internal/fault"
)

// Remote runs programs of another host by the system's ssh client. All share
// one login where the client can share a connection (not on Windows). It may
// be used by many goroutines; Close ends the login.
type Remote struct {
	destination string
	port        int
	config      string // file instead of the user's configuration; "": that
	mu          sync.Mutex
	login       *login        // nil: not yet
	err         error         // why the login failed: not tried again, except after a login that had worked
	ended       time.Time     // when a working login was found to have ended; zero: never
	again       time.Duration // delay before the next login after that
}

// login is the ssh process whose connection all commands share. It lives as
// long as its standard input is open, so it ends with this process in any
// case.
type login struct {
	cmd   *exec.Cmd
	dir   string
	stdin io.Closer
	done  chan struct{}
}

// The time limits of a login: to connect, in total, and to end.
const (
	connectTime = 10 * time.Second
	loginTime   = 15 * time.Second
	endTime     = 2 * time.Second
	againTime   = 30 * time.Second // between the end of a login and the next; commands meanwhile fail at once
)

// SSH returns a runner on another host: destination is "user@host", port 0
// means the configured one. It sends nothing before the first command. It
// never prompts: neither for a password nor for an unknown host key.
func SSH(destination string, port int) *Remote {
	return &Remote{destination: destination, port: port, again: againTime}
}

// Run runs a program on the host, in the language C. Its arguments arrive
// unchanged, whatever they hold.
func (s *Remote) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	shared, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	out, err := output(ctx, func(ctx context.Context) *exec.Cmd {
		return s.client(ctx, shared, "-o", "ControlMaster=no", remote(name, args))
	})
	var exit *Exit
	if errors.As(err, &exit) && exit.Code == 255 { // ssh's own exit code (ssh(1), EXIT STATUS)
		return out, s.explain(exit.Stderr, errors.New("the connection failed"))
	}
	return out, err
}

// remote returns the command line for the remote login shell, whichever that
// is: it runs sh with one word. The folders at the end of PATH are those of
// administrators, which some systems leave out of it for a command.
func remote(name string, args []string) string {
	line := `PATH="$PATH:/usr/sbin:/sbin"; LC_ALL=C; export PATH LC_ALL; exec ` + quote(name)
	for _, a := range args {
		line += " " + quote(a)
	}
	return "/bin/sh -c " + quote(line)
}

// client returns an ssh command with the options of every call. The folder of
// a shared connection may be empty.
func (s *Remote) client(ctx context.Context, shared string, more ...string) *exec.Cmd {
	args := []string{}
	if s.config != "" {
		args = append(args, "-F", s.config)
	}
	for _, o := range []string{"BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no"} {
		args = append(args, "-o", o)
	}
	args = append(args, SSHOptions()...)
	if shared != "" {
		args = append(args, "-S", filepath.Join(shared, "s"))
	} else {
		args = append(args, "-S", "none")
	}
	if s.port != 0 {
		args = append(args, "-p", strconv.Itoa(s.port))
	}
	return exec.CommandContext(ctx, "ssh", append(append(args, more[:len(more)-1]...), "--", s.destination, more[len(more)-1])...)
}

// SSHOptions returns the options of every ssh call: they disable what a
// user's configuration may add to the connection, and detect a dead
// connection.
func SSHOptions() []string {
	args := []string{"-T", "-x", "-a"} // no terminal, no X11, no agent there
	for _, o := range []string{
		"ClearAllForwardings=yes", "PermitLocalCommand=no", "RemoteCommand=none", "RequestTTY=no", "LogLevel=ERROR", "EscapeChar=none",
		"ConnectTimeout=" + strconv.Itoa(int(connectTime/time.Second)), "ServerAliveInterval=5", "ServerAliveCountMax=3",
	} {
		args = append(args, "-o", o)
	}
	return args
}

// connected logs in once and returns the folder of the shared connection, or
// "" where each command logs in by itself.
func (s *Remote) connected(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.destination == "" || strings.HasPrefix(s.destination, "-") {
		return "", fault.Usagef("give a host: ssh://root@esx1", "platform: connecting by ssh: %q is not a destination", s.destination)
	}
	if s.err != nil && !s.ended.IsZero() && time.Since(s.ended) >= s.again {
		s.err = nil // the host or the network was down
	}
	if s.err != nil || s.login != nil && s.login.alive() {
		return s.login.folder(), s.err
	}
	if s.login != nil {
		s.login.end()
		s.login, s.ended = nil, time.Now()
		s.err = fmt.Errorf("platform: the ssh connection to %s has ended", s.destination)
		return "", s.err
	}
	if runtime.GOOS == "windows" {
		return "", nil
	}
	l, err := s.begin(ctx)
	if err != nil && ctx.Err() != nil {
		return "", err // the caller has given up; the next call may try again
	}
	if s.login, s.err = l, err; err != nil && !s.ended.IsZero() {
		s.ended = time.Now()
	}
	return s.login.folder(), s.err
}

// greeting is what the remote host prints once the login is complete; other
// output may come before.
const greeting = "thru is in"

// begin starts the shared connection and waits until it is up.
func (s *Remote) begin(ctx context.Context) (*login, error) {
	dir, err := os.MkdirTemp("", "thru-ssh-") // only the owner has access
	if err != nil {
		return nil, fmt.Errorf("platform: connecting by ssh: %w", err)
	}
	// Not ctx: the connection outlives the command that made it.
	cmd := s.client(context.Background(), dir, "-o", "ControlMaster=yes", "-o", "ControlPersist=no", "echo "+greeting+"; cat")
	stderr := &bounded{most: 4 << 10}
	cmd.Stderr, cmd.WaitDelay = stderr, time.Second
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		os.RemoveAll(dir)
		return nil, fault.Failf("install the OpenSSH client", "platform: connecting by ssh: %w", err)
	}
	l := &login{cmd: cmd, dir: dir, stdin: stdin, done: make(chan struct{})}
	in := make(chan bool, 1)
	go func() {
		in <- greeted(stdout)
		io.Copy(io.Discard, stdout)
		cmd.Wait()
		close(l.done)
	}()
	timer := time.NewTimer(loginTime)
	defer timer.Stop()
	select {
	case ok := <-in:
		if ok {
			return l, nil
		}
		<-l.done // then all output is in stderr
		err = s.explain(stderr.kept.String(), errors.New("the login failed"))
	case <-ctx.Done():
		err = fmt.Errorf("platform: connecting to %s by ssh: %w", s.destination, ctx.Err())
	case <-timer.C:
		err = fault.Failf("try it manually: ssh "+s.destination, "platform: connecting to %s by ssh: no login within %v", s.destination, loginTime)
	}
	l.end()
	return nil, err
}

// greeted reads up to the greeting; false where the output ends before it.
func greeted(r io.Reader) bool {
	s := bufio.NewScanner(io.LimitReader(r, 1<<20))
	for s.Scan() {
		if strings.TrimSpace(s.Text()) == greeting {
			return true
		}
	}
	return false
}

// explain makes an error of ssh's output.
func (s *Remote) explain(stderr string, otherwise error) error {
	return SSHFault(s.destination, s.port, stderr, otherwise)
}

// SSHFault makes an error of ssh's last output, with a fix; otherwise is the
// error where ssh printed nothing.
func SSHFault(destination string, port int, stderr string, otherwise error) error {
	manual := "ssh " + destination
	if port != 0 {
		manual = fmt.Sprintf("ssh -p %d %s", port, destination)
	}
	hint := "try it manually: " + manual
	for _, c := range [][2]string{
		{"Host key verification failed", "connect once manually (" + manual + "), compare the key's fingerprint with that of the host, and accept it; thru never accepts a key"},
		{"host key is known", "connect once manually (" + manual + "), compare the key's fingerprint with that of the host, and accept it; thru never accepts a key"},
		{"HOST IDENTIFICATION HAS CHANGED", "find out why the host's key has changed before you remove the old one (ssh-keygen -R HOST)"},
		{"Permission denied", "add your public key to the host (ESXi: /etc/ssh/keys-USER/authorized_keys), or load the key into ssh-agent; thru uses no password"},
		{"Connection refused", "enable SSH there (ESXi: vim-cmd hostsvc/start_ssh, or Host > Actions > Services), or give the port"},
		{"timed out", "check that the host is up and that firewalls allow port 22"},
		{"Could not resolve", "check the host's name"},
	} {
		if strings.Contains(stderr, c[0]) {
			hint = c[1]
		}
	}
	stderr = Clean(strings.TrimSpace(stderr))
	if stderr == "" {
		return fault.Failf(hint, "platform: connecting to %s by ssh: %w", destination, otherwise)
	}
	all := strings.Split(stderr, "\n")
	return fault.Failf(hint, "platform: connecting to %s by ssh: %.300s", destination, all[len(all)-1])
}

// Close ends the login.
func (s *Remote) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.login != nil {
		s.login.end()
		s.login = nil
	}
	if s.ended = (time.Time{}); s.err == nil {
		s.err = errors.New("platform: the ssh connection is closed")
	}
	return nil
}

// alive reports whether the shared connection is up.
func (l *login) alive() bool {
	select {
	case <-l.done:
		return false
	default:
		return true
	}
}

// folder returns the folder with the socket of the shared connection.
func (l *login) folder() string {
	if l == nil {
		return ""
	}
	return l.dir
}

// end closes the shared connection, waits for its process, and removes its
// files.
func (l *login) end() {
	l.stdin.Close()
	select {
	case <-l.done:
	case <-time.After(endTime): // a command is still running
		l.cmd.Process.Kill()
		<-l.done
	}
	os.RemoveAll(l.dir)
}
