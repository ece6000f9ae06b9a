package worker

import (
	"net"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"thru/internal/fault"
	"thru/internal/measure"
)

func gone(pid int) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return true
	}
	defer windows.CloseHandle(h)
	event, _ := windows.WaitForSingleObject(h, 0)
	return event == windows.WAIT_OBJECT_0
}

// underWine reports whether wine runs this program. It leaves sockets of package net to the process that made them.
func underWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// systemConn is a connection of the system that package net does not know, so that wine too can hand it over.
type systemConn struct {
	net.Conn
	h windows.Handle
}

func (c systemConn) SyscallConn() (syscall.RawConn, error) { return control(c.h), nil }
func (c systemConn) Close() error                          { return windows.Closesocket(c.h) }

func (c systemConn) Write(b []byte) (int, error) {
	var n uint32
	err := windows.WSASend(c.h, &windows.WSABuf{Len: uint32(len(b)), Buf: &b[0]}, 1, &n, 0, nil, nil)
	return int(n), err
}

type control windows.Handle

func (c control) Control(do func(uintptr)) error { do(uintptr(c)); return nil }
func (control) Read(func(uintptr) bool) error    { return syscall.EWINDOWS }
func (control) Write(func(uintptr) bool) error   { return syscall.EWINDOWS }

// systemPair returns two connected sockets of the system under wine, and nothing on Windows.
func systemPair(t *testing.T, protocol string) (a, b net.Conn) {
	t.Helper()
	if !underWine() {
		return nil, nil
	}
	if protocol == measure.UDP {
		t.Skip("wine refuses SIO_UDP_NETRESET: Go has no UDP there")
	}
	try := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var hs [2]windows.Handle
	var at [2]windows.Sockaddr
	for i := range hs {
		var err error
		hs[i], err = windows.WSASocket(windows.AF_INET, windows.SOCK_STREAM, 0, nil, 0, windows.WSA_FLAG_OVERLAPPED|windows.WSA_FLAG_NO_HANDLE_INHERIT)
		try(err)
		try(windows.Bind(hs[i], &windows.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
		at[i], err = windows.Getsockname(hs[i])
		try(err)
	}
	defer windows.Closesocket(hs[1])
	try(windows.Listen(hs[1], 1))
	try(windows.Connect(hs[0], at[1]))
	var from windows.RawSockaddrAny
	size := int32(unsafe.Sizeof(from))
	h, _, err := windows.NewLazySystemDLL("ws2_32.dll").NewProc("accept").Call(uintptr(hs[1]), uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&size)))
	if windows.Handle(h) == windows.InvalidHandle {
		t.Fatal(err)
	}
	return systemConn{h: hs[0]}, systemConn{h: windows.Handle(h)}
}

// TestWineKeepsConnections: a connection of package net cannot be handed over under wine, and the error says what can.
func TestWineKeepsConnections(t *testing.T) {
	if !underWine() {
		t.Skip("Windows hands them over: TestAdopted")
	}
	s := leading(t)
	near, far := tcpPair(t)
	defer far.Close()
	if err := s.Take(t.Context(), []Conn{{Conn: near}}); err == nil || fault.Hint(err) == "" {
		t.Errorf("%v; hint %q", err, fault.Hint(err))
	}
}
