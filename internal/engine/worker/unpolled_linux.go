package worker

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"thru/internal/sock"

	"golang.org/x/sys/unix"
)

// unpolled is a socket that Go's network poller does not watch. The poller registers every socket of package net with the kernel (epoll(7)). Where raw calls
// move the data that is useless, but every segment wakes its thread: it costs a quarter of the throughput of a stream on one CPU, and a third of the requests.
type unpolled struct {
	*os.File
	local, remote net.Addr
}

func (u *unpolled) LocalAddr() net.Addr  { return u.local }
func (u *unpolled) RemoteAddr() net.Addr { return u.remote }

// unpoll removes a socket from the poller, for all streams that share it.
func unpoll(f *flow, s *stream) (*os.File, error) {
	if u, done := s.sock.(*unpolled); done {
		return u.File, nil
	}
	before := s.sock
	file, err := takeSocket(before)
	if err != nil {
		return nil, err
	}
	u := &unpolled{file, before.LocalAddr(), before.RemoteAddr()}
	for _, other := range f.streams {
		if other.sock == before {
			other.sock = u
		}
	}
	return file, before.Close()
}

// takeSocket duplicates a socket and makes it blocking before package os sees it, because os would register it too.
func takeSocket(s syscall.Conn) (*os.File, error) {
	var file *os.File
	err := sock.Reach(s, func(fd uintptr) error {
		own, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		file = os.NewFile(uintptr(own), "socket")
		return unix.SetNonblock(own, false)
	})
	if err != nil {
		return nil, fmt.Errorf("worker: taking a socket: %w", err)
	}
	return file, nil
}
