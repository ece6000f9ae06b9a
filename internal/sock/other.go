//go:build !linux

package sock

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"
)

// BufferOverhead is the reported size of a socket buffer divided by its usable size; only Linux doubles it.
const BufferOverhead = 1

// ReadTCPInfo returns 0: this system's layout differs from Linux's.
func ReadTCPInfo(uintptr, []byte) int { return 0 }

// AvailableCongestion returns nil: there is no common interface for it.
func AvailableCongestion() []string { return nil }

func unsupported(what string) error {
	return fmt.Errorf("%s cannot be set on %s", what, runtime.GOOS)
}

// setDontFragment is not available: each system has its own option.
func setDontFragment(uintptr, bool) error { return unsupported("don't fragment") }

func setUserTimeout(uintptr, time.Duration) error { return nil }

// AskPeer is not available: this system does not count the answers.
func AskPeer(uintptr) error { return unsupported("asking the peer") }

func setLongestRetry(uintptr, time.Duration) error { return nil }

func setArrivals(uintptr, int) error { return nil }

// Arrival returns the zero time at once: this system does not report arrival times.
func Arrival(net.Conn) time.Time { return time.Time{} }

// Drops returns false: this system does not report the drops of a socket.
func Drops(uintptr) (int64, bool) { return 0, false }

// Queued returns 0: this system does not report the queue of a socket.
func Queued(uintptr) int { return 0 }

// SendQueued returns -1: not known on this system.
func SendQueued(uintptr) int64 { return -1 }

// Unread returns false: this system does not report unread bytes.
func Unread(uintptr) (int, bool) { return 0, false }

// IncomingCPU returns nil: this system does not report the CPU that received a packet.
func IncomingCPU(uintptr) *int { return nil }

// PathMTU returns 0: not known on this system.
func PathMTU(uintptr) int { return 0 }

// WantDestination is not available: each system has its own option.
func WantDestination(*net.UDPConn) error { return unsupported("the destination of datagrams") }

// Diag is not available: other systems have their own interfaces.
type Diag struct{}

// OpenDiag returns an error: other systems have their own interfaces.
func OpenDiag() (*Diag, error) {
	return nil, fmt.Errorf("sock: thru cannot read connections of other programs on %s", runtime.GOOS)
}

// Find returns ErrNoConnection.
func (*Diag) Find(_, _ netip.AddrPort) (Connection, error) { return Connection{}, ErrNoConnection }

// Close does nothing.
func (*Diag) Close() error { return nil }

// SaveSYN is not available: this system keeps no SYN.
func SaveSYN(uintptr) error { return unsupported("keeping the SYN") }

// SavedSYN is not available: this system keeps no SYN.
func SavedSYN(uintptr) ([]byte, error) { return nil, unsupported("keeping the SYN") }

// HeaderRoom is 0: datagrams have no control messages here.
const HeaderRoom = 0

// SetProbe is not available: each system has its own options.
func SetProbe(uintptr, bool) error { return unsupported("the IP header of datagrams") }

// SetHeaders is not available: each system has its own options.
func SetHeaders(uintptr, bool, int) error { return unsupported("the IP header of datagrams") }

// AppendSource returns the buffer as it is: this system cannot set the source of single datagrams.
func AppendSource(b []byte, _ netip.Addr) []byte { return b }

// ParseHeader returns an unknown header.
func ParseHeader([]byte) Header { return Header{TOS: -1, TTL: -1} }

// MarkControl returns nil: this system cannot set the TOS byte of single datagrams.
func MarkControl(bool, int) []byte { return nil }

// TooBig returns nil: this system does not report ICMP messages.
func TooBig(uintptr) []PacketTooBig { return nil }

// ReadStack returns unknown settings.
func ReadStack() Stack { return Stack{} }
