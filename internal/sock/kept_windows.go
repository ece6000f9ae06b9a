package sock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Share describes the socket of c for a process, which opens it with OpenShared. This process must not use c after that, only close it.
func Share(c any, pid int) ([]byte, error) {
	var info windows.WSAProtocolInfo
	err := Reach(c, func(fd uintptr) error {
		release(windows.Handle(fd))
		return windows.WSADuplicateSocket(windows.Handle(fd), uint32(pid), &info)
	})
	if err != nil {
		return nil, fmt.Errorf("sock: sharing a socket with process %d: %w", pid, err)
	}
	return bytesOf(&info), nil
}

// OpenShared opens a socket that Share describes, once. It must not run twice at a time.
func OpenShared(description []byte) (net.Conn, error) {
	h, err := openShared(description)
	if err != nil {
		return nil, err
	}
	// NewFile gives files a completion port, but not standard input; and wine cannot take it from the socket again for FileConn.
	defer func(stdin syscall.Handle) { syscall.Stdin = stdin }(syscall.Stdin)
	syscall.Stdin = syscall.Handle(h)
	return connOf(h)
}

func openShared(description []byte) (windows.Handle, error) {
	var info windows.WSAProtocolInfo
	if copy(bytesOf(&info), description) != int(unsafe.Sizeof(info)) {
		return 0, errors.New("sock: opening a shared socket: its description is too short")
	}
	// -1: as the description says.
	h, err := windows.WSASocket(-1, -1, -1, &info, 0, windows.WSA_FLAG_OVERLAPPED|windows.WSA_FLAG_NO_HANDLE_INHERIT)
	if err != nil {
		return 0, fmt.Errorf("sock: opening a shared socket: %w", err)
	}
	return h, nil
}

func bytesOf(info *windows.WSAProtocolInfo) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(info)), unsafe.Sizeof(*info))
}

// release takes a socket from the completion port of the process that used it last, since a socket has one at a time. wine cannot, and the next process
// then gets an error from connOf.
func release(h windows.Handle) {
	var none struct{ port, key uintptr } // FILE_COMPLETION_INFORMATION
	windows.NtSetInformationFile(h, &windows.IO_STATUS_BLOCK{}, (*byte)(unsafe.Pointer(&none)), uint32(unsafe.Sizeof(none)), windows.FileReplaceCompletionInformation)
}

// connOf returns a connection of a socket, which it takes.
func connOf(h windows.Handle) (net.Conn, error) {
	f := os.NewFile(uintptr(h), "connection")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("sock: using a shared socket: %w", err)
	}
	return c, nil
}

// Kept keeps a duplicate of a socket while another process uses it. This process does not read, poll or change it before Conn.
type Kept struct {
	once   sync.Once
	handle windows.Handle
}

// Keep duplicates the socket of c, which may be closed after that.
func Keep(c syscall.Conn) (*Kept, error) {
	description, err := Share(c, os.Getpid())
	if err != nil {
		return nil, err
	}
	h, err := openShared(description)
	if err != nil {
		return nil, err
	}
	return &Kept{handle: h}, nil
}

// Conn returns a connection of the socket, once; it releases the duplicate.
func (k *Kept) Conn() (c net.Conn, err error) {
	err = net.ErrClosed
	k.once.Do(func() {
		release(k.handle)
		c, err = connOf(k.handle)
	})
	if err != nil {
		return nil, fmt.Errorf("sock: using a duplicated socket: %w", err)
	}
	return c, nil
}

// Close closes the duplicate, unless Conn has taken it.
func (k *Kept) Close() error {
	var err error
	k.once.Do(func() { err = windows.Closesocket(k.handle) })
	return err
}
