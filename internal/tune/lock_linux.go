package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
	"thru/internal/host/tree"
)

// hold keeps other processes from tuning this host until release is called or
// this process ends. A file in the state folder excludes processes with the
// same folder; a file at a place that only root can write excludes those with
// another folder. The socket excludes processes that see no such place, or
// another one, as in a container.
func hold(file, host, socket string) (release func(), err error) {
	inFolder, err := lock(file)
	if err != nil {
		return nil, err
	}
	ofHost, err := lockHost(host)
	if err != nil {
		inFolder()
		return nil, err
	}
	listening, err := listen(socket)
	if err != nil {
		ofHost()
		inFolder()
		return nil, err
	}
	return func() { listening(); ofHost(); inFolder() }, nil
}

// lock locks a file (flock(2)), which it creates if needed. On a read-only
// file system an existing file suffices, and so does none: nobody else can
// create one.
func lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, syscall.EROFS) {
		if f, err = os.Open(file); errors.Is(err, fs.ErrNotExist) {
			return func() {}, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("tune: locking the journal: %w", err)
	}
	if err := flock(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { os.Remove(file); f.Close() }, nil
}

// flock locks an open file, and makes sure that it is still the file of its
// name: the former holder may have removed it.
func flock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrTaken
	case err != nil:
		return fmt.Errorf("tune: locking the journal: %w", err)
	}
	mine, err := f.Stat()
	if err != nil {
		return fmt.Errorf("tune: locking the journal: %w", err)
	}
	if named, err := os.Stat(f.Name()); err != nil || !os.SameFile(mine, named) {
		return ErrTaken
	}
	return nil
}

// lockHost locks the file that only root can write; where that fails, the
// socket has to suffice.
func lockHost(file string) (unlock func(), err error) {
	info, err := os.Stat(filepath.Dir(file))
	if err != nil || os.Geteuid() != 0 || !ownedAlone(info) {
		return func() {}, nil
	}
	unlock, err = lock(file)
	switch {
	case errors.Is(err, ErrTaken):
		return nil, errElsewhere
	case err != nil: // the file system is full, or closed to this process
		return func() {}, nil
	}
	return unlock, nil
}

// listen takes the socket. It fails where a user who can tune holds it; any
// other holder is ignored.
func listen(socket string) (release func(), err error) {
	l, err := net.Listen("unix", socket)
	switch {
	case err == nil:
		return func() { l.Close() }, nil
	case !errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("tune: locking this host: %w", err)
	case holderCounts(socket):
		return nil, errElsewhere
	}
	return func() {}, nil
}

// holderCounts returns false where the socket's holder is a user who could
// not tune, or where there is none: no user may keep an administrator from
// undoing.
func holderCounts(socket string) bool {
	uid, _, err := holderOf(socket)
	return err == nil && mayTune(uid)
}

// holderPID returns the process that holds the socket and may tune; 0 where
// it is not known.
func holderPID(socket string) int {
	uid, pid, err := holderOf(socket)
	if err != nil || !mayTune(uid) {
		return 0
	}
	return pid
}

// holderOf returns the user and, where known, the process that holds the
// socket.
func holderOf(socket string) (uid uint32, pid int, err error) {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil { // the holder accepts no connections, or keeps its queue full
		uid, err = listenerOf(socket)
		return uid, 0, err
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	if err2 := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err2 != nil {
		err = err2
	}
	if err != nil {
		return 0, 0, err
	}
	return cred.Uid, int(cred.Pid), nil
}

func mayTune(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// held reports whether any process tunes this host now.
func held(host, socket string) bool { return holderCounts(socket) || locked(host) }

// locked reports whether a process holds the lock of a file.
func locked(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// ownSpace returns the network namespace of this thread. Its cookie
// (socket(7), since Linux 5.14) is unique within a boot; its inode, the only
// identifier before, may be reused.
func ownSpace() space {
	s := space{first: !files{tree.Tree{Root: "/"}}.isolated()}
	if fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		defer unix.Close(fd)
		if s.id, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
			return s
		}
	}
	if info, err := os.Stat("/proc/thread-self/ns/net"); err == nil {
		if of, ok := info.Sys().(*syscall.Stat_t); ok {
			s.id = of.Ino
		}
	}
	return s
}

// bootID returns the id of this boot; empty where it is not known
// (random(4)).
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// ownedAlone reports whether only this user and root can change a folder.
func ownedAlone(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(s.Uid) == os.Geteuid() || s.Uid == 0) && info.Mode().Perm()&0o022 == 0
}

// Possible returns why this process cannot change settings of the host; nil
// where it can.
func Possible() error {
	if why := privilege(); why != "" {
		return fault.Failf("run it as root there, or print only the advice: thru tune --dry-run", "tune: thru can read the settings of this host but not change them: %s", why)
	}
	return nil
}
