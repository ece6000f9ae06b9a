package bus

// HostAddrs lists the addresses of a device, or of this host: IPv4 first, and
// loopback only where there is nothing else.
func HostAddrs(device string) []string { return hostAddrs(device, false) }
