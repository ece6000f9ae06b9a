package transfer

import "syscall"

func atParentsEnd(a *syscall.SysProcAttr, s syscall.Signal) { a.Pdeathsig = s }
