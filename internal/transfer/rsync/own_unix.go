//go:build unix

package rsync

import (
	"os/exec"
	"syscall"
)

// own gives the program a session: without a terminal, on which it would ask for
// a password, and with its children in one group, which ends as a whole.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
