//go:build !unix

package transfer

import (
	"os/exec"
	"syscall"
)

// NewSession does nothing: on this system only the program is killed, and its
// children see the end of their pipes.
func NewSession(*exec.Cmd, syscall.Signal) {}

// End kills the program.
func End(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// Gone returns true: there is no group to wait for.
func Gone(*exec.Cmd) bool { return true }
