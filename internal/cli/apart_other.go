//go:build !unix

package cli

import "syscall"

// apart: there are no sessions to begin.
func apart() *syscall.SysProcAttr { return nil }
