package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtool asks a driver by ioctl (include/uapi/linux/ethtool.h); none of its
// questions needs a privilege. It is our own because package safchain/ethtool
// v0.7 passes the addresses of Go variables on as plain numbers, which the
// kernel then writes to after the stack may have moved, and because its map
// of counters keeps one queue only of drivers that repeat their names.
type ethtool struct{}

// maxStrings bounds a string set; drivers with one set per queue reach some thousands.
const maxStrings = 1 << 16

// String sets (enum ethtool_stringset).
const (
	setStats    = 1
	setFeatures = 4
)

// info asks for the driver's name, version and bus (ETHTOOL_GDRVINFO).
func (e ethtool) info(name string) (d driverInfo, err error) {
	err = e.with(func(fd int) error {
		i, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
		if err != nil {
			return err
		}
		d = driverInfo{
			driver:  unix.ByteSliceToString(i.Driver[:]),
			version: unix.ByteSliceToString(i.Version[:]),
			bus:     unix.ByteSliceToString(i.Bus_info[:]),
		}
		return nil
	})
	return d, err
}

// features asks which features are active, by the kernel's names (ETHTOOL_GFEATURES).
func (e ethtool) features(name string) (all map[string]bool, err error) {
	err = e.with(func(fd int) error {
		names, err := stringSet(fd, name, setFeatures)
		if err != nil {
			return err
		}
		blocks := (len(names) + 31) / 32
		const block = 16 // available, requested, active, never changed
		b := command(unix.ETHTOOL_GFEATURES, uint32(blocks), 8+blocks*block)
		if err := ioctl(fd, name, b); err != nil {
			return err
		}
		all = make(map[string]bool, len(names))
		for i, n := range names {
			active := binary.NativeEndian.Uint32(b[8+i/32*block+8:])
			all[n] = active&(1<<(i%32)) != 0
		}
		delete(all, "")
		return nil
	})
	return all, err
}

// counters asks for the driver's own counters (ETHTOOL_GSTATS). Some drivers
// ask their firmware for them, which takes milliseconds.
func (e ethtool) counters(name string) (all map[string]uint64, err error) {
	err = e.with(func(fd int) error {
		names, err := stringSet(fd, name, setStats)
		if err != nil {
			return err
		}
		b := command(unix.ETHTOOL_GSTATS, uint32(len(names)), 8+8*roomy(len(names)))
		if err := ioctl(fd, name, b); err != nil {
			return err
		}
		n := binary.NativeEndian.Uint32(b[4:])
		if int(n) != len(names) {
			return errors.New("the driver changed its counters in the middle of the reading")
		}
		values := make([]uint64, n)
		for i := range values {
			values[i] = binary.NativeEndian.Uint64(b[8+8*i:])
		}
		all = driverCounters(names, values)
		return nil
	})
	return all, err
}

// with opens a socket of the calling thread's network namespace for do.
func (ethtool) with(do func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("host: opening a socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	return do(fd)
}

// stringSet asks for the names of a set (ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS).
func stringSet(fd int, name string, set uint32) ([]string, error) {
	b := command(unix.ETHTOOL_GSSET_INFO, 0, 20)
	binary.NativeEndian.PutUint64(b[8:], 1<<set)
	if err := ioctl(fd, name, b); err != nil {
		return nil, err
	}
	n := binary.NativeEndian.Uint32(b[16:])
	if binary.NativeEndian.Uint64(b[8:]) == 0 || n == 0 {
		return nil, errors.New("the driver has none")
	}
	if n > maxStrings {
		return nil, fmt.Errorf("the driver says that it has %d", n)
	}
	b = command(unix.ETHTOOL_GSTRINGS, set, 12+gstringLen*roomy(int(n)))
	binary.NativeEndian.PutUint32(b[8:], n)
	if err := ioctl(fd, name, b); err != nil {
		return nil, err
	}
	if got := binary.NativeEndian.Uint32(b[8:]); got != n {
		return nil, errors.New("the driver changed its counters in the middle of the reading")
	}
	return splitStrings(b[12 : 12+gstringLen*int(n)]), nil
}

// roomy is a size for n entries with a reserve: old kernels write as many as
// the driver has by then, not as many as they were asked for.
func roomy(n int) int { return 2*n + 1024 }

// command makes the buffer of a request: two words, then room for the answer.
func command(cmd, word uint32, size int) []byte {
	b := make([]byte, size)
	binary.NativeEndian.PutUint32(b, cmd)
	binary.NativeEndian.PutUint32(b[4:], word)
	return b
}

// ifreq is struct ifreq with ifr_data (netdevice(7)). Data is a pointer, not
// a number, so that the garbage collector sees it.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// ioctl sends one request about an interface; the kernel answers into b.
func ioctl(fd int, name string, b []byte) error {
	if len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("%q is too long for an interface", name)
	}
	r := ifreq{data: unsafe.Pointer(&b[0])}
	copy(r.name[:], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}
