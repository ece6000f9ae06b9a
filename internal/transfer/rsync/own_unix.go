//go:build unix

package rsync

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// own gives the program a session: without a terminal, on which it would ask for
// a password, and with its children in one group, which ends as a whole.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// gone returns when none of a group that was killed is left, or when its time is
// over: until then one of them may still make the file that it was about to.
func gone(cmd *exec.Cmd, most time.Duration) {
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH) {
			return
		}
	}
}
