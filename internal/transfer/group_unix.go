//go:build unix

package transfer

import (
	"os/exec"
	"syscall"
)

// NewSession gives a program a session: without a terminal, on which it would ask for a
// password, and with its children in one group, which End ends as a whole. On Linux it
// gets the signal last where the thread that starts it ends: also when this process is
// killed.
func NewSession(cmd *exec.Cmd, last syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	atParentsEnd(cmd.SysProcAttr, last)
}

// End kills a program that is apart, with its children.
func End(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// Gone reports whether none of a group that was killed is left.
func Gone(cmd *exec.Cmd) bool { return syscall.Kill(-cmd.Process.Pid, 0) == syscall.ESRCH }
