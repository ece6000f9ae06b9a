//go:build !windows

package service

import "os"

// Attach connects a process to the service manager of Windows, if that started it; elsewhere it does nothing.
func Attach(string, chan<- os.Signal) (log *os.File, ended func(int)) { return nil, func(int) {} }
