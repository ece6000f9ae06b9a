package rsync

import (
	"os/exec"
	"syscall"
)

// endWithParent has the program end, and end its children, when the thread that
// starts it does: also when this process is killed.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM }
