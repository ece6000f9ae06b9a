package sock

import "golang.org/x/sys/windows"

func setDevice(uintptr, string) error { return unsupported("a device") }

func setCongestion(uintptr, string) error { return unsupported("congestion control") }

func setMSS(uintptr, int) error { return unsupported("the MSS") }

// Windows ignores a program's IP_TOS unless a policy allows it, so DSCP counts as unsupported.
func setDSCP(uintptr, int, bool) error { return unsupported("DSCP") }

func setSendBuffer(fd uintptr, n int) error {
	return windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_SNDBUF, n)
}

func setRecvBuffer(fd uintptr, n int) error {
	return windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_RCVBUF, n)
}

// ReadGranted reads the options of fd; unreadable ones stay zero.
func ReadGranted(fd uintptr) Granted {
	var g Granted
	g.SendBuffer, _ = windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_SNDBUF)
	g.RecvBuffer, _ = windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_RCVBUF)
	return g
}

// On Windows SO_REUSEADDR would let two programs share a port.
func setReuseAddr(uintptr) error { return nil }
