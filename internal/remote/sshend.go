package remote

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/host/platform"
)

// Limits of an end point over ssh. A copy may take as long as the connection lives:
// ssh itself detects a dead one.
const (
	sshLoginTime  = 30 * time.Second // where no user can be asked
	sshAnswerTime = 20 * time.Second // of the far end's shell, and of thru to start there
	sshEndTime    = 3 * time.Second  // of ssh, once its input is closed
	sshMostNoise  = 1 << 20          // bytes that a login may print before the script does
)

// overSSH starts an agent at the far end of ssh and connects it: it copies the right
// thru program, which runs without a file and without a control port, and ends with
// the connection.
func (d Dialer) overSSH(ctx context.Context, name string) (*control.EndPoint, func(), error) {
	destination, port, err := SSHTarget(name)
	if err != nil {
		return nil, nil, err
	}
	if d.Port != bus.DefaultPort && d.Port != 0 {
		return nil, nil, fault.Usagef("give the ssh port in the end point: ssh://HOST:PORT", "-p %d cannot be combined with %s", d.Port, name)
	}
	heard := func() {}
	if d.person.Asks() != nil { // one at a time may ask the user
		d.asking.Lock()
		heard = sync.OnceFunc(d.asking.Unlock)
		defer heard()
	}
	s, err := startSSH(d.person.Asks(), destination, port)
	if err != nil {
		return nil, nil, err
	}
	e, end, err := d.greeted(ctx, s, name, heard)
	if err != nil {
		s.close()
	}
	return e, end, err
}

// greeted continues as the system at the far end requires. It calls heard after the
// login.
func (d Dialer) greeted(ctx context.Context, s *sshProcess, name string, heard func()) (*control.EndPoint, func(), error) {
	defer s.killOn(ctx)()
	far, err := s.greeting()
	heard()
	switch {
	case err != nil:
		return nil, nil, err
	case d.Checks && platform.Known(far.os):
		return nil, nil, &OtherSystem{far.os}
	case far.os == "esxi" && d.VMkernel:
		return d.vmkernel(ctx, s, name, far)
	case far.os == "esxi":
		return nil, nil, fault.Failf("use thru check, which runs its own commands, or thru test, ladder, explain or run, which use its own iperf3", "remote: %s is an ESXi host: thru does not run on it", s.destination)
	}
	e, err := d.attended(ctx, s, name, far)
	if err != nil {
		return nil, nil, err
	}
	return e, func() { s.leave(e.Client.(*bus.Client)) }, nil
}

// attended copies thru to the far end and connects its agent.
func (d Dialer) attended(ctx context.Context, s *sshProcess, name string, far farEnd) (*control.EndPoint, error) {
	box, err := d.parcels.of(far)
	if err != nil {
		return nil, err
	}
	p := d.person.Progress()
	defer p.Clear()
	if err := s.bring(box, p); err != nil {
		return nil, err
	}
	client, err := bus.Over(s.conn(), s.destination, d.version)
	if err != nil {
		return nil, s.explain("starting thru there", err)
	}
	hctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	e := &control.EndPoint{Name: name, Addr: net.JoinHostPort(far.addr, strconv.Itoa(cmp.Or(s.port, 22))), Client: client}
	if e.Hello, err = client.Hello(hctx); err == nil {
		e.DataHosts, err = d.dataHosts(e)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return e, nil
}

// OtherSystem is the error for a system that is read by its own commands.
type OtherSystem struct{ os string }

// Error implements error.
func (o *OtherSystem) Error() string { return cmp.Or(o.os, "a login without /bin/sh") }

// sshProcess is one ssh process, with the shell at its far end.
type sshProcess struct {
	destination string
	port        int
	mark        string // prefix of every line for this end
	person      bool   // a user can be asked
	cmd         *exec.Cmd
	in          io.WriteCloser
	pipe        *os.File // read end of out
	out         *bufio.Reader
	stderr      *sshStderr
	done        chan struct{} // closed when ssh has ended
	err         error         // of its end; set before done closes
}

// startSSH runs the system's own ssh, with its configuration, keys, agent and known
// hosts. If there is a user, ssh may ask.
func startSSH(asks io.Writer, destination string, port int) (*sshProcess, error) {
	s := &sshProcess{destination: destination, port: port, mark: "thru-" + rand.Text(), person: asks != nil, stderr: &sshStderr{echo: asks}, done: make(chan struct{})}
	// No shared connection that outlives this one.
	args := append(platform.SSHOptions(), "-o", "ControlMaster=no", "-o", "ControlPersist=no")
	if !s.person {
		args = append(args, "-o", "BatchMode=yes")
	}
	if port != 0 {
		args = append(args, "-p", strconv.Itoa(port))
	}
	args = append(args, "--", destination, remoteScript(s.mark))
	s.cmd = exec.Command("ssh", args...)
	if runtime.GOOS != "windows" {
		// Ctrl-C and a hangup go to all processes of a terminal: ssh must survive them until the measurement is cleaned up.
		s.cmd = exec.Command("/bin/sh", append([]string{"-c", `trap "" INT HUP; exec ssh "$@"`, "ssh"}, args...)...)
	}
	s.cmd.Stderr, s.cmd.WaitDelay = s.stderr, time.Second
	return s, s.begin()
}

// begin starts the process.
func (s *sshProcess) begin() error {
	in, err1 := s.cmd.StdinPipe()
	out, theirs, err2 := os.Pipe() // not StdoutPipe, which Wait would close while it is read
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("remote: starting ssh: %w", err)
	}
	s.cmd.Stdout = theirs
	err := s.cmd.Start()
	theirs.Close()
	if err != nil {
		out.Close()
		return fault.Failf("install the OpenSSH client", "remote: starting ssh: %w", err)
	}
	s.in, s.pipe, s.out = in, out, bufio.NewReaderSize(out, 64<<10)
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	return nil
}

// killOn kills ssh when the context ends, until the returned function is called.
func (s *sshProcess) killOn(ctx context.Context) (stop func()) {
	end := context.AfterFunc(ctx, func() { s.cmd.Process.Kill() })
	return func() { end() }
}

// within kills ssh if a step takes longer than limit.
func (s *sshProcess) within(limit time.Duration) (stop func() bool) {
	return time.AfterFunc(limit, func() {
		s.stderr.note(fmt.Sprintf("no answer within %v", limit))
		s.cmd.Process.Kill()
	}).Stop
}

// line waits for the next line for this end: a login may print others.
func (s *sshProcess) line() (word, rest string, err error) {
	for seen := 0; seen < sshMostNoise; {
		b, err := s.out.ReadSlice('\n')
		seen += len(b)
		// A login may print text without a line end.
		if _, after, ours := strings.Cut(string(b), s.mark+" "); ours && err == nil {
			word, rest, _ := strings.Cut(strings.TrimSpace(after), " ")
			return word, rest, nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", "", fmt.Errorf("remote: reading from ssh: %w", err)
		}
	}
	return "", "", errors.New("the login shell prints too much")
}

// expect waits for one word of the script, which may report a failure instead.
func (s *sshProcess) expect(want, doing string, limit time.Duration) (rest string, err error) {
	if limit > 0 {
		defer s.within(limit)()
	}
	word, rest, err := s.line()
	switch {
	case err != nil:
		return "", s.explain(doing, err)
	case word == "failed":
		return "", fault.Failf("", "remote: %s: %s: %s%s", s.destination, doing, rest, s.stderr.because())
	case word != want:
		return "", fmt.Errorf("remote: %s: %s: unexpected answer %.40q", s.destination, doing, word)
	}
	return rest, nil
}

// greeting logs in, and reads what the far end is.
func (s *sshProcess) greeting() (farEnd, error) {
	limit := sshLoginTime
	if s.person {
		limit = 0
	}
	rest, err := s.expect("here", "logging in", limit)
	s.stderr.quiet()
	if err != nil {
		return farEnd{}, err
	}
	return parseFarEnd(rest, s.destination)
}

// explain makes an error from the way ssh has ended.
func (s *sshProcess) explain(doing string, err error) error {
	s.end()
	var exit *exec.ExitError
	if errors.As(s.err, &exit) && exit.Exited() && exit.ExitCode() != 255 && doing == "logging in" { // 255 is ssh's own (ssh(1), EXIT STATUS)
		return fault.Failf("use a login with a shell; check it with "+manualSSH(s.destination, s.port),
			"remote: %s: %s: %w%s", s.destination, doing, &OtherSystem{}, s.stderr.because())
	}
	if doing == "logging in" {
		return platform.SSHFault(s.destination, s.port, s.stderr.String(), fmt.Errorf("the connection failed: %w", err))
	}
	return fault.Failf("try again; check with "+manualSSH(s.destination, s.port)+" whether the connection is stable",
		"remote: %s: %s: the connection has ended%s: %w", s.destination, doing, s.stderr.because(), err)
}

func manualSSH(destination string, port int) string {
	if port != 0 {
		return fmt.Sprintf("`ssh -p %d %s`", port, destination)
	}
	return "`ssh " + destination + "`"
}

// conn returns the connection to the agent, once it has reported ready.
func (s *sshProcess) conn() net.Conn { return overPipes(s.out, s.in) }

// overPipes makes a connection from two pipes; in is closed when it ends.
func overPipes(out io.Reader, in io.WriteCloser) net.Conn {
	ours, theirs := net.Pipe()
	go func() { io.Copy(theirs, out); theirs.Close() }()
	go func() { io.Copy(in, theirs); in.Close(); theirs.Close() }()
	return ours
}

// leave ends the connection to the agent, and ssh: it kills ssh if the agent is lost,
// since the end of its input may not pass the network either.
func (s *sshProcess) leave(agent *bus.Client) {
	if agent.Err() != nil {
		s.cmd.Process.Kill()
	}
	agent.Close()
	s.close()
}

// close ends ssh, and with it the programs at the far end.
func (s *sshProcess) close() {
	s.end()
	s.pipe.Close()
}

// end closes ssh's input, and returns when ssh has ended; after sshEndTime it kills
// ssh.
func (s *sshProcess) end() {
	s.in.Close()
	defer time.AfterFunc(sshEndTime, func() { s.cmd.Process.Kill() }).Stop()
	<-s.done
}

// sshStderr collects the stderr of ssh and the far end: it keeps the beginning, and
// until the login is done shows it to the user at once.
type sshStderr struct {
	mu   sync.Mutex
	kept []byte
	echo io.Writer
}

// Write implements io.Writer.
func (s *sshStderr) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.echo != nil {
		s.echo.Write(b)
	}
	const most = 4 << 10
	s.kept = append(s.kept, b[:min(len(b), most-len(s.kept))]...)
	return len(b), nil
}

// note adds a line of our own.
func (s *sshStderr) note(line string) { fmt.Fprintln(s, line) }

// quiet ends the echo.
func (s *sshStderr) quiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.echo = nil
}

func (s *sshStderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.kept)
}

// because returns the last line, as the end of a message.
func (s *sshStderr) because() string {
	all := strings.Split(strings.TrimSpace(s.String()), "\n")
	if last := all[len(all)-1]; last != "" {
		return fmt.Sprintf(" (%.300s)", last)
	}
	return ""
}
