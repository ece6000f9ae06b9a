package sock

import (
	"errors"
	"runtime"
	"syscall"
)

// Is reports whether err is an error of the system's sockets, whose numbers differ on Windows from those of package syscall.
func Is(err error, want syscall.Errno) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && (errno == want || runtime.GOOS == "windows" && errno == winsock(want))
}

// winsock returns the number of Windows Sockets; 0 for other errors.
func winsock(e syscall.Errno) syscall.Errno {
	switch e {
	case syscall.EMSGSIZE:
		return 10040
	case syscall.EAFNOSUPPORT:
		return 10047
	case syscall.EADDRINUSE:
		return 10048
	case syscall.EADDRNOTAVAIL:
		return 10049
	case syscall.ENETUNREACH:
		return 10051
	case syscall.EPIPE: // sending on a connection that is gone (WSAECONNABORTED)
		return 10053
	case syscall.ECONNRESET:
		return 10054
	case syscall.ENOBUFS:
		return 10055
	case syscall.ECONNREFUSED:
		return 10061
	case syscall.EHOSTUNREACH:
		return 10065
	}
	return 0
}
