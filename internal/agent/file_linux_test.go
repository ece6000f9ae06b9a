package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/disk"
	"thru/internal/fault"
	"thru/internal/sock"
	"thru/internal/token"
	"thru/internal/transfer"
	dataplane "thru/internal/transfer/own"
)

// lets returns an agent that allows file transfers in a folder, and a client that has
// its turn.
func lets(t *testing.T, dir string) (*Agent, *bus.Client) {
	t.Helper()
	a, _, _ := newFake(t, DefaultLimits())
	a.conf.Files = Files{Folders: []string{dir}, MaxBytes: 8 << 20}
	a.conf.Listen.Addrs = []string{"127.0.0.1"}
	c := stranger(t, a, bus.PrivilegeFiles)
	if r, err := bus.Call(t.Context(), c, bus.Reserve, bus.ReserveRequest{}); err != nil || !r.Granted {
		t.Fatal(r, err)
	}
	return a, c
}

// lists fails if a folder still holds anything else after some seconds.
func lists(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if strings.Join(got, " ") == strings.Join(want, " ") {
			return
		}
	}
	t.Errorf("the folder holds %q, want %q", got, want)
}

// through connects to the port of a transfer.
func through(t *testing.T, r bus.FileReply) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	own, err := token.Parse(r.Token)
	if err == nil {
		err = own.Introduce(conn, token.File, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestFilesOfRemoteClients: a client with the privilege can move files in the configured
// folders only.
func TestFilesOfRemoteClients(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "in"), 0o700), os.WriteFile(filepath.Join(dir, "f"), []byte("four"), 0o600),
		os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600), os.Symlink(outside, filepath.Join(dir, "out")),
		os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")), os.Symlink("../f", filepath.Join(dir, "in", "f")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, c := lets(t, dir)
	for path, want := range map[string]struct {
		text   string
		reason bus.Reason
	}{
		outside + "/secret": {"not below", bus.ReasonDenied}, dir + "/../" + filepath.Base(outside) + "/secret": {"without ..", ""},
		dir + "/in/..": {"not the absolute path", ""}, "f": {"not the absolute path", ""}, "": {"not the absolute path", ""}, dir + "/": {"not the absolute path", ""},
		dir + "/none": {"no such file", bus.ReasonMissing}, dir + "/none/f": {"no such file", bus.ReasonMissing}, dir + "/f/x": {"not a folder", bus.ReasonMissing},
		dir + "/link": {"escapes", bus.ReasonDenied}, dir + "/out/secret": {"escapes", bus.ReasonDenied}, dir + "/in": {"it is not a regular file", ""}, dir + "/pipe": {"it is not a regular file", ""},
	} {
		_, err := bus.Call(t.Context(), c, bus.FileSize, bus.FilePath{Path: path})
		_, gerr := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: path})
		for _, err := range []error{err, gerr} {
			if err == nil || !strings.Contains(err.Error(), want.text) || fault.ReasonOf(err) != want.reason || fault.Hint(err) == "" {
				t.Errorf("%q: %v (%s, %q), want %+v", path, err, fault.Hint(err), fault.ReasonOf(err), want)
			}
		}
	}
	for _, path := range []string{outside + "/new", dir + "/out/new", dir + "/none/new", dir + "/in"} {
		if _, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: path, Put: true, Bytes: 1, Overwrite: true}); err == nil {
			t.Errorf("%q is written", path)
		}
	}
	for _, path := range []string{outside + "/secret", dir + "/out/secret", dir + "/in", dir + "/link"} {
		if _, err := bus.Call(t.Context(), c, bus.FileRemove, bus.FilePath{Path: path}); err == nil {
			t.Errorf("%q is removed", path)
		}
	}
	for _, path := range []string{dir + "/f", dir + "/in/../f", dir + "/./f"} {
		if r, err := bus.Call(t.Context(), c, bus.FileSize, bus.FilePath{Path: path}); strings.Contains(path, "..") != (err != nil) || err == nil && r.Bytes != 4 {
			t.Errorf("%q: %+v %v", path, r, err)
		}
	}
	for _, path := range []string{dir + "/pipe", dir + "/link", dir + "/in/f"} {
		_, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: path, Put: true, Bytes: 1, Overwrite: true})
		if err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
			t.Errorf("%q is replaced: %v", path, err)
		}
	}
	lists(t, outside, "secret")
}

// TestFileInThePlaceOfAPipe: a pipe is not replaced, also where it was created during
// the transfer.
func TestFileInThePlaceOfAPipe(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	end, err := openTarget(root, "f", 4, true)
	if err == nil {
		err = syscall.Mkfifo(filepath.Join(dir, "f"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := end.keep(t.Context()); err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
		t.Error(err)
	}
	lists(t, dir, "f")
	if info, err := os.Lstat(filepath.Join(dir, "f")); err != nil || info.Mode().IsRegular() {
		t.Error(info, err)
	}
}

// TestFilesRefused: without privilege, turn or space, or where the name exists.
func TestFilesRefused(t *testing.T) {
	dir := t.TempDir()
	a, c := lets(t, dir)
	if err := os.WriteFile(dir+"/f", []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]bus.FileStart{
		"files up to 8 MiB":     {Path: dir + "/new", Put: true, Bytes: 9 << 20},
		"file already exists":   {Path: dir + "/f", Put: true, Bytes: 1},
		"-1 is not a file size": {Path: dir + "/new", Put: true, Bytes: -1},
	} {
		if _, err := bus.Call(t.Context(), c, bus.File.Begin, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	measures := stranger(t, a, bus.PrivilegeMeasure)
	if _, err := bus.Call(t.Context(), measures, bus.FileSize, bus.FilePath{Path: dir + "/f"}); fault.ReasonOf(err) != bus.ReasonDenied || fault.Hint(err) == "" {
		t.Error("without the privilege:", err)
	}
	other := stranger(t, a, bus.PrivilegeFiles)
	if _, err := bus.Call(t.Context(), other, bus.File.Begin, bus.FileStart{Path: dir + "/f"}); err == nil || !strings.Contains(err.Error(), "turn") {
		t.Error("without the turn:", err)
	}
	r, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: dir + "/f"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Call(t.Context(), other, bus.File.End, bus.FileEnd{Session: r.Session, End: true}); err == nil {
		t.Error("another client ends it")
	}
	if _, err := bus.Call(t.Context(), c, bus.Disk.Begin, quickDisk(dir)); err == nil {
		t.Error("a disk is measured at the same time")
	}
	if text := a.Busy(); !strings.Contains(text, "files") {
		t.Errorf("it is %q", text)
	}
	lists(t, dir, "f")
}

// TestFileLeavesNothing: an incomplete file leaves no trace, whichever side ends.
func TestFileLeavesNothing(t *testing.T) {
	part := bytes.Repeat([]byte("x"), 1<<20)
	for name, end := range map[string]func(*Agent, *bus.Client, bus.FileReply, net.Conn){
		"the connection ends": func(_ *Agent, _ *bus.Client, _ bus.FileReply, conn net.Conn) { conn.Close() },
		"the client is gone":  func(_ *Agent, c *bus.Client, _ bus.FileReply, _ net.Conn) { c.Close() },
		"the turn goes": func(_ *Agent, c *bus.Client, _ bus.FileReply, _ net.Conn) {
			bus.Call(context.Background(), c, bus.Release, bus.ReleaseRequest{})
		},
		"it is ended": func(_ *Agent, c *bus.Client, r bus.FileReply, _ net.Conn) {
			bus.Call(context.Background(), c, bus.File.End, bus.FileEnd{Session: r.Session, End: true})
		},
		"the agent ends": func(a *Agent, _ *bus.Client, _ bus.FileReply, _ net.Conn) { a.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, c := lets(t, dir)
			r, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: dir + "/new", Put: true, Bytes: 2 << 20})
			if err != nil {
				t.Fatal(err)
			}
			conn := through(t, r)
			if _, err := conn.Write(part); err != nil {
				t.Fatal(err)
			}
			end(a, c, r, conn)
			conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the agent's end stays open")
			}
			lists(t, dir)
		})
	}
}

// TestFileNeverCame: the port closes when its transfer ends, and accepts its token only.
func TestFileNeverCame(t *testing.T) {
	dir := t.TempDir()
	_, c := lets(t, dir)
	r, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: dir + "/new", Put: true, Bytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	wrong, _ := token.Parse(token.New())
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if wrong.Introduce(conn, token.File, nil) == nil {
		t.Error("another token opens it")
	}
	if f, err := bus.Call(t.Context(), c, bus.File.End, bus.FileEnd{Session: r.Session}); err != nil || f.Over {
		t.Errorf("after a stranger: %+v %v", f, err)
	}
	right := through(t, r)
	if again, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port))); err == nil {
		again.Close()
		t.Error("it is open twice")
	}
	if _, err := right.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for over := false; !over; {
		f, err := bus.Call(t.Context(), c, bus.File.End, bus.FileEnd{Session: r.Session})
		if err != nil {
			t.Fatal(err)
		}
		over = f.Over
	}
	lists(t, dir, "new")
	if _, err := bus.Call(t.Context(), c, bus.File.End, bus.FileEnd{Session: r.Session}); err == nil {
		t.Error("it is reported twice")
	}
}

// TestDoorFrom: the port accepts one address only, where that is known.
func TestDoorFrom(t *testing.T) {
	for from, opens := range map[string]bool{"": true, "127.0.0.1": true, "127.0.0.2": false} {
		addr, _ := netip.ParseAddr(from)
		d, err := dataplane.OpenDoor(t.Context(), sock.Range{Addrs: []string{"127.0.0.1"}}, "", 0, addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan *net.TCPConn, 1)
		go func() {
			conn, _ := d.Await(ctx)
			got <- conn
		}()
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.Port())))
		if err != nil {
			t.Fatal(err)
		}
		own, _ := token.Parse(d.Token())
		if err := own.Introduce(conn, token.File, nil); (err == nil) != opens {
			t.Errorf("from %q: %v", from, err)
		}
		if !opens {
			cancel()
		}
		if far := <-got; far != nil {
			far.Close()
		}
		conn.Close()
		cancel()
	}
}

// TestTarget: both kinds of files get their name when they are complete, and replace
// nothing that was created meanwhile.
func TestTarget(t *testing.T) {
	for _, named := range []bool{false, true} {
		for _, overwrite := range []bool{false, true} {
			path := t.TempDir()
			dir, err := os.OpenRoot(path)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			begin := func(name string) *target {
				end, err := openTarget(dir, name, 4, overwrite)
				if err != nil {
					t.Fatal(err)
				}
				got := end.(*target)
				if named && got.temp == "" {
					got.file.Close()
					got.temp = transfer.TempName(name)
					if got.file, err = got.dir.OpenFile(got.temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666); err != nil {
						t.Fatal(err)
					}
				}
				io.WriteString(got.file, "four")
				return got
			}
			begin("dropped").drop()
			lists(t, path)
			if err := begin("f").keep(t.Context()); err != nil {
				t.Error(err)
			}
			lists(t, path, "f")
			late := begin("g")
			if err := os.WriteFile(path+"/g", []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			err = late.keep(t.Context())
			if b, _ := os.ReadFile(path + "/g"); overwrite != (err == nil) || overwrite != (string(b) == "four") || !overwrite && fault.ReasonOf(fileError("x", "g", err)) != bus.ReasonExists {
				t.Errorf("named %v, overwrite %v: %v, %q", named, overwrite, err, b)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := begin("h").keep(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("of a client that is gone: %v", err)
			}
			lists(t, path, "f", "g")
		}
	}
}

// TestFileSilent: a silent connection is given up.
func TestFileSilent(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	end, err := openTarget(dir, "f", 10, false)
	if err != nil {
		t.Fatal(err)
	}
	defer end.drop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near.Write([]byte("some"))
	x := &fileMove{silence: 20 * time.Millisecond}
	x.bytes.Store(end.size())
	if err := x.stream(t.Context(), far.(*net.TCPConn), end); fault.ReasonOf(err) != bus.ReasonSilent || x.moved.Load() != 4 {
		t.Errorf("%v after %d bytes", err, x.moved.Load())
	}
	x.silence, x.longest = time.Minute, 10*time.Millisecond
	again, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	long, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.stream(t.Context(), long.(*net.TCPConn), end); err == nil || !strings.Contains(err.Error(), "longer than") || fault.Hint(err) == "" {
		t.Errorf("of one that takes too long: %v", err)
	}
	near.Close()
	if err := x.chunks(t.Context(), far.(*net.TCPConn), end); fault.ReasonOf(err) != bus.ReasonShort {
		t.Errorf("of one that ended: %v", err)
	}
}

// TestFileRate: the amount moved at once fits the rate.
func TestFileRate(t *testing.T) {
	for rate, want := range map[int64]int64{0: fileChunk, 1e6: 12500, 1000: 1500, 1e12: fileChunk} {
		if got := (&fileMove{rate: rate}).chunk(); got != want {
			t.Errorf("at %d bit/s %d bytes, want %d", rate, got, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	x := &fileMove{rate: 1000}
	if x.pace(ended, time.Now(), 1<<20) || !x.pace(t.Context(), time.Now(), 0) {
		t.Error("it waits for a client that is gone, or for nothing")
	}
}

// TestFilesPromised: running transfers keep their reserved space.
func TestFilesPromised(t *testing.T) {
	dir := t.TempDir()
	a, c := lets(t, dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	free, err := freeIn(root)
	if err != nil {
		t.Skip(err)
	}
	a.conf.Files.MaxBytes = free
	first, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: dir + "/a", Put: true, Bytes: free / 3 * 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: dir + "/b", Put: true, Bytes: free / 3 * 2}); fault.ReasonOf(err) != bus.ReasonFull || !strings.Contains(err.Error(), "for running transfers") {
		t.Error("more than there is room for:", err)
	}
	if _, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: dir + "/c", Put: true, Bytes: 1}); err != nil {
		t.Error("there is room:", err)
	}
	if _, err := bus.Call(t.Context(), c, bus.File.End, bus.FileEnd{Session: first.Session, End: true}); err == nil {
		t.Error("it is whole")
	}
	if _, err := bus.Call(t.Context(), c, bus.File.Begin, bus.FileStart{Path: dir + "/b", Put: true, Bytes: free / 3 * 2}); err != nil {
		t.Error("the first has ended:", err)
	}
}

// freeIn returns the free space of a folder in bytes.
func freeIn(dir *os.Root) (int64, error) {
	f, err := dir.Open(".")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return disk.Free(f)
}

// TestPipeIsNoFolder: a pipe in place of a folder does not block.
func TestPipeIsNoFolder(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &Agent{conf: Config{Files: Files{Folders: []string{dir}}}}
	for _, own := range []bool{true, false} {
		if root, err := a.folder("measuring a disk", filepath.Join(dir, "pipe"), own); err == nil || !strings.Contains(err.Error(), "is not a folder") {
			t.Errorf("own %t: %v, %v", own, root, err)
		}
	}
}
