package lab_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/lab"
)

// sshd is a real daemon in a host, with its own keys and configuration, a folder for what thru copies there,
// and a folder of programs first in PATH.
type sshd struct {
	host *lab.Host
	dir  string
	addr string
	cmd  *exec.Cmd
}

// startSSHD starts the daemon in a host at an address. config adds lines to its configuration; before are
// commands that run first, in its own mount namespace, where DIR is its folder.
func startSSHD(t *testing.T, h *lab.Host, addr, config, before string) *sshd {
	t.Helper()
	lab.Require(t, lab.Program("ssh"), lab.Program("ssh-keygen"), lab.Program("/usr/sbin/sshd"))
	s := &sshd{host: h, dir: t.TempDir(), addr: addr}
	for _, key := range []string{"host", "user", "stranger"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path(key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	for _, dir := range []string{"tmp", "bin", "home"} {
		if err := os.Mkdir(s.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // home of its unprivileged process
		t.Fatal(err)
	}
	s.write(t, "authorized", 0o600, s.read(t, "user.pub"))
	s.write(t, "sshd_config", 0o600, fmt.Sprintf(`ListenAddress %s
HostKey %s/host
AuthorizedKeysFile %[2]s/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv TMPDIR=%[2]s/tmp PATH=%[2]s/bin:/usr/bin:/bin
%s
`, addr, s.dir, config))
	s.run(t, strings.ReplaceAll(before, "DIR", s.dir))
	return s
}

// run starts the daemon, after some commands.
func (s *sshd) run(t *testing.T, before string) {
	t.Helper()
	s.cmd = s.host.Command(context.Background(), "sh", "-c", before+"\nexec /usr/sbin/sshd -D -f "+s.path("sshd_config")+" -E "+s.path("log"))
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		if t.Failed() {
			t.Logf("sshd: %s", shorten(s.read(t, "log")))
		}
	})
	lab.Eventually(t, 10*time.Second, "sshd listens", func() bool { return len(s.host.Sockets()) > 0 })
}

func (s *sshd) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sshd) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s *sshd) write(t *testing.T, name string, mode os.FileMode, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// stub puts a program into the daemon's first folder of PATH.
func (s *sshd) stub(t *testing.T, name, script string) {
	t.Helper()
	s.write(t, "bin/"+name, 0o755, "#!/bin/sh\n"+script+"\n")
}

// sshClient returns the environment of a thru whose ssh logs in with a key, and knows the host keys of some
// daemons.
func sshClient(t *testing.T, user string, known ...*sshd) []string {
	t.Helper()
	dir := t.TempDir()
	hosts := ""
	for _, s := range known {
		hosts += s.addr + " " + s.read(t, "host.pub")
	}
	for name, text := range map[string]string{
		"known": hosts,
		"config": fmt.Sprintf("IdentityFile %s\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile %s/known\nGlobalKnownHostsFile none\nControlMaster auto\nControlPersist yes\nControlPath %[2]s/shared\nRequestTTY force\n",
			user, dir),
		"ssh": "#!/bin/sh\nexec /usr/bin/ssh -F " + dir + "/config \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
}

// pidsOf lists the processes of a host whose name begins with a text.
func pidsOf(h *lab.Host, name string) []int {
	var found []int
	for _, pid := range h.Pids() {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && strings.HasPrefix(string(comm), name) {
			found = append(found, pid)
		}
	}
	return found
}

// kill kills processes with SIGKILL; there must be one.
func kill(t *testing.T, pids ...int) {
	t.Helper()
	if len(pids) == 0 {
		t.Error("there is no process to kill")
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL) // it may have ended together with another
	}
}

// eventuallyClean waits until only the daemon runs there, and no file is left.
func (s *sshd) eventuallyClean(t *testing.T, limit time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		pids := s.host.Pids()
		// The daemon's mount namespace may have file systems that are not visible here.
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/root%s/*/thru-*", s.cmd.Process.Pid, s.dir))
		if err != nil {
			t.Fatal(err)
		}
		if len(pids) == 1 && len(files) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v there are %d processes, and the files %q", limit, len(pids), files)
		}
	}
}
