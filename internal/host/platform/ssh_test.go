package platform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
)

// server is a real sshd on a loopback port, with its own keys and
// configuration, and a folder of small programs that is first in PATH.
type server struct {
	dir, log, config string // config is the client's
	port             int
}

// startServer runs sshd as the user of the test. Where it is missing the test
// is skipped with the reason, and fails with THRU_REQUIRE_LAB=1.
func startServer(t *testing.T) *server {
	t.Helper()
	daemon := ""
	for _, p := range []string{"sshd", "/usr/sbin/sshd"} { // sshd must be started by its full path
		if f, err := exec.LookPath(p); err == nil && daemon == "" {
			daemon = f
		}
	}
	_, err := exec.LookPath("ssh-keygen")
	if daemon == "" || err != nil {
		if os.Getenv("THRU_REQUIRE_LAB") == "1" {
			t.Fatalf("sshd and ssh-keygen are required here: %q, %v", daemon, err)
		}
		t.Skip("needs sshd and ssh-keygen (Debian: openssh-server, openssh-client)")
	}
	s := &server{dir: t.TempDir(), port: freePort(t)}
	s.log, s.config = filepath.Join(s.dir, "sshd.log"), filepath.Join(s.dir, "config")
	for _, key := range []string{"host", "user", "stranger", "otherhost"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(s.dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	s.write(t, "authorized", 0o600, s.read(t, "user.pub"))
	s.knows(t, "host.pub")
	s.client(t, "user")
	s.write(t, "sshd_config", 0o600, fmt.Sprintf(`ListenAddress 127.0.0.1
Port %d
HostKey %s/host
AuthorizedKeysFile %[2]s/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
LogLevel VERBOSE
MaxSessions 10
SetEnv PATH=%[2]s/bin:/usr/bin:/bin
`, s.port, s.dir))
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where its unprivileged half lives
			t.Skipf("sshd cannot run: %v", err)
		}
	}
	// It ends with its standard input, even where the test is killed.
	cmd := exec.Command("sh", "-c", `"$0" -D -f "$1" -E "$2" & cat; kill $!`, daemon, filepath.Join(s.dir, "sshd_config"), s.log)
	stdin, err := cmd.StdinPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	s.await(t)
	return s
}

// freePort returns a port that nothing listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// await waits until the daemon answers.
func (s *server) await(t *testing.T) {
	t.Helper()
	for range 200 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
		if err == nil {
			c.Close()
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("sshd does not listen: %s", s.read(t, "sshd.log"))
}

func (s *server) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s *server) write(t *testing.T, name string, mode os.FileMode, text string) {
	t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// knows makes the client expect a key of the host.
func (s *server) knows(t *testing.T, key string) {
	t.Helper()
	s.write(t, "known", 0o600, fmt.Sprintf("[127.0.0.1]:%d %s", s.port, s.read(t, key)))
}

// client writes the client's configuration with a key. It would accept every
// host key: thru's own option must come before it.
func (s *server) client(t *testing.T, key string) {
	t.Helper()
	s.write(t, "config", 0o600, fmt.Sprintf(`IdentityFile %s/%s
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile %[1]s/known
GlobalKnownHostsFile none
StrictHostKeyChecking no
ControlMaster auto
ControlPersist yes
ControlPath %[1]s/shared
RequestTTY force
`, s.dir, key))
}

// stub puts a program into the server's folder that is first in PATH.
func (s *server) stub(t *testing.T, name, script string) {
	t.Helper()
	s.write(t, "bin/"+name, 0o755, "#!/bin/sh\n"+script+"\n")
}

// logins counts the logins so far.
func (s *server) logins(t *testing.T) int {
	return strings.Count(s.read(t, "sshd.log"), "Accepted publickey")
}

// runner returns the runner under test.
func (s *server) runner(t *testing.T) *Remote {
	t.Helper()
	r := SSH("127.0.0.1", s.port)
	r.config = s.config
	t.Cleanup(func() { r.Close() })
	return r
}

// TestSSHReadsESXi reads a whole host: stubs replace uname and esxcli.
func TestSSHReadsESXi(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	sample := load(t, "esxi-7")
	for line, out := range sample.files {
		s.write(t, "out/"+strings.ReplaceAll(line, "/", "_"), 0o644, out)
	}
	for _, name := range []string{"uname", "esxcli", "vim-cmd", "ntpq"} {
		s.stub(t, name, fmt.Sprintf(`f="%s/out/$(echo "%s $*" | tr / _)"; test -f "$f" || { echo "no such command" >&2; exit 1; }; cat "$f"`, s.dir, name))
	}
	r := s.runner(t)
	system, err := Detect(t.Context(), r)
	if err != nil || system != "esxi" {
		t.Fatalf("it is %q, %v\n%s", system, err, s.read(t, "sshd.log"))
	}
	f, err := Read(t.Context(), system, r)
	if err != nil {
		t.Fatal(err)
	}
	have := flat(t, f)
	for line := range strings.Lines(sample.files["want"]) {
		if !strings.Contains(line, "no such command") {
			check(t, strings.TrimSpace(line), have, f)
		}
	}
	if n := s.logins(t); n != 1 {
		t.Errorf("%d logins for %d commands", n, len(f.Commands))
	}
	dir := r.login.dir
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close the folder %s is still there: %v", dir, err)
	}
	if _, err := r.Run(t.Context(), "uname"); err == nil {
		t.Error("a closed runner runs")
	}
}

// TestSSHArguments: arguments arrive unchanged, whatever they hold, with all
// shells of this system.
func TestSSHArguments(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.stub(t, "show", `for a in "$@"; do printf '<%s>' "$a"; done; echo; echo "$LC_ALL"`)
	r := s.runner(t)
	for _, args := range [][]string{
		{"plain", ""}, {"two words", "tab\tinside"}, {"'", `"`, `\`, `'\''`, "''"}, {"$HOME", "`id`", "$(id)", "${x}"},
		{"a;b", "a&b", "a|b", "a>b", "a<b", "a#b", "#", "~", "*", "?", "[a]", "{a,b}"}, {"!", "!!", "a!b", "'!'"},
		{"line\nbreak"}, {"-n", "--", "-oProxyCommand=x"}, {"ünïcödé"}, {"/^(brand|chip_id)$/"}, {"%h", "%%"},
	} {
		out, err := r.Run(t.Context(), "show", args...)
		want := "<" + strings.Join(args, "><") + ">\nC\n"
		if err != nil || string(out) != want {
			t.Errorf("%q arrived as %q, %v", args, out, err)
		}
		for _, shell := range []string{"sh", "dash", "bash", "csh", "tcsh", "ash"} {
			if _, err := exec.LookPath(shell); err != nil || strings.HasSuffix(shell, "csh") && strings.Contains(args[0], "\n") {
				continue
			}
			cmd := exec.Command(shell, "-c", remote(filepath.Join(s.dir, "bin/show"), args))
			if out, err := cmd.Output(); err != nil || string(out) != want {
				t.Errorf("%s made %q of %q, %v", shell, out, args, err)
			}
		}
	}
	if n := s.logins(t); n != 1 {
		t.Errorf("%d logins", n)
	}
}

// TestSSHFailures: each failure has a hint, and ends within its time limit.
func TestSSHFailures(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.stub(t, "fails", `echo half; echo "needs root: Operation not permitted" >&2; exit 3`)
	s.stub(t, "endless", `yes`)
	s.stub(t, "chatty", `i=0; while test $i -lt 2000; do echo "error $i, which is said at length" >&2; i=$((i+1)); done; echo done`)
	fails := func(r *Remote, program, message, hint string) {
		t.Helper()
		out, err := r.Run(t.Context(), program)
		if err == nil || !strings.Contains(err.Error(), message) || !strings.Contains(fault.Hint(err), hint) {
			t.Errorf("%s gave %.40q and %v, hint %q; want %q and %q", program, out, err, fault.Hint(err), message, hint)
		}
	}
	r := s.runner(t)
	out, err := r.Run(t.Context(), "fails")
	var exit *Exit
	if !errors.As(err, &exit) || exit.Code != 3 || string(out) != "half\n" || Why(err) != onlyRoot {
		t.Errorf("a command that fails: %q, %v", out, err)
	}
	if _, err := r.Run(t.Context(), "nosuchprogram"); err == nil || Why(err) != "this host has no such command" {
		t.Errorf("a missing command: %v", err)
	}
	fails(r, "endless", "more than", "")
	if out, err := r.Run(t.Context(), "chatty"); err != nil || string(out) != "done\n" {
		t.Errorf("a command that complains at length: %.40q, %v", out, err)
	}

	s.client(t, "stranger")
	fails(s.runner(t), "true", "Permission denied", "public key")
	s.client(t, "user")
	s.write(t, "known", 0o600, "")
	fails(s.runner(t), "true", "Host key verification failed", "never accepts a key")
	if known := s.read(t, "known"); known != "" {
		t.Errorf("an unknown key was accepted: %q", known)
	}
	s.knows(t, "otherhost.pub")
	fails(s.runner(t), "true", "Host key verification failed", "")
	s.knows(t, "host.pub")

	nobody := SSH("127.0.0.1", freePort(t))
	nobody.config = s.config
	fails(nobody, "true", "Connection refused", "enable SSH")
	if _, err := Read(t.Context(), "esxi", nobody); err == nil || !strings.Contains(err.Error(), "Connection refused") || fault.Hint(err) == "" {
		t.Errorf("reading a host that is not there: %v", err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	r = s.runner(t)
	if _, err := r.Run(late, "true"); err == nil {
		t.Error("a login after its context")
	}
	if _, err := r.Run(t.Context(), "true"); err != nil {
		t.Errorf("after a login that nobody waited for: %v", err)
	}
	for _, odd := range []string{"", "-oProxyCommand=touch /tmp/x"} {
		if _, err := SSH(odd, 0).Run(t.Context(), "true"); fault.Code(err) != fault.Usage {
			t.Errorf("destination %q: %v", odd, err)
		}
	}
}

// TestSSHHangs: a command that hangs is ended in time, and the connection
// serves the next one; a broken connection ends running commands at once.
func TestSSHHangs(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.stub(t, "hangs", `echo begun; echo $$ >>`+s.dir+`/pids; exec sleep 300`)
	s.stub(t, "breaks", `echo begun; kill -9 $PPID; kill -9 $(ps -o ppid= -p $PPID); exec sleep 300`)
	s.write(t, "pids", 0o644, "")
	t.Cleanup(func() {
		for _, pid := range strings.Fields(s.read(t, "pids")) {
			exec.Command("kill", pid).Run()
		}
	})
	r := s.runner(t)
	if _, err := r.Run(t.Context(), "true"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := r.Run(ctx, "hangs"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command that hangs: %v", err)
	}
	if out, err := r.Run(t.Context(), "echo", "next"); err != nil || string(out) != "next\n" {
		t.Errorf("the next command: %q, %v", out, err)
	}
	if n := s.logins(t); n != 1 {
		t.Errorf("%d logins", n)
	}
	l := r.login // the next command may notice that it has died
	l.cmd.Process.Kill()
	out, err := r.Run(t.Context(), "true")
	if err == nil || !strings.Contains(err.Error(), "ended") && !strings.Contains(err.Error(), "connection") {
		// Until the end of the connection is noticed ssh may log in by
		// itself: that is no error.
		if string(out) != "" || err != nil {
			t.Errorf("after the connection died: %q, %v", out, err)
		}
	}
	<-l.done
	if _, err := r.Run(t.Context(), "true"); err == nil {
		t.Error("a connection that ended goes on")
	}
	r.again = 0 // its time is over
	if out, err := r.Run(t.Context(), "echo", "back"); err != nil || string(out) != "back\n" {
		t.Errorf("the host is back: %q, %v", out, err)
	}

	r = s.runner(t)
	began := time.Now()
	var exit *Exit
	if out, err := r.Run(t.Context(), "breaks"); err == nil || errors.As(err, &exit) {
		t.Errorf("a connection that breaks in the middle: %q, %v", out, err)
	}
	if d := time.Since(began); d > commandTime {
		t.Errorf("it took %v to notice", d)
	}
}

// TestLocal: the rules of all runners hold for this machine's.
func TestLocal(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	out, err := Local().Run(t.Context(), "sh", "-c", "echo $LC_ALL; echo said >&2; exit 4")
	var exit *Exit
	if !errors.As(err, &exit) || exit.Code != 4 || exit.Stderr != "said" || string(out) != "C\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := Local().Run(t.Context(), "no-such-program"); Why(err) != "this host has no such command" {
		t.Errorf("a missing program: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Local().Run(ctx, "sleep", "300"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that hangs: %v", err)
	}
	if _, err := Local().Run(t.Context(), "yes"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("an endless output: %v", err)
	}
}
