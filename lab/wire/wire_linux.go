package wire

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wire is a path between two TAP devices. It runs until Close.
type Wire struct {
	taps       [2]int // descriptors of the devices of A and of B
	forwarders [2]*forwarder
	stop       int // an eventfd: readable when the threads must end
	stopped    atomic.Bool
	threads    sync.WaitGroup
	close      func() error
}

// New creates both devices and starts a thread for each direction. The devices are down and have no
// addresses: the caller configures them.
func New(o Options) (*Wire, error) {
	w := &Wire{taps: [2]int{-1, -1}}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("wire: making an event: %w", err)
	}
	w.stop = stop
	for i, end := range []End{o.A, o.B} {
		if w.taps[i], err = openTAP(end, o.NoOffloads); err != nil {
			return nil, errors.Join(err, w.closeFiles())
		}
	}
	begin := time.Now()
	for i, direction := range []Impairment{o.AtoB, o.BtoA} {
		m := &forwarder{wire: w, from: w.taps[i], to: w.taps[1-i], begin: begin}
		m.router4, m.router6, m.impairment = o.Router4, o.Router6, newTreatment(direction)
		w.forwarders[i] = m
		w.threads.Go(m.run)
	}
	w.close = sync.OnceValue(w.end)
	return w, nil
}

// Set changes the impairment of a direction from now on. Queued packets keep their times; buckets, queues and
// the random source start anew.
func (w *Wire) Set(d Direction, direction Impairment) {
	m := w.forwarders[d]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.impairment = newTreatment(direction)
}

// Counters returns what has happened in a direction so far.
func (w *Wire) Counters(d Direction) Counters {
	m := w.forwarders[d]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counters
}

// Close ends the threads and removes the devices. Queued packets are lost.
func (w *Wire) Close() error { return w.close() }

func (w *Wire) end() error {
	w.stopped.Store(true)
	one := [8]byte{1}
	if _, err := unix.Write(w.stop, one[:]); err != nil {
		return fmt.Errorf("wire: stopping: %w", err) // the threads may still use the files
	}
	w.threads.Wait()
	return w.closeFiles()
}

// closeFiles closes what is open.
func (w *Wire) closeFiles() error {
	var errs []error
	for _, fd := range []int{w.stop, w.taps[0], w.taps[1]} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("wire: closing: %w", err)
	}
	return nil
}

// forwarder is the thread of one direction.
type forwarder struct {
	wire     *Wire
	from, to int
	begin    time.Time
	scratch  *buffer
	parts    [2]unix.Iovec // of the frame being written

	mu sync.Mutex // for the fields below: other threads call Set and Counters
	direction
}

// run forwards frames until the wire is closed.
func (m *forwarder) run() {
	// Never unlocked: the thread ends with the goroutine, and its settings with it.
	runtime.LockOSThread()
	m.settle()
	m.scratch = m.held.buffer(largest)
	for !m.wire.stopped.Load() {
		m.mu.Lock()
		read := m.receive()
		next, some := m.deliver()
		m.mu.Unlock()
		if !read && !m.wait(next, some) {
			return
		}
	}
}

// settle requests exact timers and a fast wake-up: the delay of a path must not depend on the load of its
// hosts. Without the privilege it continues.
func (m *forwarder) settle() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
}

// now returns the time since the wire began, in ns.
func (m *forwarder) now() int64 { return int64(time.Since(m.begin)) }

// receive takes one frame, and reports whether there was one.
func (m *forwarder) receive() bool {
	b := m.scratch
	// Raw: the descriptor does not block, so the scheduler need not know of the call.
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(m.from), uintptr(unsafe.Pointer(&b.data[0])), uintptr(len(b.data)))
	if errno != 0 || n == 0 {
		return false
	}
	size := int(n)
	if i := class(size); i < largest { // copying short frames saves memory: many may be queued
		b = m.held.buffer(i)
		copy(b.data, m.scratch.data[:size])
	} else {
		m.scratch = m.held.buffer(largest)
	}
	if reply := m.take(m.now(), b, size); reply != nil {
		m.write(m.from, reply, nil)
	}
	m.held.release(b)
	return true
}

// deliver sends the due frames to the other end, and returns when the next is due.
func (m *forwarder) deliver() (next int64, some bool) {
	for {
		next, some = m.held.next()
		if !some || next > m.now() {
			return next, some
		}
		p := m.held.take()
		to := &m.counters.Out
		if !m.write(m.to, p.head[:p.headed], p.body) {
			to = &m.counters.Refused
		}
		to.Packets += p.count.Packets
		to.Bytes += p.count.Bytes
		m.held.done(p)
	}
}

// write writes a frame in two parts to an end, and reports whether the end accepted it.
func (m *forwarder) write(fd int, head, body []byte) bool {
	parts := m.parts[:0]
	for _, b := range [][]byte{head, body} {
		if len(b) > 0 {
			parts = append(parts, unix.Iovec{Base: &b[0]})
			parts[len(parts)-1].SetLen(len(b))
		}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&m.parts[0])), uintptr(len(parts)))
	return errno == 0
}

// wait sleeps until a frame arrives or is due, and reports whether to continue.
func (m *forwarder) wait(next int64, some bool) bool {
	fds := [...]unix.PollFd{{Fd: int32(m.from), Events: unix.POLLIN}, {Fd: int32(m.wire.stop), Events: unix.POLLIN}}
	var timeout *unix.Timespec
	if some {
		left := unix.NsecToTimespec(max(0, next-m.now()))
		timeout = &left
	}
	if _, err := unix.Ppoll(fds[:], timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return false
	}
	// An error of the device means that its namespace is gone.
	return fds[1].Revents == 0 && fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) == 0
}
