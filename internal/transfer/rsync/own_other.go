//go:build !unix

package rsync

import (
	"os/exec"
	"time"
)

// own: the program is killed, its children see the end of their pipes.
func own(*exec.Cmd) {}

// gone has no group to wait for.
func gone(*exec.Cmd, time.Duration) {}
