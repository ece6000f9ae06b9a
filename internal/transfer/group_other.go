//go:build !unix

package transfer

import (
	"os/exec"
	"syscall"
)

// NewSession: the program is killed, its children see the end of their pipes.
func NewSession(*exec.Cmd, syscall.Signal) {}

// End kills it.
func End(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// Gone has no group to wait for.
func Gone(*exec.Cmd) bool { return true }
