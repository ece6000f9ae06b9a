//go:build unix && !linux

package loopback

import (
	"os/exec"
	"syscall"
)

// own gives a program a session, so that it and its children end as a whole.
func own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// end kills it with its children.
func end(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
