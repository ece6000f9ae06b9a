package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/lab"
)

// hogSocket is the environment variable that makes the test program hold a
// socket with a full queue, so that nobody can connect and read its
// credentials.
const hogSocket = "THRU_TEST_HOG"

func beHog(socket string) int {
	if err := fillSocket(socket); err != nil {
		os.Stdout.WriteString(err.Error())
		return 1
	}
	os.Stdout.WriteString("held")
	os.Stdin.Read(make([]byte, 1))
	return 0
}

// fillSocket listens, and connects until the queue is full.
func fillSocket(socket string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	at := &unix.SockaddrUnix{Name: socket}
	if err = errors.Join(err, unix.Bind(fd, at), unix.Listen(fd, 0)); err != nil {
		return err
	}
	for {
		c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.Connect(c, at); errors.Is(err, unix.EAGAIN) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// hog makes the test program hold a socket as a user.
func hog(t *testing.T, socket string, uid uint32) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), hogSocket+"="+socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	in, err := cmd.StdinPipe()
	must(err)
	out, err := cmd.StdoutPipe()
	must(err)
	must(cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	said := make([]byte, 200)
	if n, _ := out.Read(said); string(said[:n]) != "held" {
		t.Fatalf("%s", said[:n])
	}
}

// TestHeldByAnybody: a user who could not tune does not block an undo, even
// where no connection shows the user.
func TestHeldByAnybody(t *testing.T) {
	lab.Require(t, lab.Root())
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	life(open(t, dir, f, c), func(d *Tuner) { must(d.Begin("a", "alice")); setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}) })
	hog(t, c.socket, 65534)
	if _, err := net.Dial("unix", c.socket); !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("its queue is not full: %v", err)
	}
	d := open(t, dir, f, c)
	if d.By() != "" {
		t.Errorf("tuned by %q", d.By())
	}
	if all, err := d.Recover(); err != nil || outcomes(all) != "cc undone" {
		t.Error(outcomes(all), err)
	}
	unchanged(t, f)
}

// TestHeldByAnother: a tuner with another folder is waited for, and what is
// not undone for that reason is reported.
func TestHeldByAnother(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	life(open(t, dir, f, c), func(d *Tuner) { must(d.Begin("a", "alice")); setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}) })
	must(fillSocket(c.socket)) // its queue full, too: it is the holder that counts
	d := open(t, dir, f, c)
	if d.By() == "" {
		t.Error("nobody tunes")
	}
	if all, err := d.Recover(); len(all) > 0 || !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "not reverted") || fault.Hint(err) == "" {
		t.Error(outcomes(all), err)
	}
	if _, err := d.Rollback(); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
}

// TestTwoFoldersAndAHog: a user who could not tune cannot, by holding the
// socket, make two tuners of one host run together.
func TestTwoFoldersAndAHog(t *testing.T) {
	lab.Require(t, lab.Root())
	f, c := newFake(settings()), conf()
	c.run = t.TempDir()
	hog(t, c.socket, 65534)
	d1, d2 := tuned(t, t.TempDir(), f, c), open(t, t.TempDir(), f, c)
	if d2.By() == "" {
		t.Error("nobody tunes")
	}
	if err := d2.Begin("b", "bob"); !errors.Is(err, errElsewhere) || strings.Contains(fault.Hint(err), "kill") {
		t.Error("two tune one host, or the hog is to be killed:", err, fault.Hint(err))
	}
	must(os.WriteFile(d1.hostLock()+"x", nil, 0o600)) // of another network namespace
	d1.Gone("a")
	if d2.By() != "" {
		t.Error(d2.By())
	}
	must(os.WriteFile(d2.hostLock(), nil, 0o600)) // as a crash leaves it
	if err := d2.Begin("b", "bob"); err != nil {
		t.Error(err)
	}
	d2.Gone("b")
	if left, err := os.ReadDir(c.run); err != nil || len(left) != 1 {
		t.Error("the lock is left behind:", left, err)
	}
}

// TestOpenRun: a folder that others can write holds no lock.
func TestOpenRun(t *testing.T) {
	lab.Require(t, lab.Root())
	c := conf()
	c.run = t.TempDir()
	must(os.Chmod(c.run, 0o777))
	d := tuned(t, t.TempDir(), newFake(settings()), c)
	defer d.Gone("a")
	if _, err := os.Stat(d.hostLock()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestLockIsRemoved: a process that opened a lock file before its holder
// removed it holds nothing.
func TestLockIsRemoved(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(name)
	must(err)
	f, err := os.Open(name)
	must(err)
	defer f.Close()
	if err := flock(f); !errors.Is(err, ErrTaken) || !locked(name) {
		t.Error("it is held twice:", err)
	}
	unlock()
	if err := flock(f); !errors.Is(err, ErrTaken) || locked(name) {
		t.Error(err)
	}
}

// TestTakenNamesTheProcess: it may be a stopped one, which only a person can
// end.
func TestTakenNamesTheProcess(t *testing.T) {
	f, c := newFake(settings()), conf()
	for _, folder := range []string{"same", "other"} {
		dir := t.TempDir()
		d := tuned(t, dir, f, c)
		alter(t, d, "cc", "", "cubic")
		if folder == "other" {
			dir = t.TempDir()
			must(os.WriteFile(filepath.Join(dir, "000001.jsonl"), nil, 0o600)) // else there is nothing to roll back
		}
		_, err := open(t, dir, f, c).Rollback()
		if !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), fmt.Sprintf("(process %d)", os.Getpid())) || !strings.Contains(fault.Hint(err), fmt.Sprintf("kill -9 %d if it hangs", os.Getpid())) {
			t.Errorf("%s: %v (%s)", folder, err, fault.Hint(err))
		}
		d.Gone("a")
	}
}

// TestOwnSpace: no two network namespaces of a boot have the same id, even
// where the kernel reuses the inode number of an ended one.
func TestOwnSpace(t *testing.T) {
	lab.Require(t, lab.Root(), lab.Namespaces())
	seen := map[uint64]bool{ownSpace().id: true}
	for range 4 {
		got, inode := make(chan space), uint64(0)
		go func() {
			runtime.LockOSThread() // never unlocked: the namespace ends with the thread
			if unix.Unshare(unix.CLONE_NEWNET) != nil {
				got <- space{first: true}
				return
			}
			var own unix.Stat_t
			must(unix.Stat("/proc/thread-self/ns/net", &own))
			inode = own.Ino
			got <- ownSpace()
		}()
		if s := <-got; s.id == 0 || s.first || seen[s.id] || s.id == inode { // since Linux 5.14
			t.Errorf("%+v, before %v, inode %d", s, seen, inode)
		} else {
			seen[s.id] = true
		}
	}
}

// TestJournalOfAnother: whoever writes a journal decides what is restored, so
// another user's journal is not used, but reported.
func TestJournalOfAnother(t *testing.T) {
	lab.Require(t, lab.Root())
	for name, how := range map[string]struct{ spoil, fix func(path string) error }{
		"mode":  {func(p string) error { return os.Chmod(p, 0o666) }, func(p string) error { return os.Chmod(p, 0o600) }},
		"owner": {func(p string) error { return os.Chown(p, 65534, 65534) }, func(p string) error { return os.Chown(p, 0, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir, f, c := t.TempDir(), newFake(settings()), conf()
			path := filepath.Join(dir, "000001.jsonl")
			life(open(t, dir, f, c), func(d *Tuner) { must(d.Begin("a", "alice")); setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}) })
			must(how.spoil(path))
			d := tuned(t, dir, f, c) // it keeps nobody from tuning
			d.Gone("a")
			if all, err := d.Rollback(); err != nil || outcomes(all) != " failed" || !strings.Contains(all[0].Error, path+": it belongs to another user") || f.values[target{"cc", ""}] != "cubic" {
				t.Error(all, err)
			}
			must(how.fix(path))
			if all, err := d.Rollback(); err != nil || outcomes(all) != "cc undone" {
				t.Error(all, err)
			}
		})
	}
}

// TestReadOnly: a journal that can only be read, since its disk has failed,
// suffices for the undo, with the lock file and without it.
func TestReadOnly(t *testing.T) {
	lab.Require(t, lab.Root(), lab.Namespaces())
	for _, lock := range []string{"there", "missing"} {
		dir, f, c := t.TempDir(), newFake(settings()), conf()
		done := make(chan string)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread, and its mounts, end with the goroutine
			err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), unix.Mount("state", dir, "tmpfs", 0, "mode=700"))
			if err != nil {
				done <- err.Error()
				return
			}
			life(open(t, dir, f, c), func(d *Tuner) {
				must(d.Begin("a", "alice"))
				setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}, measure.Setting{Knob: "cc", Value: "reno"})
			})
			d := open(t, dir, f, c)
			if lock == "there" { // as a crash leaves it
				must(os.WriteFile(d.lockFile(), nil, 0o600))
			}
			must(unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			all, err := d.Rollback()
			again, err2 := d.Rollback()
			done <- fmt.Sprint(outcomes(all), "; ", outcomes(again), "; ", all[0].Error, err, err2)
		}()
		got := <-done
		if !strings.HasPrefix(got, "cc undone, cc undone; cc as it was, cc as it was; tune: writing the journal") || !strings.HasSuffix(got, "read-only file system<nil> <nil>") {
			t.Errorf("%s: %s", lock, got)
		}
		unchanged(t, f)
	}
}
