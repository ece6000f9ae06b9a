package wire

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// What the owner of a TAP device accepts in super-packets (linux/if_tun.h);
// the last two are missing before Linux 6.2.
const (
	offloadCsum = 0x01
	offloadTSO  = 0x02 | 0x04
	offloadUSO  = 0x20 | 0x40
)

// openTAP makes a TAP device and returns its descriptor, which does not block.
// The device is gone when it is closed.
func openTAP(e End, noOffloads bool) (fd int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Never unlocked: the thread ends with the goroutine, since it may be in another namespace.
		runtime.LockOSThread()
		if err = enter(e.Netns); err == nil {
			fd, err = makeTAP(e.Dev, noOffloads)
		}
	}()
	<-done
	if err != nil {
		return -1, fmt.Errorf("wire: making the device %s in %q: %w", e.Dev, e.Netns, err)
	}
	return fd, nil
}

// enter takes the calling thread into a network namespace.
func enter(path string) error {
	if path == "" {
		return nil
	}
	ns, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Setns(ns, unix.CLONE_NEWNET), unix.Close(ns))
}

// makeTAP makes a device in the thread's namespace.
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
