//go:build unix

package node

import "syscall"

// apart has a process begin a session of its own (setsid(2)).
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
