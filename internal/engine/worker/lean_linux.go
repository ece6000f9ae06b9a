package worker

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"thru/internal/measure"
	"thru/internal/unit"
)

// sendfilePath is copyPath with a sender whose pages leave without a copy.
type sendfilePath struct{ copyPath }

func (p sendfilePath) move(f *flow, s *stream) error {
	if !s.sends {
		return p.copyPath.move(f, s)
	}
	if err := takeThread(s); err != nil {
		return err
	}
	return sendPages(f, s, s.source.(*pages))
}

// prepare makes the pages to send.
func (p sendfilePath) prepare(f *flow, s *stream) error {
	if err := p.copyPath.prepare(f, s); err != nil || !s.sends {
		return err
	}
	each := 1 << (bits.Len(uint(allPages/len(f.streams))) - 1) // the kernel rounds up to a power of two
	src, err := newPages(min(f.length, each))
	if err != nil {
		return err
	}
	s.source, s.changed = src, src.small
	return nil
}

// pages are memory that is sent again and again. A full pipe keeps it: tee(2) repeats it in the second pipe, and splice(2) moves it from there to the socket. sendfile(2)
// does the same for 64 KB at a time, and after each lets the receiver run, whose acknowledgements and thread switches then cost more than the sending.
type pages struct {
	kept, next [2]int // read end and write end of a pipe
	bytes      int    // in the full pipe
	data       []byte // the memory, in use as long as the pipes
	small      string // why the pipes hold less than asked; "": they do not
}

// What a user without privileges may have in pipes by default, in bytes (/proc/sys/fs/pipe-max-size and pipe-user-pages-soft, pipe(7)). Beyond that the kernel
// makes pipes of 8 KB.
const (
	mostPages = 1 << 20  // in one
	allPages  = 32 << 20 // in half of them: each stream has two
)

func newPages(n int) (*pages, error) {
	p := &pages{data: pattern(min(n, mostPages))}
	if err := unix.Pipe2(p.kept[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("worker: making a pipe: %w", err)
	}
	if err := unix.Pipe2(p.next[:], unix.O_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("worker: making a pipe: %w", err), closeAll(p.kept))
	}
	for _, pipe := range [][2]int{p.kept, p.next} {
		if _, err := unix.FcntlInt(uintptr(pipe[1]), unix.F_SETPIPE_SZ, len(p.data)); err != nil { // refused to a user with many more pipes
			p.small = fmt.Sprintf("the kernel refused a pipe of %s (%v; /proc/sys/fs/pipe-user-pages-soft): calls are shorter", unit.Size(int64(len(p.data))), err)
		}
	}
	v := unix.Iovec{Base: &p.data[0]}
	v.SetLen(len(p.data))
	var err error
	if p.bytes, err = unix.Vmsplice(p.kept[1], []unix.Iovec{v}, unix.SPLICE_F_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("worker: filling a pipe: %w", err), p.Close())
	}
	return p, nil
}

// Close closes the pipes.
func (p *pages) Close() error { return errors.Join(closeAll(p.kept), closeAll(p.next)) }

func closeAll(pipe [2]int) error { return errors.Join(unix.Close(pipe[0]), unix.Close(pipe[1])) }

func sendPages(f *flow, s *stream, src *pages) error {
	fd, kept, in, out := s.file.Fd(), uintptr(src.kept[0]), uintptr(src.next[1]), uintptr(src.next[0])
	ready := uintptr(0) // bytes in the second pipe
	f.sawFirst(s)
	for !f.stop.Load() {
		if ready == 0 {
			want := s.left(min(f.length, src.bytes))
			if want == 0 {
				break
			}
			n, _, e := syscall.RawSyscall6(unix.SYS_TEE, kept, in, uintptr(want), 0, 0, 0)
			if e != 0 || n == 0 {
				return fmt.Errorf("worker: repeating the data to send: %w", cmp.Or(e, unix.EIO))
			}
			ready = n
		}
		n, _, e := syscall.RawSyscall6(unix.SYS_SPLICE, out, 0, fd, 0, ready, 0)
		if e != 0 {
			if e == unix.EINTR {
				continue
			}
			return sendError(f, e)
		}
		ready -= n
		s.moved(int(n))
		s.hold(int(n))
	}
	runtime.KeepAlive(src)
	return nil
}

// canSendPages returns an error where the system lacks one of the calls.
func canSendPages(*flow) error {
	src, err := newPages(1)
	if err != nil {
		return err
	}
	_, err = unix.Tee(src.kept[0], src.next[1], 1, 0)
	return errors.Join(err, src.Close())
}

// leanLength is the default length of a call that copies nothing: long calls are cheaper.
const leanLength = 1 << 20

// defaultLength returns how many bytes one call moves on a path, where the user sets none.
func defaultLength(path string) int {
	if path == measure.IOSendfile || path == measure.IOLean {
		return leanLength
	}
	return measure.DefaultLength
}

// truncPath is copyPath with a receiver that makes the kernel discard the data instead of copying it (MSG_TRUNC on a stream, tcp(7)).
type truncPath struct{ copyPath }

func (p truncPath) move(f *flow, s *stream) error {
	if s.sends {
		return p.copyPath.move(f, s)
	}
	if err := takeThread(s); err != nil {
		return err
	}
	return receive(f, s, pattern(1), f.length, unix.MSG_TRUNC) // the kernel never writes to the buffer
}
