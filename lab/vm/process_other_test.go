//go:build !linux

package vm

import "errors"

// emulator is QEMU's program.
const emulator = "qemu-system-x86_64"

// run returns an error: a site needs namespaces and taps.
func (v *VM) run() error { return errors.New("not on this system: it needs Linux") }
