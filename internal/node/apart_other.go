//go:build !unix

package node

import "syscall"

// apart: there are no sessions to begin.
func apart() *syscall.SysProcAttr { return nil }
