//go:build unix

package node

import "syscall"

// newSession starts a process in its own session (setsid(2)).
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
