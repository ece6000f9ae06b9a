package disk

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Possible returns why this system cannot measure disks.
func Possible() error { return nil }

// create makes a nameless file in a folder (open(2), O_TMPFILE), or where the file system does not support that, a file whose name it removes at once. It
// never follows a link, and never opens an existing file.
func create(root *os.Root) (*os.File, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), "the file of thru disk"), nil
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return nil, err
	}
	return createNamed(root)
}

// createNamed makes a file and removes its name before it returns.
func createNamed(root *os.Root) (*os.File, error) {
	name := ".thru-disk-" + rand.Text()
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, bare(err)
	}
	if err := root.Remove(name); err != nil {
		f.Close()
		return nil, fmt.Errorf("removing the name %s: %w", name, bare(err))
	}
	return f, nil
}

// bare returns an error without the name of the file, which means nothing to a person.
func bare(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}

// setDirect bypasses the page cache for all further reads and writes.
func setDirect(f *os.File) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags|unix.O_DIRECT)
	}
	return err
}

// isDirect reports whether setDirect took effect.
func isDirect(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_DIRECT != 0
}

// dropCache empties the page cache of a file.
func dropCache(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// space is what a file system reports about itself.
type space struct {
	free     int64 // bytes available to this user
	inMemory bool
	deaf     bool // it accepts O_DIRECT but may answer from its own cache
}

// magicZFS identifies OpenZFS (include/sys/fs/zfs.h), which before 2.3 accepts O_DIRECT and reads from its own cache.
const magicZFS = 0x2fc12fc1

func spaceOf(f *os.File) (space, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return space{}, err
	}
	kind := uint32(s.Type)
	return space{
		free:     int64(min(s.Bavail, 1<<40)) * int64(cmp.Or(s.Frsize, s.Bsize)), // f_bavail counts fragments (statvfs(3))
		inMemory: kind == unix.TMPFS_MAGIC || kind == unix.RAMFS_MAGIC,
		deaf:     kind == magicZFS,
	}, nil
}

// memoryBytes returns the host's memory; 0: not known.
func memoryBytes() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}

// bind makes a program end with the thread that starts it.
func bind(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
