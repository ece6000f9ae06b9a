//go:build unix

package transfer

import (
	"os/exec"
	"syscall"
)

// NewSession runs a program in its own session: without a terminal, on which
// it would ask for a password, and with its children in one process group,
// which End kills. On Linux the program gets the signal last when the thread
// that started it ends, also when this process is killed.
func NewSession(cmd *exec.Cmd, last syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	atParentsEnd(cmd.SysProcAttr, last)
}

// End kills a program in its own session, with its children.
func End(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// Gone reports whether all processes of a killed group have ended.
func Gone(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, 0) == syscall.ESRCH }
