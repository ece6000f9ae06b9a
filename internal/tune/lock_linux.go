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

// hold keeps others from tuning this host until it is released, or the process
// ends in whatever way. Those who use the same folder are kept out by a file in
// it; those with another folder by one at a place where root alone can write. The
// socket is for those who see no such place, or another one, as in a container.
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

// lock takes the lock of a file (flock(2)), and makes that where it is not there.
// Where the file system is read-only by now, the one that is there will do, and none
// where none is: nobody else makes one.
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

// flock locks an open file that is still the one of its name: who held it before
// has removed it.
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

// lockHost does it where root alone can write; elsewhere the socket has to do.
func lockHost(file string) (unlock func(), err error) {
	info, err := os.Stat(filepath.Dir(file))
	if err != nil || os.Geteuid() != 0 || !ownedAlone(info) {
		return func() {}, nil
	}
	unlock, err = lock(file)
	switch {
	case errors.Is(err, ErrTaken):
		return nil, errElsewhere
	case err != nil: // it is full, or closed to this process
		return func() {}, nil
	}
	return unlock, nil
}

// listen holds the socket, unless somebody does who cannot tune.
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

// holderCounts is false where the socket is held by a user who could not tune,
// or by nobody: no user may keep an administrator from undoing.
func holderCounts(socket string) bool {
	uid, _, err := holderOf(socket)
	return err == nil && mayTune(uid)
}

// holderPID is the process of one who counts; 0 where that is not told.
func holderPID(socket string) int {
	uid, pid, err := holderOf(socket)
	if err != nil || !mayTune(uid) {
		return 0
	}
	return pid
}

// holderOf tells whose the socket is: the user, and the process where that is told.
func holderOf(socket string) (uid uint32, pid int, err error) {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil { // its holder takes no connections, or keeps its queue full
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

// held tells whether somebody tunes this host now, here or in another process.
func held(host, socket string) bool { return holderCounts(socket) || locked(host) }

// locked tells whether somebody holds the lock of a file.
func locked(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// ownSpace is the network namespace of this thread. Its cookie (socket(7), since
// Linux 5.14) is given to no other one of this boot; its inode, which is all that
// there was before, is given again.
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
