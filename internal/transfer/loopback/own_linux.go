package loopback

import (
	"os/exec"
	"syscall"
)

// own gives a program a session, so that it and its children end as a whole, and has
// the kernel end it where this process is killed.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// end kills it with its children.
func end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
