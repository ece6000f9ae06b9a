package iperf3

import "thru/internal/sock"

// pathMTU is what the kernel takes for the MTU of the path of a socket; 0 is unknown.
func pathMTU(fd uintptr) int { return sock.PathMTU(fd) }
