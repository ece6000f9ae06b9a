package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
)

// hold keeps others from tuning this host until it is released, or the process
// ends in whatever way. Those who use the same folder are kept out by a file,
// which no other user can take; those with another folder by the socket.
func hold(file, socket string) (release func(), err error) {
	f, err := lockable(file)
	if err != nil {
		return nil, fmt.Errorf("tune: locking the journal: %w", err)
	}
	if f == nil {
		return holdSocket(socket, func() {})
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrTaken
		}
		return nil, fmt.Errorf("tune: locking the journal: %w", err)
	}
	return holdSocket(socket, func() { f.Close() })
}

// lockable opens the file of a lock. Where the file system is read-only by now, the
// one that is there will do, and none (nil) where none is: nobody else makes one.
func lockable(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if !errors.Is(err, syscall.EROFS) {
		return f, err
	}
	if f, err = os.Open(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// holdSocket is the second half of hold; unlock gives the first back.
func holdSocket(socket string, unlock func()) (release func(), err error) {
	l, err := net.Listen("unix", socket)
	switch {
	case err == nil:
		return func() { l.Close(); unlock() }, nil
	case errors.Is(err, syscall.EADDRINUSE) && !holderCounts(socket):
		return unlock, nil
	case errors.Is(err, syscall.EADDRINUSE):
		err = errElsewhere
	default:
		err = fmt.Errorf("tune: locking this host: %w", err)
	}
	unlock()
	return nil, err
}

// holderCounts is false where the socket is held by a user who could not tune,
// or by nobody: no user may keep an administrator from undoing.
func holderCounts(socket string) bool {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil { // its holder takes no connections, or keeps its queue full
		uid, err := listenerOf(socket)
		return err == nil && mayTune(uid)
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return true
	}
	counts := true
	raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		counts = err != nil || mayTune(cred.Uid)
	})
	return counts
}

func mayTune(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// held tells whether somebody tunes this host now, here or in another process.
func held(socket string) bool { return holderCounts(socket) }

// namespace is the network namespace of this thread: its inode, 0 where that
// is not told.
func namespace() uint64 {
	info, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil {
		return 0
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return s.Ino
}

// bootID names the boot of this host; empty where it is not told (random(4)).
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// ownedAlone is true of a folder that nobody but this user, or root, can change.
func ownedAlone(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(s.Uid) == os.Geteuid() || s.Uid == 0) && info.Mode().Perm()&0o022 == 0
}

// Possible says why this process cannot change settings of the host; nil: it can.
func Possible() error {
	if why := privilege(); why != "" {
		return fault.Failf("run it as root there, or print the advice alone: thru tune --dry-run", "tune: this thru can read the settings of the host, and change none: %s", why)
	}
	return nil
}
