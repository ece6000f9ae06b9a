package live

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
)

// geometry is the shape of a ring. The reader gets a block when it is full,
// or when its time is over.
type geometry struct {
	blockBytes, blocks int
	retire             time.Duration
}

// standard returns a ring of 90 000 packets: at a million a second the reader
// may be off its CPU for 90 ms.
func standard() geometry { return geometry{256 << 10, 64, 32 * time.Millisecond} }

// Offsets in a block (linux/if_packet.h: tpacket_block_desc, tpacket_hdr_v1,
// and sockaddr_ll after the header of each packet).
const (
	blockStatusAt = 8
	blockCountAt  = 12
	blockFirstAt  = 16
	addressAt     = unix.SizeofTpacket3Hdr
	frameBytes    = 2048 // only determines the number of frames: blocks are filled without gaps
)

// Ring is a running capture.
type Ring struct {
	ending sync.Mutex // held by Stop and Close

	socket int
	wake   int // eventfd that wakes the reader at the end
	ring   []byte
	shape  geometry
	most   int64
	next   int // the next block to come from the kernel

	kept         kept
	full         bool
	began, ended time.Time
	cpuNs        int64
	err          error

	read chan struct{} // closed when the reader has ended
}

// Possible returns nil where this process may capture, or an error with a
// hint.
func Possible() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	return unix.Close(fd)
}

// refused explains why the packet socket could not be opened.
func refused(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fault.Failf("run thru as root, or give the program the capability once: setcap cap_net_raw+ep /path/to/thru",
			"live: capturing packets needs CAP_NET_RAW: %w", err)
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fault.Failf("use a kernel with packet sockets (CONFIG_PACKET)", "live: capturing packets: %w", err)
	}
	return fmt.Errorf("live: opening a packet socket: %w", err)
}

// Start starts a capture, in the network namespace of the calling thread.
// When it returns, matching packets are captured.
func Start(c Config) (*Ring, error) {
	r, err := open(c, standard())
	if err != nil {
		return nil, err
	}
	go r.follow()
	return r, nil
}

// open is Start without the reader.
func open(c Config, shape geometry) (_ *Ring, err error) {
	if err := check(c); err != nil {
		return nil, err
	}
	r := &Ring{socket: -1, wake: -1, shape: shape, most: c.Packets, read: make(chan struct{})}
	if r.most <= 0 {
		r.most = DefaultPackets
	}
	defer func() {
		if err != nil {
			r.free()
		}
	}()
	// Without a protocol the socket receives nothing: no packet comes before
	// the filter is set.
	if r.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, refused(err)
	}
	if r.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("live: making an eventfd: %w", err)
	}
	if err := r.attach(filter(c)); err != nil {
		return nil, fmt.Errorf("live: setting the filter: %w", err)
	}
	if err := r.mapRing(); err != nil {
		return nil, fmt.Errorf("live: making the ring: %w", err)
	}
	r.began = time.Now()
	if err := r.listen(unix.ETH_P_ALL); err != nil {
		return nil, fmt.Errorf("live: listening at all interfaces: %w", err)
	}
	return r, nil
}

// check refuses a Config that selects nothing or has impossible values.
func check(c Config) error {
	first, last := c.Ports[0], c.Ports[1]
	if first < 0 || last < first || last > 65535 {
		return fault.Usagef("", "live: %d to %d is not a range of ports", first, last)
	}
	if len(c.Peers) > MostPeers {
		return fault.Usagef("", "live: %d peers; the filter supports at most %d", len(c.Peers), MostPeers)
	}
	if last == 0 && len(c.Peers) == 0 {
		return fault.Usagef("", "live: nothing to capture: no ports and no peers")
	}
	return nil
}

// networkOrder converts a 16-bit number to network byte order.
func networkOrder(v uint16) uint16 {
	b := [2]byte{byte(v >> 8), byte(v)}
	return *(*uint16)(unsafe.Pointer(&b))
}

// attach sets the socket's filter, in place of the former one.
func (r *Ring) attach(code []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	return unix.SetsockoptSockFprog(r.socket, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
}

// mapRing creates the ring in the kernel, and maps it.
func (r *Ring) mapRing() error {
	if err := unix.SetsockoptInt(r.socket, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return err
	}
	size := r.shape.blockBytes * r.shape.blocks
	request := unix.TpacketReq3{
		Block_size: uint32(r.shape.blockBytes), Block_nr: uint32(r.shape.blocks),
		Frame_size: frameBytes, Frame_nr: uint32(size / frameBytes),
		Retire_blk_tov: uint32(r.shape.retire.Milliseconds()),
	}
	if err := unix.SetsockoptTpacketReq3(r.socket, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return err
	}
	var err error
	r.ring, err = unix.Mmap(r.socket, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

// follow reads the ring until it is told to end and nothing is left, or until
// the limit. It has its own thread, whose CPU time is the cost of the
// capture.
func (r *Ring) follow() {
	defer close(r.read)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadCPU()
	defer func() { r.cpuNs = threadCPU() - before }()

	ending := false
	for {
		for r.takeBlock() {
		}
		if r.full {
			r.err = r.unhook()
			return
		}
		events, err := r.sleep(ending)
		if events.stop {
			ending, err = true, r.unhook()
		}
		if err != nil || ending && events == (woken{}) {
			r.err = err
			return
		}
	}
}

// threadCPU returns the CPU time of the calling thread, in ns.
func threadCPU() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// takeBlock keeps the packets of the next block, if the kernel has filled it,
// and returns the block to the kernel.
func (r *Ring) takeBlock() bool {
	block := r.ring[r.next*r.shape.blockBytes:][:r.shape.blockBytes]
	status := (*uint32)(unsafe.Pointer(&block[blockStatusAt]))
	if r.full || atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
		return false
	}
	count := *(*uint32)(unsafe.Pointer(&block[blockCountAt]))
	at := *(*uint32)(unsafe.Pointer(&block[blockFirstAt]))
	for range count {
		if r.kept.count == r.most {
			r.full = true
			break
		}
		h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&block[at]))
		from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&block[at+addressAt]))
		data := block[at+uint32(h.Mac):][:h.Snaplen]
		r.kept.add(describe(h, from), data)
		at += h.Next_offset
	}
	atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
	r.next = (r.next + 1) % r.shape.blocks
	return true
}

// describe returns the ring's facts about a packet, without its bytes.
func describe(h *unix.Tpacket3Hdr, from *unix.RawSockaddrLinklayer) packet {
	p := packet{
		timeNs: int64(h.Sec)*1e9 + int64(h.Nsec),
		wire:   h.Len, iface: from.Ifindex, link: h.Net - h.Mac,
	}
	if h.Status&unix.TP_STATUS_VLAN_VALID != 0 {
		p.tci, p.tpid = uint16(h.Hv1.Vlan_tci), unix.ETH_P_8021Q
		if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			p.tpid = h.Hv1.Vlan_tpid
		}
	}
	return p
}

// woken says what ended a sleep; zero means that its time was over.
type woken struct{ packets, stop bool }

// sleep waits for a block, for the signal that the capture ends, or, after
// that, until the kernel must have passed on the last block.
func (r *Ring) sleep(ending bool) (woken, error) {
	fds := []unix.PollFd{{Fd: int32(r.socket), Events: unix.POLLIN}, {Fd: int32(r.wake), Events: unix.POLLIN}}
	timeout := -1
	if ending { // the signal stays set: only poll the socket
		fds, timeout = fds[:1], int(3*r.shape.retire.Milliseconds())
	}
	for {
		_, err := unix.Poll(fds, timeout)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return woken{}, fmt.Errorf("live: waiting for packets: %w", err)
		}
		if fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
			code, _ := unix.GetsockoptInt(r.socket, unix.SOL_SOCKET, unix.SO_ERROR)
			return woken{}, fmt.Errorf("live: waiting for packets: %w", unix.Errno(code))
		}
		return woken{packets: fds[0].Revents != 0, stop: !ending && fds[1].Revents != 0}, nil
	}
}

// unhook stops the capture: at once by a filter, and then by listening to an
// unused protocol. Only the latter ends the cost, since a socket for all
// protocols gets a clone of each sent packet, whatever its filter does.
func (r *Ring) unhook() error {
	r.ended = time.Now()
	if err := r.attach(dropAll()); err != nil {
		return fmt.Errorf("live: ending the capture: %w", err)
	}
	if err := r.listen(unix.ETH_P_802_EX1); err != nil {
		return fmt.Errorf("live: ending the capture: %w", err)
	}
	return nil
}

// listen binds the socket to a protocol at all interfaces, in place of the
// former one.
func (r *Ring) listen(protocol uint16) error {
	return unix.Bind(r.socket, &unix.SockaddrLinklayer{Protocol: networkOrder(protocol)})
}

// finish ends the reader, and waits for it.
func (r *Ring) finish() error {
	one := [8]byte{1, 1, 1, 1, 1, 1, 1, 1} // any number that is not 0
	_, _ = unix.Write(r.wake, one[:])      // cannot fail: the counter is at 0
	<-r.read
	return r.err
}

// Close ends a capture without a result. After Stop, or a second time, it
// does nothing.
func (r *Ring) Close() {
	r.ending.Lock()
	defer r.ending.Unlock()
	if r.socket < 0 {
		return
	}
	_ = r.finish() // errors of the capture no longer matter
	r.free()
}

// free releases the ring's resources.
func (r *Ring) free() {
	if r.ring != nil {
		_ = unix.Munmap(r.ring) // it is our own mapping
	}
	for _, fd := range []int{r.socket, r.wake} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	r.ring, r.socket, r.wake, r.kept = nil, -1, -1, kept{}
}
