package wire

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Super-packets that the owner of a TAP device accepts (linux/if_tun.h); the last two are missing before
// Linux 6.2.
const (
	offloadCsum = 0x01
	offloadTSO  = 0x02 | 0x04
	offloadUSO  = 0x20 | 0x40
)

// openTAP creates a TAP device and returns its non-blocking descriptor. Closing it removes the device.
func openTAP(e End, noOffloads bool) (fd int, err error) {
	fd = -1
	err = Inside(e.Netns, func() (err error) {
		fd, err = makeTAP(e.Dev, noOffloads)
		return err
	})
	if err != nil {
		return fd, fmt.Errorf("wire: making the device %s in %q: %w", e.Dev, e.Netns, err)
	}
	return fd, nil
}

// Inside calls do in a network namespace; an empty path is the caller's. What do creates there, such as a
// socket, stays in it.
func Inside(path string, do func() error) error {
	if path == "" {
		return do()
	}
	there, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(there)
	runtime.LockOSThread()
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer unix.Close(home)
	if err = unix.Setns(there, unix.CLONE_NEWNET); err == nil {
		err = do()
	}
	// Switching back is essential: the first thread of a process never ends, and its namespace counts as that
	// of the process.
	if back := unix.Setns(home, unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back) // still locked: no other goroutine may run in that namespace
	}
	runtime.UnlockOSThread()
	return err
}

// makeTAP creates a device in the thread's namespace.
func makeTAP(dev string, noOffloads bool) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := setUpTAP(fd, dev, noOffloads); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func setUpTAP(fd int, dev string, noOffloads bool) error {
	request, err := unix.NewIfreq(dev)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, vnetSize); err != nil {
		return err
	}
	if noOffloads {
		return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0)
	}
	if unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloadCsum|offloadTSO|offloadUSO) == nil {
		return nil
	}
	return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloadCsum|offloadTSO)
}
