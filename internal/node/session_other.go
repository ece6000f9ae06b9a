//go:build !unix

package node

import "syscall"

// newSession: there are no sessions to begin.
func newSession() *syscall.SysProcAttr { return nil }
