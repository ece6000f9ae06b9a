package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"thru/internal/measure"
)

// sendfilePath is copyPath with a sender that sends a file's pages without a copy (sendfile(2)).
type sendfilePath struct{ copyPath }

func (p sendfilePath) move(f *flow, s *stream) error {
	if !s.sends {
		return p.copyPath.move(f, s)
	}
	if err := takeThread(s); err != nil {
		return err
	}
	return sendFile(f, s, s.source)
}

// prepare makes the file to send.
func (p sendfilePath) prepare(f *flow, s *stream) error {
	if err := p.copyPath.prepare(f, s); err != nil || !s.sends {
		return err
	}
	var err error
	s.source, s.slower, err = sourceFile(sourceDirs(), f.length)
	return err
}

func sendFile(f *flow, s *stream, src *os.File) error {
	fd, in := s.file.Fd(), src.Fd()
	var offset int64
	f.sawFirst(s)
	for !f.stop.Load() {
		want := s.left(f.length)
		if want == 0 {
			break
		}
		offset = 0
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDFILE, fd, in, uintptr(unsafe.Pointer(&offset)), uintptr(want), 0, 0)
		if e != 0 {
			if e == unix.EINTR {
				continue
			}
			return sendError(f, e)
		}
		if n == 0 {
			return errors.New("worker: sending: the source file was truncated")
		}
		s.moved(int(n))
		s.hold(int(n))
	}
	runtime.KeepAlive(src)
	return nil
}

// canSendfile returns an error without a file to send.
func canSendfile(f *flow) error {
	src, _, err := sourceFile(sourceDirs(), f.length)
	if err != nil {
		return err
	}
	return src.Close()
}

// defaultLength returns how many bytes one call moves on a path, where the user sets none.
func defaultLength(path string) int {
	switch path {
	case measure.IOSendfile:
		return fileLength
	case measure.IOLean:
		return truncLength
	}
	return measure.DefaultLength
}

// sourceDirs returns the folders to try for a source file, in order: on a disk first, because its pages leave faster than those of a file system in memory.
func sourceDirs() []string { return []string{os.TempDir(), "/var/tmp", "."} }

// sourceFile returns a nameless file with n bytes of the pattern, which disappears with its descriptor. Where no folder has room for it, it is in memory
// (memfd_create(2)); slower then says why.
func sourceFile(dirs []string, n int) (f *os.File, slower string, err error) {
	data := pattern(n)
	var why error
	for _, dir := range dirs {
		if inMemory(dir) {
			continue
		}
		if f, err = namelessFile(dir, data); err == nil {
			return f, "", nil
		}
		why = errors.Join(why, err)
	}
	fd, err := unix.MemfdCreate("thru", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, "", errors.Join(why, fmt.Errorf("worker: creating a source file in memory: %w", err))
	}
	f = os.NewFile(uintptr(fd), "memfd")
	if err = fill(f, data); err != nil {
		f.Close()
		return nil, "", errors.Join(why, err)
	}
	if why == nil {
		why = errors.New("no temporary folder is on a disk")
	}
	return f, fmt.Sprintf("the source file is in memory, which is slower: %v", why), nil
}

// namelessFile removes the file before use, so that nothing is ever left behind.
func namelessFile(dir string, data []byte) (*os.File, error) {
	f, err := os.CreateTemp(dir, "thru-*")
	if err != nil {
		return nil, fmt.Errorf("worker: creating a source file: %w", err)
	}
	os.Remove(f.Name())
	if err := fill(f, data); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func fill(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("worker: writing the source file: %w", err)
	}
	return nil
}

func inMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}

// truncPath is copyPath with a receiver that makes the kernel discard the data instead of copying it (MSG_TRUNC on a stream, tcp(7)).
type truncPath struct{ copyPath }

// Default bytes per call: long sendfile calls are cheaper, but discarding more at once gains nothing.
const (
	fileLength  = 1 << 20
	truncLength = 128 << 10
)

func (p truncPath) move(f *flow, s *stream) error {
	if s.sends {
		return p.copyPath.move(f, s)
	}
	if err := takeThread(s); err != nil {
		return err
	}
	return receive(f, s, pattern(1), f.length, unix.MSG_TRUNC) // the kernel never writes to the buffer
}
