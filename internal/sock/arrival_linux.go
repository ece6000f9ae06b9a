package sock

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setArrivals makes the kernel timestamp arriving packets (SO_TIMESTAMPNS, socket(7)).
func setArrivals(fd uintptr, on int) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, on)
}

// Arrival waits for the next byte of a connection with Options.Arrivals and returns when its packet arrived, however late this process reads it. It does not
// consume the byte, and it ends the kernel's timestamping. It returns the zero time where the arrival is not known.
func Arrival(c net.Conn) (at time.Time) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return at
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return at
	}
	var b [1]byte // one byte, because TCP returns the time of the last packet that is read
	oob := make([]byte, HeaderRoom)
	raw.Read(func(fd uintptr) bool {
		_, n, _, _, err := unix.Recvmsg(int(fd), b[:], oob, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if err == unix.EAGAIN {
			return false
		}
		now := time.Now()
		setArrivals(fd, 0)
		if stamp := ParseHeader(oob[:max(n, 0)]).At; !stamp.IsZero() {
			at = now.Add(-max(0, time.Duration(now.UnixNano()-stamp.UnixNano())))
		}
		return true
	})
	return at
}
