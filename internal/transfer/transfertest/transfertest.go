// Package transfertest is the contract that every client of a file protocol
// passes, against a real server of that protocol.
package transfertest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/transfer"
	"thru/internal/transfer/servers"
)

// limit limits each operation; it is no requirement on speed.
const limit = 30 * time.Second

// Server is a real server that runs until the test ends.
type Server struct {
	Config   transfer.Config // for a client of this server
	Folder   string          // folder of the files on this machine
	Dir      string          // the same in a URL, without leading and trailing slash; may be empty
	ReadOnly string          // path of a file that cannot be created, in an existing folder; empty: not tested, which is logged
	Full     string          // path of a file on a file system of at most 1 MiB; likewise
}

// Suite describes the client under test.
type Suite struct {
	Start func(t *testing.T) Server
	New   func(transfer.Config) transfer.Client

	Open  bool  // anyone may log in
	Dials bool  // the client dials by itself, not by Config.Dial: faults come from a relay before its only port
	Large int64 // bytes, more than all buffers between the ends; 0 is 8 MiB
}

// contract is one suite on its server.
type contract struct {
	Suite
	Server
}

// Run runs the contract.
func Run(t *testing.T, s Suite) {
	s.Large = cmp.Or(s.Large, 8<<20)
	c := contract{s, s.Start(t)}
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"round trip", c.roundTrip}, {"many files", c.many}, {"clients at once", c.atOnce}, {"info", c.info},
		{"exists", c.exists}, {"missing", c.missing}, {"over 4 GiB", c.huge},
		{"login", c.login}, {"read-only", c.readOnly}, {"full", c.full}, {"hostile names", c.hostile},
		{"source fails", c.sourceFails}, {"sink fails", c.sinkFails}, {"grows", c.grows}, {"cancelled", c.cancelled},
		{"cut", c.cut}, {"silent", c.silent}, {"no server", c.noServer},
	} {
		t.Run(part.name, part.run)
	}
}

// RoundTrip is only the first part of the contract, for a client that has
// passed it all in another setting.
func RoundTrip(t *testing.T, server Server, client func(transfer.Config) transfer.Client) {
	contract{Suite{New: client, Large: 1 << 20}, server}.roundTrip(t)
}

// Bytes returns n incompressible bytes, equal for equal seeds.
func Bytes(seed uint64, n int64) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0] = byte(seed)
	rand.NewChaCha8(key).Read(b)
	return b
}

// FreePort returns a TCP port of loopback that was free a moment ago.
func FreePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Await returns when a server listens on addr.
func Await(t testing.TB, addr string) {
	t.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.Dial("tcp", addr); err == nil {
			conn.Close()
			return
		}
	}
	t.Fatalf("nobody listens at %s: %v", addr, err)
}

// Program returns the path of a program, also in Debian's folders for
// daemons. Without it the test is skipped, or fails where THRU_REQUIRE_LAB
// requires it.
func Program(t testing.TB, name string) string {
	t.Helper()
	file, err := servers.Program(name)
	if err == nil {
		return file
	}
	if os.Getenv("THRU_REQUIRE_LAB") == "1" {
		t.Fatalf("the program %s is required here", name)
	}
	t.Skip(err)
	return ""
}

// within returns a context that limits an operation.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// session opens a session, closed when the test ends.
func (c contract) session(t *testing.T, cfg transfer.Config) transfer.Session {
	t.Helper()
	s, err := c.New(cfg).Open(within(t))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// at returns a file's path in the URL.
func (c contract) at(name string) string { return path.Join(c.Dir, name) }

// lay creates a file on the server's disk, for everyone to read and write.
func (c contract) lay(t *testing.T, name string, b []byte) string {
	t.Helper()
	file := filepath.Join(c.Folder, name)
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file) })
	return c.at(name)
}

// only fails where after some seconds the folder holds anything but these
// names.
func (c contract) only(t *testing.T, names ...string) {
	t.Helper()
	var found string
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		entries, err := os.ReadDir(c.Folder)
		if err != nil {
			t.Fatal(err)
		}
		found = ""
		for _, e := range entries {
			found += e.Name() + "\n"
		}
		if found == strings.Join(append(names, ""), "\n") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server's folder holds:\n%swant %q", found, names)
		}
	}
}

// holds fails where a file on the server's disk differs from these bytes.
func (c contract) holds(t *testing.T, name string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(c.Folder, name))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s holds %d bytes that are not the %d that were sent (%v)", name, len(got), len(want), err)
	}
}

// put and get are operations that must succeed.
func (c contract) put(t *testing.T, s transfer.Session, name string, b []byte, overwrite bool) {
	t.Helper()
	if err := s.Put(within(t), name, bytes.NewReader(b), int64(len(b)), overwrite); err != nil {
		t.Fatalf("Put %d bytes: %v", len(b), err)
	}
}

func (c contract) get(t *testing.T, s transfer.Session, name string, want []byte) {
	t.Helper()
	sum := sha256.New()
	n, err := s.Get(within(t), name, sum)
	right := sha256.Sum256(want)
	if err != nil || n != int64(len(want)) || !bytes.Equal(sum.Sum(nil), right[:]) {
		t.Fatalf("Get: %d bytes of %d with sum %s, %v", n, len(want), hex.EncodeToString(sum.Sum(nil)), err)
	}
}

// is fails where err is not one of the wanted errors.
func is(t *testing.T, doing string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	t.Errorf("%s: %v, want %v", doing, err, want)
}

func (c contract) roundTrip(t *testing.T) {
	s := c.session(t, c.Config)
	for _, size := range []int64{0, 1, 65535, 1<<20 + 7, c.Large} {
		b, name := Bytes(1, size), fmt.Sprintf("round %d ü'$%%.bin", size)
		c.put(t, s, c.at(name), b, false)
		c.only(t, name)
		c.holds(t, name, b)
		if n, err := s.Size(within(t), c.at(name)); n != size || err != nil {
			t.Errorf("Size: %d, %v; want %d", n, err, size)
		}
		c.get(t, s, c.at(name), b)
		if err := s.Remove(within(t), c.at(name)); err != nil {
			t.Errorf("Remove: %v", err)
		}
		c.only(t)
	}
}

func (c contract) many(t *testing.T) {
	s := c.session(t, c.Config)
	files := 30
	if c.Dials { // each operation starts a program once or twice
		files = 2
	}
	for i := range files {
		name := c.at(fmt.Sprint("small", i))
		c.put(t, s, name, Bytes(uint64(i), 1000), false)
		c.get(t, s, name, Bytes(uint64(i), 1000))
		if err := s.Remove(within(t), name); err != nil {
			t.Fatal(err)
		}
	}
	c.only(t)
}

func (c contract) atOnce(t *testing.T) {
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			s, err := c.New(c.Config).Open(within(t))
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			defer s.Close()
			name, b, got := c.at(fmt.Sprint("at once ", i)), Bytes(uint64(i), 1<<20), &bytes.Buffer{}
			if err := s.Put(within(t), name, bytes.NewReader(b), int64(len(b)), false); err != nil {
				t.Errorf("Put: %v", err)
			}
			if _, err := s.Get(within(t), name, got); err != nil || !bytes.Equal(got.Bytes(), b) {
				t.Errorf("Get: %d bytes, %v", got.Len(), err)
			}
			if err := s.Remove(within(t), name); err != nil {
				t.Errorf("Remove: %v", err)
			}
		})
	}
	all.Wait()
	c.only(t)
}

// info: the client is named, and sockets exist while a file is downloaded.
func (c contract) info(t *testing.T) {
	s, b := c.session(t, c.Config), Bytes(2, 1<<20)
	name, most := c.lay(t, "info", b), 0
	seen := writer(func(p []byte) (int, error) {
		most = max(most, len(s.Sockets()))
		return len(p), nil
	})
	if _, err := s.Get(within(t), name, seen); err != nil {
		t.Fatal(err)
	}
	if info := s.Info(); info.Client == "" || info.Library && !c.Dials && most == 0 {
		t.Errorf("%+v, %d sockets", info, most)
	}
}

func (c contract) exists(t *testing.T) {
	s, old, young := c.session(t, c.Config), Bytes(3, 5000), Bytes(4, 3000)
	name := c.lay(t, "there", old)
	is(t, "Put over a file", s.Put(within(t), name, bytes.NewReader(young), 3000, false), transfer.ErrExists)
	c.holds(t, "there", old)
	c.put(t, s, name, young, true)
	c.holds(t, "there", young)
	c.only(t, "there")
}

func (c contract) missing(t *testing.T) {
	s := c.session(t, c.Config)
	for _, name := range []string{c.at("none"), c.at("no folder/none")} {
		_, err := s.Size(within(t), name)
		is(t, "Size", err, transfer.ErrMissing)
		n, err := s.Get(within(t), name, io.Discard)
		is(t, "Get", err, transfer.ErrMissing)
		is(t, "Remove", s.Remove(within(t), name), transfer.ErrMissing)
		if n != 0 {
			t.Errorf("Get of nothing brought %d bytes", n)
		}
	}
	// Some servers do not report which of the two it was.
	err := s.Put(within(t), c.at("no folder/none"), strings.NewReader("x"), 1, false)
	is(t, "Put", err, transfer.ErrMissing, transfer.ErrReadOnly)
	c.put(t, s, c.at("after"), []byte("x"), false) // the refused operation did no harm
	if err := s.Remove(within(t), c.at("after")); err != nil {
		t.Error(err)
	}
	c.only(t)
}

// huge: a hole of 5 GiB, since 32 bits hold 4 GiB.
func (c contract) huge(t *testing.T) {
	name := c.lay(t, "huge", nil)
	if err := os.Truncate(filepath.Join(c.Folder, "huge"), 5<<30); err != nil {
		t.Skipf("the file system has no such files: %v", err)
	}
	s := c.session(t, c.Config)
	if n, err := s.Size(within(t), name); n != 5<<30 || err != nil {
		t.Errorf("Size: %d, %v; want 5 GiB", n, err)
	}
}

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

// Write calls it.
func (w writer) Write(b []byte) (int, error) { return w(b) }
