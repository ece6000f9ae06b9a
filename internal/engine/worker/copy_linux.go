package worker

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/unit"
)

// paths returns the data paths of this end on this system, the best first.
func paths(c openCommand) []path {
	switch {
	case c.Spec.Traffic != measure.Bulk:
		return append([]path{{name: measure.IOCopy, io: askPath{}}}, portablePaths(c)...)
	case c.Spec.Protocol == measure.UDP:
		return append([]path{
			{measure.IOGSO, gsoPath{}, canGSO},
			{measure.IOBatch, batchPath{}, nil},
		}, portablePaths(c)...)
	case c.Sends:
		return append([]path{
			{measure.IOCopy, copyPath{}, nil},
			{measure.IOSendfile, sendfilePath{}, canSendPages},
		}, portablePaths(c)...)
	default:
		return append([]path{
			{measure.IOCopy, copyPath{}, nil},
			{measure.IOLean, truncPath{}, nil},
		}, portablePaths(c)...)
	}
}

// copyPath moves data by raw blocking system calls on its own thread. A raw call does not tell Go's scheduler that the thread blocks, so there is no
// hand-over; that makes it as fast as C. In return the worker runs without asynchronous preemption and without garbage collection, because both would wait for
// the blocked threads.
type copyPath struct{}

func (copyPath) prepare(f *flow, s *stream) (err error) {
	s.file, err = unpoll(f, s)
	return err
}

func (copyPath) move(f *flow, s *stream) error {
	if err := takeThread(s); err != nil {
		return err
	}
	if s.sends {
		return sendCopy(f, s)
	}
	return receive(f, s, make([]byte, f.length), f.length, 0)
}

// takeThread locks the goroutine to its own thread, on the CPUs of its stream. It never unlocks: the thread ends with the goroutine.
func takeThread(s *stream) error {
	runtime.LockOSThread()
	if err := bindThread(s.cpus); err != nil {
		return err
	}
	s.clock.open()
	return nil
}

// bindThread binds the calling thread to some CPUs.
func bindThread(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fault.Failf(fmt.Sprintf("choose among the CPUs that the process there may use: %s", unit.List(host.Allowed())),
			"worker: binding to CPU %s: %w", unit.List(cpus), err)
	}
	return nil
}

// sendCopy sends the pattern. With verification, every byte's value follows from its place in the stream; else each call sends the same.
func sendCopy(f *flow, s *stream) error {
	buf, sent := pattern(f.length), int64(0)
	if s.check != nil {
		buf = verifiable(f.length)
	}
	fd := s.file.Fd()
	f.sawFirst(s)
	for !f.stop.Load() {
		want := s.left(f.length)
		if want == 0 {
			break
		}
		part := buf
		if s.check != nil {
			part = at(buf, sent, want)
		}
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&part[0])), uintptr(want), unix.MSG_NOSIGNAL, 0, 0)
		if e != 0 {
			if e == unix.EINTR {
				continue
			}
			return sendError(f, e)
		}
		sent += int64(n)
		s.moved(int(n))
		s.hold(int(n))
	}
	runtime.KeepAlive(buf)
	return nil
}

// sendError returns nil where the worker itself has shut the socket to end a blocked call.
func sendError(f *flow, e error) error {
	if f.stop.Load() && (errors.Is(e, unix.EPIPE) || errors.Is(e, unix.ECONNRESET)) {
		return nil
	}
	return fmt.Errorf("worker: sending: %w", e)
}

// receive reads up to most bytes per call until the peer's end of stream, which it reports as io.EOF so that the caller can decide whether it is too early.
func receive(f *flow, s *stream, buf []byte, most int, flags uintptr) error {
	var all []byte
	if s.check != nil {
		all = verifiable(f.length)
	}
	fd, p := s.file.Fd(), uintptr(unsafe.Pointer(&buf[0]))
	for got := int64(0); ; {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, p, uintptr(most), flags, 0, 0)
		switch {
		case e == unix.EINTR:
			continue
		case e != 0 && f.ending.Load():
			return io.EOF
		case e != 0:
			return fmt.Errorf("worker: receiving: %w", e)
		case n == 0:
			runtime.KeepAlive(buf)
			return io.EOF
		}
		if got == 0 {
			f.sawFirst(s)
		}
		if s.check != nil {
			s.check.compare(all, buf[:n], got, -1)
		}
		got += int64(n)
		s.moved(int(n))
		s.hold(int(n))
	}
}

func (copyPath) sendEnough(f *flow) {
	if f.side != nil {
		f.side.sendEnough()
		return
	}
	unix.Sendto(int(f.streams[0].file.Fd()), []byte{enough}, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, nil)
}

func (copyPath) heardEnough(f *flow) bool {
	if f.side != nil {
		return closed(f.side.enough) || closed(f.side.gone)
	}
	var b [1]byte
	n, _, err := unix.Recvfrom(int(f.streams[0].file.Fd()), b[:], unix.MSG_DONTWAIT)
	return err == nil && n >= 0
}

// finish ends the sending half and waits for the peer to close, so that the last TCP_INFO is read when everything is acknowledged.
func (copyPath) finish(f *flow, s *stream) {
	fd := int(s.file.Fd())
	if err := unix.Shutdown(fd, unix.SHUT_WR); err != nil {
		return // already gone: there is nothing to wait for
	}
	if f.isDuplex() {
		return // its other direction reads the socket
	}
	var b [256]byte
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 || n == 0 {
			return
		}
	}
}

// interrupt ends a blocked call of this stream's thread.
func (copyPath) interrupt(s *stream) {
	if s.file != nil {
		unix.Shutdown(int(s.file.Fd()), unix.SHUT_RDWR)
	}
}

// threadClock reads the scheduler's times of one thread: nanoseconds on a CPU and waiting for one (/proc/TID/schedstat,
// Documentation/scheduler/sched-stats.rst). The remaining time of a thread that only makes socket calls was spent blocked in them.
type threadClock struct {
	fd  atomic.Int64 // file descriptor plus one; 0: none
	buf [96]byte
}

// open must run on the thread itself.
func (c *threadClock) open() {
	fd, err := unix.Open("/proc/self/task/"+strconv.Itoa(unix.Gettid())+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		c.fd.Store(int64(fd) + 1)
	}
}

// read returns the time on the CPU and in its run queue; notKnown on old kernels. It does not allocate.
func (c *threadClock) read() (run, wait int64) {
	fd := int(c.fd.Load()) - 1
	if fd < 0 {
		return notKnown, notKnown
	}
	n, err := unix.Pread(fd, c.buf[:], 0)
	if err != nil || n == 0 {
		return notKnown, notKnown
	}
	run, rest := leadingInt(c.buf[:n])
	wait, _ = leadingInt(rest)
	return run, wait
}

func leadingInt(b []byte) (int64, []byte) {
	var v int64
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		v = v*10 + int64(b[i]-'0')
		i++
	}
	return v, b[i:]
}

// sleepThread blocks the calling thread in the kernel.
func sleepThread(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// favourThread locks the caller to one thread and, where allowed, raises its priority above the data threads, so that its readings are on time (setpriority(2)
// changes one thread on Linux).
func favourThread() {
	runtime.LockOSThread()
	unix.Setpriority(unix.PRIO_PROCESS, 0, -10) // refused to ordinary users: then readings may be late, with their true time
}
