package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// askPath moves requests and responses by raw blocking calls, as copyPath does. The requesting thread waits for each response before the next request.
type askPath struct{ copyPath }

func (p askPath) prepare(f *flow, s *stream) error {
	if f.crr != nil {
		if s.sends {
			return nil
		}
		return f.crr.take(s)
	}
	if err := p.copyPath.prepare(f, s); err != nil {
		return err
	}
	if s.sends && (f.udp || f.perSecond > 0) {
		t := unix.NsecToTimeval(int64(answerTime))
		return unix.SetsockoptTimeval(int(s.file.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &t)
	}
	return nil
}

func (askPath) move(f *flow, s *stream) error {
	if err := takeThread(s); err != nil {
		return err
	}
	switch {
	case s.sends && f.crr != nil:
		return askEach(f, s)
	case s.sends && f.perSecond > 0:
		return askAtRate(f, s)
	case s.sends:
		return ask(f, s)
	case f.crr != nil:
		return answerEach(f, s)
	default:
		return answer(f, s)
	}
}

func (askPath) finish(f *flow, s *stream) {
	if !f.udp && f.crr == nil {
		copyPath{}.finish(f, s)
	}
}

// exchange holds the buffers of one thread.
type exchange struct {
	fd       uintptr
	udp      bool
	request  []byte
	response []byte
	number   int // bytes of the number in a datagram
}

func newExchange(f *flow, fd uintptr) *exchange {
	return &exchange{fd: fd, udp: f.udp, request: pattern(f.length), response: pattern(f.answer), number: numberSize(f.length, f.answer)}
}

// ask sends requests back to back, each after the response to the one before.
func ask(f *flow, s *stream) error {
	x := newExchange(f, s.file.Fd())
	f.sawFirst(s)
	now := int64(time.Since(f.begin))
	for n := uint64(1); !f.stop.Load(); n++ {
		from := now
		err := x.once(n)
		now = int64(time.Since(f.begin))
		if err != nil {
			if f.stop.Load() {
				return nil
			}
			if !f.udp {
				return fmt.Errorf("worker: sending requests: %w", err)
			}
			if err := s.latency.failed(err, f.measuring.Load()); err != nil {
				return err
			}
			continue
		}
		countAnswer(f, s, now-from)
	}
	return nil
}

// once sends one request and waits for its response.
func (x *exchange) once(n uint64) error {
	if x.udp {
		putNumber(x.request[:x.number], n)
	}
	if err := sendAll(x.fd, x.request); err != nil {
		return err
	}
	for {
		got, err := recvAll(x.fd, x.response, x.udp)
		if err != nil {
			return err
		}
		if !x.udp || hasNumber(x.response[:got], x.number, n) {
			return nil
		}
	}
}

// sendAll sends a whole message.
func sendAll(fd uintptr, b []byte) error {
	for len(b) > 0 {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return e
		}
		b = b[n:]
	}
	return nil
}

// recvAll receives a whole message: len(b) bytes of a stream, or one datagram. io.EOF is the peer's end of stream.
func recvAll(fd uintptr, b []byte, datagram bool) (got int, err error) {
	for got < len(b) {
		p := b[got:]
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), 0, 0, 0)
		switch {
		case e == unix.EINTR:
			continue
		case e != 0:
			return got, e
		case n == 0:
			return got, io.EOF
		}
		got += int(n)
		if datagram {
			break
		}
	}
	return got, nil
}

// answer sends a response to each request until the peer ends.
func answer(f *flow, s *stream) error {
	x := newExchange(f, s.file.Fd())
	for first := true; ; {
		got, err := recvAll(x.fd, x.request, f.udp)
		if f.ending.Load() || errors.Is(err, io.EOF) {
			return io.EOF
		}
		if f.udp && errors.Is(err, unix.ECONNREFUSED) {
			continue
		}
		if err != nil {
			return fmt.Errorf("worker: answering: %w", err)
		}
		if first {
			f.sawFirst(s)
			first = false
		}
		if f.udp {
			copy(x.response[:x.number], x.request[:min(got, x.number)])
		}
		if err := sendAll(x.fd, x.response); err != nil && !f.udp {
			return fmt.Errorf("worker: answering: %w", err)
		}
		s.moved(got)
		s.more[cRequests].Add(1)
		s.hold(len(x.response))
	}
}

// crr is what CRR traffic needs: the address to connect to, or the listener that accepts.
type crr struct {
	listener *net.TCPListener
	taken    *os.File // the listener without Go's poller
	to       []byte   // struct sockaddr of the peer's listener
	from     []byte   // struct sockaddr to bind to; empty for any
	family   int
	dscp     int
	patience unix.Timeval // timeout of each call
}

// take gives a stream the listener on which the threads of all streams wait.
func (c *crr) take(s *stream) (err error) {
	if c.taken == nil {
		if c.taken, err = takeSocket(c.listener); err != nil {
			return err
		}
		c.listener.Close()
		// Accepted connections inherit it, so that a silent one cannot block others for long.
		if err := unix.SetsockoptTimeval(int(c.taken.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &c.patience); err != nil {
			return fmt.Errorf("worker: setting the time limit of connections: %w", err)
		}
	}
	s.file = c.taken
	return nil
}

// askEach opens a connection for every request. The responding end closes first, so that no port of this end stays in TIME_WAIT.
func askEach(f *flow, s *stream) error {
	x, c := newExchange(f, 0), newSchedule(f)
	f.sawFirst(s)
	now := int64(time.Since(f.begin))
	for !f.stop.Load() {
		from := c.next(now)
		err := x.connectOnce(f.crr)
		now = int64(time.Since(f.begin))
		if err != nil {
			if err := s.latency.failed(err, f.measuring.Load()); err != nil && !f.stop.Load() {
				return err
			}
			continue
		}
		countAnswer(f, s, now-from)
	}
	return nil
}

// connectOnce runs one connection from open to close.
func (x *exchange) connectOnce(c *crr) error {
	fd, _, e := syscall.RawSyscall(unix.SYS_SOCKET, uintptr(c.family), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if e != 0 {
		return e
	}
	err := x.converse(fd, c)
	syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	return err
}

func (x *exchange) converse(fd uintptr, c *crr) error {
	for _, option := range [...]uintptr{unix.SO_SNDTIMEO, unix.SO_RCVTIMEO} { // SO_SNDTIMEO also limits connect(2)
		syscall.RawSyscall6(unix.SYS_SETSOCKOPT, fd, unix.SOL_SOCKET, option, uintptr(unsafe.Pointer(&c.patience)), unsafe.Sizeof(c.patience), 0)
	}
	if c.dscp > 0 {
		tos := int32(c.dscp << 2)
		level, option := uintptr(unix.IPPROTO_IP), uintptr(unix.IP_TOS)
		if c.family == unix.AF_INET6 {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		syscall.RawSyscall6(unix.SYS_SETSOCKOPT, fd, level, option, uintptr(unsafe.Pointer(&tos)), unsafe.Sizeof(tos), 0)
	}
	if len(c.from) > 0 {
		if _, _, e := syscall.RawSyscall(unix.SYS_BIND, fd, uintptr(unsafe.Pointer(&c.from[0])), uintptr(len(c.from))); e != 0 {
			return e
		}
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&c.to[0])), uintptr(len(c.to))); e != 0 {
		return e
	}
	if err := sendAll(fd, x.request); err != nil {
		return err
	}
	if _, err := recvAll(fd, x.response, false); err != nil {
		return err
	}
	var end [1]byte
	if n, err := recvAll(fd, end[:], false); n != 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("worker: sending requests: the connection did not end after its response")
	}
	return nil
}

// answerEach answers connections from the peer, and closes all others.
func answerEach(f *flow, s *stream) error {
	x := newExchange(f, 0)
	listener := s.file.Fd()
	var from unix.RawSockaddrAny
	for first := true; ; {
		size := uint32(unsafe.Sizeof(from))
		fd, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, listener, uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&size)), unix.SOCK_CLOEXEC, 0, 0)
		if f.ending.Load() {
			return io.EOF
		}
		if e != 0 {
			if e == unix.EMFILE {
				sleepThread(time.Millisecond)
			}
			if e == unix.EINTR || e == unix.EAGAIN || e == unix.ECONNABORTED || e == unix.EMFILE {
				continue
			}
			return fmt.Errorf("worker: answering: %w", e)
		}
		if first {
			f.sawFirst(s)
			first = false
		}
		if x.reply(fd, f.crr.isPeer(&from)) {
			s.moved(f.length)
			s.more[cRequests].Add(1)
			s.hold(len(x.response))
		}
		syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	}
}

// reply answers one connection; false where it is not the peer's or breaks.
func (x *exchange) reply(fd uintptr, welcome bool) bool {
	if !welcome {
		return false
	}
	if _, err := recvAll(fd, x.request, false); err != nil {
		return false
	}
	return sendAll(fd, x.response) == nil
}

// isPeer compares addresses without ports; c.to holds the peer's.
func (c *crr) isPeer(a *unix.RawSockaddrAny) bool {
	raw := (*[unix.SizeofSockaddrAny]byte)(unsafe.Pointer(a))
	at, n := addressIn(c.family)
	return int(a.Addr.Family) == c.family && string(raw[at:at+n]) == string(c.to[at:at+n])
}

// addressIn returns where a struct sockaddr holds the address.
func addressIn(family int) (at, size int) {
	if family == unix.AF_INET6 {
		return 8, 16
	}
	return 4, 4
}

// newCRR prepares CRR traffic; it takes the addresses from the side connection.
func newCRR(c openCommand, l *link) (*crr, error) {
	side := l.tcp[len(l.tcp)-1]
	local, peer := side.LocalAddr().(*net.TCPAddr), side.RemoteAddr().(*net.TCPAddr)
	r := &crr{dscp: c.Spec.DSCP, patience: unix.NsecToTimeval(int64(answerTime))}
	r.family, r.to = sockaddr(peer, peer.Port)
	if c.Spec.BindAddr != "" {
		_, r.from = sockaddr(local, 0)
	}
	if c.Dials {
		return r, nil
	}
	for _, x := range l.listeners {
		t := x.(*net.TCPListener)
		own := t.Addr().(*net.TCPAddr)
		if own.IP.IsUnspecified() || own.IP.Equal(local.IP) {
			r.listener = t
		}
		if own.IP.IsUnspecified() && own.IP.To4() == nil { // both families: the peers appear as IPv6
			r.family, r.to = mappedSockaddr(peer)
		}
	}
	if r.listener == nil {
		return nil, errors.New("worker: answering: no listener has the address of the connection")
	}
	return r, nil
}

// sockaddr returns an address in the kernel's form.
func sockaddr(a *net.TCPAddr, port int) (family int, raw []byte) {
	if ip := a.IP.To4(); ip != nil {
		s := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: bigEndian(port), Addr: [4]byte(ip)}
		return unix.AF_INET, rawBytes(&s)
	}
	return mappedSockaddr(&net.TCPAddr{IP: a.IP, Port: port, Zone: a.Zone})
}

func mappedSockaddr(a *net.TCPAddr) (family int, raw []byte) {
	s := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: bigEndian(a.Port), Addr: [16]byte(a.IP.To16())}
	if i, err := net.InterfaceByName(a.Zone); err == nil {
		s.Scope_id = uint32(i.Index)
	}
	return unix.AF_INET6, rawBytes(&s)
}

func bigEndian(port int) uint16 { return uint16(port&0xff)<<8 | uint16(port>>8) }

func rawBytes[T any](s *T) []byte {
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Sizeof(*s))...)
}
