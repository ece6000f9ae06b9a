//go:build !linux

package sock

import (
	"fmt"
	"net"
	"runtime"
	"time"
)

// BufferOverhead is how many times the usable size the system reports for a
// socket buffer; only Linux doubles it.
const BufferOverhead = 1

// ReadTCPInfo returns 0: the layout here is not Linux's.
func ReadTCPInfo(uintptr, []byte) int { return 0 }

// AvailableCongestion returns nil: this system has no common way to ask.
func AvailableCongestion() []string { return nil }

func unsupported(what string) error {
	return fmt.Errorf("%s cannot be set on %s", what, runtime.GOOS)
}

// setDontFragment is not offered: each system has an option of its own for it.
func setDontFragment(uintptr, bool) error { return unsupported("don't fragment") }

func setUserTimeout(uintptr, time.Duration) error { return nil }

// AskPeer does nothing: where it could, the answers are not counted.
func AskPeer(uintptr) error { return unsupported("asking the peer") }

func setLongestRetry(uintptr, time.Duration) error { return nil }

func setArrivals(uintptr, int) error { return nil }

// Arrival returns the zero time at once: when data arrived is not known here.
func Arrival(net.Conn) time.Time { return time.Time{} }

// Drops returns false: the socket's own drops are not known here.
func Drops(uintptr) (int64, bool) { return 0, false }

// Queued returns 0: what waits in a socket is not known here.
func Queued(uintptr) int { return 0 }

// SendQueued is not known here.
func SendQueued(uintptr) int64 { return -1 }

// Unread returns false: what waits for the program is not known here.
func Unread(uintptr) (int, bool) { return 0, false }

// IncomingCPU returns false: which CPU took a packet in is not known here.
func IncomingCPU(uintptr) (int, bool) { return 0, false }
