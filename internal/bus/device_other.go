//go:build !linux

package bus

import (
	"runtime"
	"syscall"

	"thru/internal/fault"
)

// bindDevice is of Linux; elsewhere a name is an error.
func bindDevice(device string) (func(network, address string, c syscall.RawConn) error, error) {
	if device == "" {
		return nil, nil
	}
	return nil, fault.Usagef("name an address of the device instead: --bind ADDRESS",
		"bus: binding to the device %s: not possible on %s", device, runtime.GOOS)
}
