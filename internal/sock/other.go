//go:build !linux

package sock

import (
	"fmt"
	"net"
	"net/netip"
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

// IncomingCPU returns nil: which CPU took a packet in is not known here.
func IncomingCPU(uintptr) *int { return nil }

// PathMTU returns 0: it is not known here.
func PathMTU(uintptr) int { return 0 }

// DestinationRoom is none: nothing comes beside a datagram.
const DestinationRoom = 0

// WantDestination is not offered: each system has an option of its own for it.
func WantDestination(*net.UDPConn) error { return unsupported("the destination of datagrams") }

// Destination returns false: it is not known here.
func Destination([]byte) (netip.Addr, bool) { return netip.Addr{}, false }

// Diag is not offered: other systems have ways of their own.
type Diag struct{}

// OpenDiag is not offered: other systems have ways of their own.
func OpenDiag() (*Diag, error) {
	return nil, fmt.Errorf("sock: connections of other programs are not read on %s", runtime.GOOS)
}

// Find finds nothing here.
func (*Diag) Find(_, _ netip.AddrPort) (Connection, error) { return Connection{}, ErrNoConnection }

// Close does nothing here.
func (*Diag) Close() error { return nil }

// SaveSYN is not offered: this system keeps no SYN.
func SaveSYN(uintptr) error { return unsupported("keeping the SYN") }

// SavedSYN is not offered: this system keeps no SYN.
func SavedSYN(uintptr) ([]byte, error) { return nil, unsupported("keeping the SYN") }

// HeaderRoom is none: nothing comes beside a datagram.
const HeaderRoom = 0

// SetProbe is not offered: each system has options of its own for it.
func SetProbe(uintptr, bool) error { return unsupported("the IP header of datagrams") }

// ParseHeader knows nothing here.
func ParseHeader([]byte) Header { return Header{TOS: -1, TTL: -1} }

// MarkControl is nil: datagrams have no mark of their own here.
func MarkControl(bool, int) []byte { return nil }

// TooBig is nil: what routers say is not known here.
func TooBig(uintptr) []int { return nil }

// ReadStack knows nothing here.
func ReadStack() Stack { return Stack{} }
