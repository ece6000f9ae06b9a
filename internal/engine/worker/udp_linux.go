package worker

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
	"thru/internal/sock"
)

// batchPath moves several datagrams per call (sendmmsg(2), recvmmsg(2)), on blocking sockets and its own thread, as copyPath does.
type batchPath struct{ copyPath }

// gsoPath is batchPath with datagrams that pass the stack together: the sender passes up to 128 of them as one super-datagram, which the NIC or the kernel
// splits late (UDP_SEGMENT), and the receiver reads datagrams that the kernel has combined (UDP_GRO); udp(7).
type gsoPath struct{ batchPath }

// canGSO returns why this end cannot use it.
func canGSO(f *flow) error {
	if err := canGSOWith(f, f.streams[0]); err != nil || !f.isDuplex() {
		return err
	}
	return canGSOWith(f, f.streams[len(f.streams)-1])
}

func canGSOWith(f *flow, s *stream) error {
	return sock.Reach(s.sock, func(fd uintptr) error {
		if !s.sends {
			return sock.SetUDPGRO(fd, true)
		}
		if mtu := sock.PathMTU(fd); mtu > 0 && f.length+sock.UDPHeaders(s.sock.RemoteAddr()) > mtu {
			return fmt.Errorf("datagrams of %d bytes exceed the MTU of %d", f.length, mtu)
		}
		return sock.SetUDPSegment(fd, f.length)
	})
}

func (p gsoPath) prepare(f *flow, s *stream) error {
	if err := p.batchPath.prepare(f, s); err != nil {
		return err
	}
	if s.sends {
		return sock.SetUDPSegment(s.file.Fd(), f.length)
	}
	return sock.SetUDPGRO(s.file.Fd(), true)
}

// prepare resets the options of another path that was tried before.
func (p batchPath) prepare(f *flow, s *stream) error {
	if err := p.copyPath.prepare(f, s); err != nil {
		return err
	}
	if s.sends {
		sock.SetUDPSegment(s.file.Fd(), 0)
	} else {
		sock.SetUDPGRO(s.file.Fd(), false)
	}
	return nil
}

func (batchPath) move(f *flow, s *stream) error {
	if s.sends {
		return moveDatagrams(f, s, newDatagramSender(f, s, 1, sendBatch))
	}
	room := datagramRoom(f)
	if s.check != nil {
		room = superRoom // all of it is verified
	}
	return receiveDatagrams(f, s, newDatagramReceiver(room, recvBatch))
}

func (gsoPath) move(f *flow, s *stream) error {
	if s.sends {
		return moveDatagrams(f, s, newDatagramSender(f, s, min(maxSegments, maxSuper/f.length), superBatch))
	}
	return receiveDatagrams(f, s, newDatagramReceiver(superRoom, superRecvBatch))
}

func (batchPath) finish(*flow, *stream) {}

// Sizes of the calls.
const (
	sendBatch      = 64         // datagrams per sendmmsg
	recvBatch      = 64         // datagrams per recvmmsg
	maxSegments    = 128        // datagrams per super-datagram (UDP_MAX_SEGMENTS of include/linux/udp.h)
	oldMaxSegments = 64         // the same of kernels before 6.9
	maxSuper       = 65507      // bytes of a super-datagram
	superBatch     = 16         // super-datagrams per sendmmsg
	superRoom      = 65536 + 64 // the odd cache lines keep buffers out of the same cache sets
	superRecvBatch = 8          // super-datagrams per recvmmsg
	paceBurst      = 250 * time.Microsecond
)

// datagramRoom returns the buffer size for one received datagram; a longer one still counts in full.
func datagramRoom(f *flow) int { return max(f.length, 9216) + 64 }

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [unsafe.Sizeof(uintptr(0)) - 4]byte
}

// datagramSender holds the buffers of one sending thread.
type datagramSender struct {
	length   int
	form     Numbering
	segments int // datagrams in one message
	stride   int // bytes from one message to the next
	buf      []byte
	msgs     []mmsghdr
	iovs     []unix.Iovec
	pattern  []byte // with verification
	next     uint64 // number of the next datagram
	last     uint64 // number at which to stop
	bounded  bool   // last is a limit
	refused  int    // refused calls in a row
	port     reopening
}

func newDatagramSender(f *flow, s *stream, segments, batch int) *datagramSender {
	segments = max(segments, 1)
	d := &datagramSender{length: f.length, form: f.numbering, next: s.early.after(f.firstNumber), segments: segments, stride: f.length * segments, buf: pattern(f.length * segments * batch),
		msgs: make([]mmsghdr, batch), iovs: make([]unix.Iovec, batch)}
	if s.check != nil {
		d.pattern = verifiable(f.length)
	}
	if s.quota != noQuota {
		d.bounded = true
		d.last = f.firstNumber + uint64((s.quota+int64(f.length)-1)/int64(f.length))
	}
	for at := 0; len(f.behind) > 0 && at < len(d.buf); at += f.length {
		copy(d.buf[at+min(f.length, d.form.size()):at+f.length], f.behind)
	}
	for i := range d.msgs {
		d.iovs[i].Base = &d.buf[i*d.stride]
		d.msgs[i].hdr.Iov = &d.iovs[i]
		d.msgs[i].hdr.SetIovlen(1)
	}
	return d
}

// fill writes up to n numbered datagrams and returns how many messages hold them.
func (d *datagramSender) fill(n int, now int64) (messages int) {
	for ; n > 0 && messages < len(d.msgs); messages++ {
		here, at := min(n, d.segments), messages*d.stride
		for range here {
			b := d.buf[at : at+d.length]
			if d.form == OfThru { // inlined, because a call costs as much as the rest of the loop
				binary.BigEndian.PutUint64(b, d.next)
				binary.BigEndian.PutUint64(b[8:], uint64(now))
			} else {
				d.form.put(b, d.next, now)
			}
			if d.pattern != nil {
				copy(b[datagramHeader:], patternOf(d.pattern, d.next, len(b)-datagramHeader))
			}
			d.next++
			at += d.length
		}
		d.iovs[messages].SetLen(here * d.length)
		n -= here
	}
	return messages
}

// moveDatagrams sends until it is stopped. One thread calls it.
func moveDatagrams(f *flow, s *stream, d *datagramSender) error {
	if err := takeThread(s); err != nil {
		return err
	}
	fd, p := s.file.Fd(), uintptr(unsafe.Pointer(&d.msgs[0]))
	f.sawFirst(s)
	for !f.stop.Load() {
		want := d.want(s)
		if want == 0 {
			break
		}
		first := d.next
		count := d.fill(want, f.stamp())
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, fd, p, uintptr(count), 0, 0, 0)
		switch e {
		case 0: // unsent datagrams get new numbers
			d.next, d.refused = first+uint64(min(int(n)*d.segments, int(d.next-first))), 0
		case unix.ENOBUFS, unix.EPERM: // the first message is lost here: the receiver will count its numbers as missing
			d.next = first + uint64(min(d.segments, int(d.next-first)))
			s.more[cSendErrors].Add(int64(d.next - first))
			if e == unix.EPERM && s.more[cSendErrors].Load() == s.more[cPackets].Load()+int64(d.next-first) && s.more[cSendErrors].Load() > mostRefused {
				return datagramError(f, s, e)
			}
		case unix.EINTR, unix.EAGAIN:
			d.next = first
			continue
		default:
			d.next = first
			if !d.retry(f, s, e) {
				return datagramError(f, s, e)
			}
			continue
		}
		sent := int(d.next - first)
		s.more[cPackets].Add(int64(sent))
		s.moved(sent * d.length)
		s.hold(sent * d.length)
	}
	runtime.KeepAlive(d)
	return nil
}

// mostRefused datagrams in a row at the start mean a firewall rule, not loss.
const mostRefused = 1000

// retry reports whether sending may work after a refusal. The kernel reports a reduced path MTU once with EMSGSIZE, and fragments from then on. It then
// refuses super-datagrams, as it does where the interface cannot split them (EIO, EINVAL), so they are sent one by one.
func (d *datagramSender) retry(f *flow, s *stream, e syscall.Errno) bool {
	if d.port.explains(d.form, e) {
		return true
	}
	if f.dontFragment || e != unix.EMSGSIZE && e != unix.EIO && e != unix.EINVAL {
		return false
	}
	d.refused++
	switch {
	case e == unix.EINVAL && d.segments > oldMaxSegments: // an older kernel takes fewer per call
		d.segments = oldMaxSegments
	case d.segments > 1 && d.refused > 1:
		sock.SetUDPSegment(s.file.Fd(), 0)
		d.segments, s.changed = 1, fmt.Sprintf("the kernel refused batches of datagrams (%v): thru sent them one by one", e)
	}
	return d.refused < 10
}

// want returns how many datagrams the next call sends.
func (d *datagramSender) want(s *stream) int {
	n := d.segments * len(d.msgs)
	if s.pace != nil {
		n = min(n, max(1, int(float64(s.pace.bps.Load())*paceBurst.Seconds()/8/float64(d.length))))
	}
	if d.bounded {
		n = min(n, int(d.last-d.next))
	}
	return n
}

// datagramError explains why the kernel does not send.
func datagramError(f *flow, s *stream, e syscall.Errno) error {
	switch {
	case f.stop.Load():
		return nil
	case e == unix.EMSGSIZE:
		mtu := sock.PathMTU(s.file.Fd())
		return fault.Failf(fmt.Sprintf("use -l %[2]d at most, for MTU %[1]d, or omit --dont-fragment", mtu, mtu-sock.UDPHeaders(s.sock.RemoteAddr())),
			"worker: sending: datagrams of %d bytes exceed the path's MTU of %d", f.length, mtu)
	case e == unix.EPERM:
		return fault.Failf("check the firewall of the sending host, which rejects them (nft list ruleset)", "worker: sending: %w", e)
	case e == unix.ECONNREFUSED:
		return fault.Failf("check why the process there ended", "worker: sending: no receiver at %s any more: %w", s.sock.RemoteAddr(), e)
	}
	return fmt.Errorf("worker: sending: %w", e)
}

// datagramReceiver holds the buffers of one receiving thread.
type datagramReceiver struct {
	room    int
	buf     []byte
	control []byte
	msgs    []mmsghdr
	iovs    []unix.Iovec
	seq     *sequence
	form    Numbering
	ended   bool // the final datagram of a numbering that has one has arrived
	pattern []byte
	shown   int64 // time of the last publish, ns
}

const controlRoom = 64 // for the one control message with the datagram size

func newDatagramReceiver(room, batch int) *datagramReceiver {
	d := &datagramReceiver{room: room, buf: make([]byte, room*batch), control: make([]byte, controlRoom*batch),
		msgs: make([]mmsghdr, batch), iovs: make([]unix.Iovec, batch), seq: newSequence()}
	for i := range d.msgs {
		d.iovs[i].Base = &d.buf[i*room]
		d.iovs[i].SetLen(room)
		h := &d.msgs[i].hdr
		h.Iov, h.Control = &d.iovs[i], &d.control[i*controlRoom]
		h.SetIovlen(1)
	}
	return d
}

// showEvery is the shortest time between two publishes of the whole account.
const showEvery = int64(time.Millisecond)

// receiveDatagrams receives until the flow is ending.
func receiveDatagrams(f *flow, s *stream, d *datagramReceiver) error {
	if err := takeThread(s); err != nil {
		return err
	}
	if s.check != nil {
		d.pattern = verifiable(d.room)
	}
	d.form = f.numbering
	d.seq.begin(f.firstNumber, s.early)
	s.delays = d.seq.delays
	d.ended = s.early.Last != 0
	if d.seq.packets > 0 { // the engine has received the first
		f.sawFirst(s)
	}
	fd, p := s.file.Fd(), uintptr(unsafe.Pointer(&d.msgs[0]))
	for first := d.seq.packets == 0; !d.ended; {
		for i := range d.msgs {
			d.msgs[i].hdr.SetControllen(controlRoom)
		}
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd, p, uintptr(len(d.msgs)), unix.MSG_WAITFORONE|unix.MSG_TRUNC, 0, 0)
		if f.ending.Load() {
			break
		}
		if e != 0 {
			if e == unix.EINTR || e == unix.ECONNREFUSED {
				continue
			}
			return fmt.Errorf("worker: receiving: %w", e)
		}
		d.takeAll(f, s, int(n))
		if first && d.seq.packets > 0 { // messages of the handshake start no clock
			f.sawFirst(s)
			first = false
		}
	}
	d.seq.publish(s)
	runtime.KeepAlive(d)
	return io.EOF
}

// takeAll counts the messages of one call.
func (d *datagramReceiver) takeAll(f *flow, s *stream, n int) {
	now := int64(time.Since(f.begin))
	bytes, measuring := 0, f.measuring.Load()
	for i := range n {
		bytes += d.take(s, i, now, measuring)
	}
	s.moved(bytes)
	s.lastAt.Store(now)
	if now-d.shown > showEvery {
		d.shown = now
		d.seq.publish(s)
	} else {
		s.more[cPackets].Store(d.seq.packets)
	}
}

// take counts one message of one or more datagrams, and returns the bytes that count.
func (d *datagramReceiver) take(s *stream, i int, now int64, measuring bool) (counted int) {
	m := &d.msgs[i]
	b, size := d.buf[i*d.room:], int(m.len)
	each := d.segmentSize(i, size)
	for at := 0; at < size; at += each {
		n := min(each, size-at)
		if n < d.form.size() || at+d.form.size() > d.room {
			d.seq.stray(n)
			break
		}
		var number uint64
		var sent int64
		if d.form == OfThru {
			number = binary.BigEndian.Uint64(b[at:])
		} else {
			var last bool
			if number, sent, last = d.form.get(b[at:], d.seq.next); last && !d.ended { // the number of each repetition is one further
				d.seq.end(number)
				d.ended = true
			}
			if d.ended { // later datagrams repeat the final one
				break
			}
		}
		if d.seq.take(number) {
			counted += n
		}
		if at == 0 && number < foreignNumber {
			if d.form == OfThru {
				sent = int64(binary.BigEndian.Uint64(b[8:]))
			}
			d.seq.arrived(sent, now, measuring)
		}
		if d.pattern != nil && at+n <= d.room && number < foreignNumber {
			s.check.compare(d.pattern, b[at+datagramHeader:at+n], int64(number%period), int64(number))
		}
	}
	return counted
}

// segmentSize reads the control message with the length of each datagram in a super-datagram; without it there is a single datagram.
func (d *datagramReceiver) segmentSize(i, size int) int {
	c := d.control[i*controlRoom:]
	if d.msgs[i].hdr.Controllen < unix.SizeofCmsghdr+4 || size == 0 {
		return max(size, 1)
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	if h.Level != unix.IPPROTO_UDP || h.Type != unix.UDP_GRO {
		return size
	}
	each := int(*(*int32)(unsafe.Pointer(&c[unix.SizeofCmsghdr])))
	if each <= 0 {
		return size
	}
	return each
}

// setPacing makes the kernel pace a rate in bit/s, and keeps the socket's queue short.
func setPacing(s socket, bps int64) error {
	return sock.Reach(s, func(fd uintptr) error { return sock.SetPacing(fd, bps) })
}
