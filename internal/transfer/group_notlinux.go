//go:build unix && !linux

package transfer

import "syscall"

// atParentsEnd: here a program ends when its output is closed, or the file is whole.
func atParentsEnd(*syscall.SysProcAttr, syscall.Signal) {}
