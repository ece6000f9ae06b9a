package bus

import (
	"errors"
	"fmt"
	"syscall"

	"thru/internal/fault"
)

// bindDevice returns a control function for sockets that binds them to a
// device or VRF (socket(7), SO_BINDTODEVICE); nil for an empty name.
func bindDevice(device string) (func(network, address string, c syscall.RawConn) error, error) {
	if device == "" {
		return nil, nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var bound error
		err := c.Control(func(fd uintptr) { bound = syscall.BindToDevice(int(fd), device) })
		if err = errors.Join(err, bound); err == nil {
			return nil
		}
		hint := "`ip link` lists the devices"
		if errors.Is(err, syscall.EPERM) {
			hint = "older kernels let only root do this, and none lets another rebind: run as root"
		}
		return fault.Failf(hint, "%w", fmt.Errorf("binding to the device %s: %w", device, err))
	}, nil
}
