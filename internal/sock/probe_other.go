//go:build !linux

package sock

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
