package tune

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/lab"
)

// hogSocket is the variable by which the test program holds a socket, with its
// queue full, so that nobody can connect and ask who it is.
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

// fillSocket listens, and connects until no more is taken.
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

// hog has the test program hold a socket as a user.
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

// TestHeldByAnybody: a user who could not tune keeps nobody from undoing, also
// where no connection tells who it is.
func TestHeldByAnybody(t *testing.T) {
	lab.Require(t, lab.Root())
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	life(open(t, dir, f, c), func(d *Desk) { must(d.Begin("a", "alice")); setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}) })
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

// TestHeldByAnother: one with another folder who may tune is waited for, and what
// is left alone on that account is said.
func TestHeldByAnother(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	life(open(t, dir, f, c), func(d *Desk) { must(d.Begin("a", "alice")); setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}) })
	must(fillSocket(c.socket)) // its queue full, too: it is the holder that counts
	d := open(t, dir, f, c)
	if d.By() == "" {
		t.Error("nobody tunes")
	}
	if all, err := d.Recover(); len(all) > 0 || !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "not undone") || fault.Hint(err) == "" {
		t.Error(outcomes(all), err)
	}
	if _, err := d.Rollback(); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
}

// TestReadOnly: a journal that can only be read, since its disk has failed, is
// enough to undo what it says; with the file of the lock, and without it.
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
			life(open(t, dir, f, c), func(d *Desk) {
				must(d.Begin("a", "alice"))
				setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}, measure.Setting{Knob: "cc", Value: "reno"})
			})
			d := open(t, dir, f, c)
			if lock == "missing" {
				must(os.Remove(d.lockFile()))
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
