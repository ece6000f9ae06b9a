//go:build !linux

package stamp

// polledOf returns the socket as it is: here the kernel does not note when packets arrive.
func polledOf(s *socket) packetConn { return s }
