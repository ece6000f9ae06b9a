//go:build !unix

package iperf3

import "thru/internal/fault"

// detachedVariable tells the process in the background that it is the one.
const detachedVariable = "THRU_IPERF3_DETACHED"

// detach is not possible here.
func detach() error {
	return fault.Failf("leave -D out, and start it as a service", "iperf3: this system has no daemons as iperf3 makes them")
}
