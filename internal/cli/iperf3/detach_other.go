//go:build !unix

package iperf3

import "thru/internal/fault"

// detachedVariable marks the process in the background.
const detachedVariable = "THRU_IPERF3_DETACHED"

// detach fails: this system has no daemons.
func detach() error {
	return fault.Failf("leave -D out, and start it as a service", "iperf3: this system does not support daemons")
}
