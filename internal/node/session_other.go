//go:build !unix

package node

import "syscall"

// newSession does nothing: this system has no sessions.
func newSession() *syscall.SysProcAttr { return nil }
