package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"thru/internal/measure"
)

// ethtool sends requests to a driver by ioctl (include/uapi/linux/ethtool.h);
// none needs a privilege. thru does not use package safchain/ethtool v0.7,
// since that passes addresses of Go variables as plain numbers, to which the
// kernel may write after the stack has moved, and since its map of counters
// keeps only one queue of drivers that repeat their names.
type ethtool struct{}

// String sets (enum ethtool_stringset).
const (
	setStats    = 1
	setFeatures = 4
)

// info requests the driver's name, versions and bus (ETHTOOL_GDRVINFO).
func (ethtool) info(name string) (d driverInfo, err error) {
	err = withSocket(func(fd int) error {
		i, err := unix.IoctlGetEthtoolDrvinfo(fd, name)
		if err != nil {
			return answered(err)
		}
		d = driverInfo{
			driver:   unix.ByteSliceToString(i.Driver[:]),
			version:  unix.ByteSliceToString(i.Version[:]),
			bus:      unix.ByteSliceToString(i.Bus_info[:]),
			firmware: unix.ByteSliceToString(i.Fw_version[:]),
		}
		return nil
	})
	return d, err
}

// features requests which features are active and which can be changed, by
// the kernel's names (ETHTOOL_GFEATURES).
func (ethtool) features(name string) (map[string]feature, error) {
	names, err := stringSet(name, setFeatures)
	if err != nil {
		return nil, err
	}
	blocks := (len(names) + 31) / 32
	b := command(unix.ETHTOOL_GFEATURES, uint32(blocks), 8+blocks*featureBlock)
	if err := ioctl(name, b); err != nil {
		return nil, err
	}
	return parseFeatures(names, b)
}

// settings requests the link modes (ETHTOOL_GLINKSETTINGS, since Linux 4.6):
// first the length of the masks, which the kernel returns as a negative
// number, then the masks.
func (ethtool) settings(name string) (linkSettings, error) {
	b := command(unix.ETHTOOL_GLINKSETTINGS, 0, sizeofLinkSettings)
	if err := ioctl(name, b); err != nil {
		return linkSettings{}, err
	}
	words := -int8(b[15])
	if words <= 0 {
		return linkSettings{}, errShort
	}
	b = command(unix.ETHTOOL_GLINKSETTINGS, 0, sizeofLinkSettings+3*4*int(words))
	b[15] = byte(words)
	if err := ioctl(name, b); err != nil {
		return linkSettings{}, err
	}
	return parseLinkSettings(b)
}

// channels requests the numbers of queues, configured and possible
// (ETHTOOL_GCHANNELS).
func (ethtool) channels(name string) (measure.Channels, error) {
	return asked(name, unix.ETHTOOL_GCHANNELS, channelWords, channelsOf)
}

// rings requests the ring sizes in descriptors (ETHTOOL_GRINGPARAM).
func (ethtool) rings(name string) (measure.Rings, error) {
	return asked(name, unix.ETHTOOL_GRINGPARAM, ringWords, ringsOf)
}

// coalescing requests the interrupt moderation (ETHTOOL_GCOALESCE).
func (ethtool) coalescing(name string) (measure.Coalesce, error) {
	return asked(name, unix.ETHTOOL_GCOALESCE, coalesceWords, coalesceOf)
}

// pause requests the flow control settings (ETHTOOL_GPAUSEPARAM).
func (ethtool) pause(name string) (measure.Pause, error) {
	return asked(name, unix.ETHTOOL_GPAUSEPARAM, pauseWords, pauseOf)
}

// asked sends one request whose answer has the given number of 32-bit words
// after the command.
func asked[T any](name string, cmd uint32, words int, of func([]uint32) T) (v T, err error) {
	b := command(cmd, 0, 4*(words+1))
	if err := ioctl(name, b); err != nil {
		return v, err
	}
	return answerOf(b, words, of)
}

// rss requests how flows are spread over queues (ETHTOOL_GRSSH): first the
// sizes of table and key, then both, then the hashed fields of each kind of
// flow (ETHTOOL_GRXFH), as far as the driver reports them.
func (ethtool) rss(name string) (measure.RSS, error) {
	b := command(unix.ETHTOOL_GRSSH, 0, sizeofRXFH)
	if err := ioctl(name, b); err != nil {
		return measure.RSS{}, err
	}
	table, key := binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:])
	if table > maxStrings || key > maxStrings {
		return measure.RSS{}, fmt.Errorf("the driver reports a table of %d entries and a key of %d bytes", table, key)
	}
	b = command(unix.ETHTOOL_GRSSH, 0, sizeofRXFH+4*int(table)+int(key))
	binary.NativeEndian.PutUint32(b[8:], table)
	binary.NativeEndian.PutUint32(b[12:], key)
	if err := ioctl(name, b); err != nil {
		return measure.RSS{}, err
	}
	r, err := parseRSS(b)
	if err != nil {
		return r, err
	}
	r.Fields = flowFields(name)
	if r.Table == 0 && len(slices.Concat(slices.Collect(maps.Values(r.Fields))...)) == 0 {
		return r, errUnknown // virtio without RSS does so: it only names a hash function
	}
	return r, nil
}

// flowFields requests the hashed fields of TCP and UDP over IPv4 and IPv6. A
// kind that the driver does not report is left out.
func flowFields(name string) map[string][]string {
	var all map[string][]string
	for flow, number := range map[string]uint32{"tcp4": 1, "udp4": 2, "tcp6": 5, "udp6": 6} {
		b := command(unix.ETHTOOL_GRXFH, number, 192) // struct ethtool_rxnfc
		if ioctl(name, b) != nil {
			continue
		}
		measure.Put(&all, flow, hashFields(binary.NativeEndian.Uint64(b[8:])))
	}
	return all
}

// counters requests the driver's own counters (ETHTOOL_GSTATS). Some drivers
// fetch them from their firmware, which takes milliseconds.
func (ethtool) counters(name string) (map[string]uint64, error) {
	names, err := stringSet(name, setStats)
	if err != nil {
		return nil, err
	}
	b := command(unix.ETHTOOL_GSTATS, uint32(len(names)), 8+8*roomy(len(names)))
	if err := ioctl(name, b); err != nil {
		return nil, err
	}
	n := binary.NativeEndian.Uint32(b[4:])
	if int(n) != len(names) {
		return nil, errors.New("the driver changed its list of counters while thru read it")
	}
	values := make([]uint64, n)
	for i := range values {
		values[i] = binary.NativeEndian.Uint64(b[8+8*i:])
	}
	return driverCounters(names, values), nil
}

// withSocket calls do with a socket of the calling thread's network
// namespace.
func withSocket(do func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("host: opening a socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	return do(fd)
}

// stringSet requests the names of a set (ETHTOOL_GSSET_INFO,
// ETHTOOL_GSTRINGS).
func stringSet(name string, set uint32) ([]string, error) {
	b := command(unix.ETHTOOL_GSSET_INFO, 0, 20)
	binary.NativeEndian.PutUint64(b[8:], 1<<set)
	if err := ioctl(name, b); err != nil {
		return nil, err
	}
	n := binary.NativeEndian.Uint32(b[16:])
	if binary.NativeEndian.Uint64(b[8:]) == 0 || n == 0 {
		return nil, errUnknown
	}
	if n > maxStrings {
		return nil, fmt.Errorf("the driver reports %d names", n)
	}
	b = command(unix.ETHTOOL_GSTRINGS, set, 12+gstringLen*roomy(int(n)))
	binary.NativeEndian.PutUint32(b[8:], n)
	if err := ioctl(name, b); err != nil {
		return nil, err
	}
	if got := binary.NativeEndian.Uint32(b[8:]); got != n {
		return nil, errors.New("the driver changed its list of counters while thru read it")
	}
	return splitStrings(b[12 : 12+gstringLen*int(n)]), nil
}

// roomy returns a buffer size for n entries with a reserve: old kernels write
// as many entries as the driver has by then, not as many as were requested.
func roomy(n int) int { return 2*n + 1024 }

// command returns the buffer of a request: two words, then room for the
// answer.
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

// ioctl sends one request about an interface; the kernel writes its answer to
// b.
func ioctl(name string, b []byte) error { return answered(request(name, b)) }

// request is ioctl with the kernel's unchanged error.
func request(name string, b []byte) error {
	if len(name) >= unix.IFNAMSIZ {
		return fmt.Errorf("%q is too long for an interface", name)
	}
	r := ifreq{data: unsafe.Pointer(&b[0])}
	copy(r.name[:], name)
	return withSocket(func(fd int) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); errno != 0 {
			return errno
		}
		return nil
	})
}

// Ethtool sends a request about an interface of the calling thread's network
// namespace to its driver; b is a struct of include/uapi/linux/ethtool.h that
// begins with its command, and the driver writes its answer to it. Requests
// may change settings, as those of package tune do. The error is the
// kernel's.
func Ethtool(iface string, b []byte) error {
	if len(b) < 4 {
		return errShort
	}
	return request(iface, b)
}

// answered puts the two usual errors of a driver into words. Other errors
// stay as they are; ENODEV means that the interface is gone.
func answered(err error) error {
	switch err {
	case unix.EOPNOTSUPP:
		return errUnknown
	case unix.EPERM, unix.EACCES:
		return errors.New("only root may read it")
	}
	return err
}
