//go:build unix

package node

import "syscall"

// newSession has a process begin a session of its own (setsid(2)).
func newSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
