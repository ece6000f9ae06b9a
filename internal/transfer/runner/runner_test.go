package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/measure"
	"thru/internal/transfer"
	"thru/internal/transfer/stage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a server in memory, and its own client.
type shelf struct {
	mu    sync.Mutex
	files map[string][]byte
	cut   int   // bytes after which a Get fails; 0: it does not
	deny  error // error of Open
	spoil bool  // one bit of each Get is inverted
	leave bool  // a Put breaks, and cannot remove its incomplete file
}

func (s *shelf) Open(context.Context) (transfer.Session, error) {
	if s.deny != nil {
		return nil, s.deny
	}
	return visit{s}, nil
}

type visit struct{ *shelf }

func (visit) Info() transfer.Info { return transfer.Info{Client: "shelf", Library: true} }
func (visit) Sockets() []net.Conn { return nil }
func (visit) Close() error        { return nil }

func (v visit) Size(_ context.Context, path string) (int64, error) {
	b, err := v.file(path)
	return int64(len(b)), err
}

func (v visit) file(path string) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, ok := v.files[path]
	if !ok {
		return nil, transfer.ErrMissing
	}
	return b, nil
}

func (v visit) Get(_ context.Context, path string, w io.Writer) (int64, error) {
	b, err := v.file(path)
	if err != nil {
		return 0, err
	}
	if v.spoil {
		b = bytes.Clone(b)
		b[len(b)/2] ^= 1
	}
	if v.cut > 0 {
		n, _ := w.Write(b[:v.cut])
		return int64(n), transfer.ErrShort
	}
	return io.Copy(w, struct{ io.Reader }{bytes.NewReader(b)})
}

func (v visit) Put(_ context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	if _, err := v.file(path); err == nil && !overwrite {
		return transfer.ErrExists
	}
	if v.leave {
		return &transfer.Left{Path: path + ".part", Cause: transfer.ErrSilent, Err: io.ErrClosedPipe}
	}
	b, err := io.ReadAll(r)
	if err == nil && int64(len(b)) != size {
		err = transfer.ErrSource
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.files[path] = b
	return nil
}

func (v visit) Remove(_ context.Context, path string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.files[path]; !ok {
		return transfer.ErrMissing
	}
	delete(v.files, path)
	return nil
}

func stream(t *testing.T, key uint64) Stream {
	t.Helper()
	s, err := NewStream(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestStream: every part of a stream is the same however it is read, and
// differs from that of any other key.
func TestStream(t *testing.T) {
	s := stream(t, 7)
	whole := read(t, s.Reader(0, 1<<20))
	for _, at := range []int64{0, 1, 15, 16, 17, 4095, 1<<20 - 3} {
		if got := read(t, s.Reader(at, 1<<20-at)); !bytes.Equal(got, whole[at:]) {
			t.Errorf("from %d on it is another", at)
		}
	}
	if bytes.Equal(read(t, stream(t, 8).Reader(0, 64)), whole[:64]) {
		t.Error("two keys make the same")
	}
	c := s.checker()
	for _, part := range [][]byte{whole[:1], whole[1:300_000], whole[300_000:]} {
		c.Write(part)
	}
	if !c.holds(1<<20) || c.holds(1<<20+1) {
		t.Error("the stream is not found to be itself")
	}
	bad := s.checker()
	whole[777_777] ^= 1
	bad.Write(whole)
	if bad.holds(1<<20) || bad.wrong != 777_777 {
		t.Errorf("the wrong byte is reported at %d", bad.wrong)
	}
}

// TestRun moves up and down, with parallel clients.
func TestRun(t *testing.T) {
	server := &shelf{files: map[string][]byte{}}
	s := stream(t, 1)
	const size = 3 << 20
	name := func(client, file int) string { return fmt.Sprintf("f%d.%d", client, file) }
	up := Job{
		Direction: measure.Upload, Clients: []transfer.Client{server, server}, Files: 3, Bytes: size, Name: name, Dialer: &Dialer{},
		Source: func(int, int) (io.ReadCloser, error) { return io.NopCloser(s.Reader(0, size)), nil },
	}
	out, err := Run(t.Context(), up)
	if err != nil || len(out.Made) != 6 || out.Run.Bytes != 6*size || out.Run.Files != 6 || out.Run.Bps == nil || out.Info.Client != "shelf" {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := Run(t.Context(), up); !errors.Is(err, transfer.ErrExists) {
		t.Errorf("what is there was replaced: %v", err)
	}
	down := Job{
		Direction: measure.Download, Clients: up.Clients, Files: 3, Bytes: size, Name: name, Same: &s,
		Sink: func(int, int) (Sink, error) { return Memory(1), nil },
	}
	out, err = Run(t.Context(), down)
	if err != nil || out.Run.Bytes != 6*size || out.Run.Checked == nil || !*out.Run.Checked {
		t.Fatalf("%+v, %v", out, err)
	}
	if x := out.Run; len(x.Each) != 2 || min(x.Each[0], x.Each[1]) < 0.999*x.Bps.Value/2 { // the last to end has half of the sum
		t.Errorf("%v of %v are of each client", x.Each, x.Bps.Value)
	}
	if left, err := Remove(t.Context(), []transfer.Client{server, server, server}, []string{"f0.0", "f1.2"}); err != nil || len(left) != 0 || len(server.files) != 4 {
		t.Errorf("%d files are left, %v", len(server.files), err)
	}
}

// TestSpoiled: an inverted bit is detected.
func TestSpoiled(t *testing.T) {
	s := stream(t, 1)
	server := &shelf{files: map[string][]byte{"f": read(t, s.Reader(0, 1<<20))}, spoil: true}
	out, err := Run(t.Context(), download(server, &s, func(int, int) (Sink, error) { return Nowhere(), nil }))
	if err != nil || out.Run.Checked == nil || *out.Run.Checked {
		t.Errorf("%+v, %v", out.Run, err)
	}
}

func download(server transfer.Client, same *Stream, sink func(int, int) (Sink, error)) Job {
	return Job{
		Direction: measure.Download, Clients: []transfer.Client{server}, Files: 1, Bytes: 1 << 20, Same: same, Sum: true,
		Name: func(int, int) string { return "f" }, Sink: sink,
	}
}

// TestBroken: what a broken session leaves is reported, for another to
// remove.
func TestBroken(t *testing.T) {
	out, err := Run(t.Context(), Job{
		Direction: measure.Upload, Clients: []transfer.Client{&shelf{leave: true}}, Files: 1, Bytes: 3,
		Name:   func(int, int) string { return "f" },
		Source: func(int, int) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil },
	})
	if !errors.Is(err, transfer.ErrSilent) || len(out.Made) != 1 || out.Made[0] != "f.part" {
		t.Errorf("%q, %v", out.Made, err)
	}
}

// TestTooLong: no byte beyond the announced size gets into a file, and no
// file is left.
func TestTooLong(t *testing.T) {
	server := &shelf{files: map[string][]byte{"f": bytes.Repeat([]byte("x"), 1<<20)}}
	kept := 0
	job := download(server, nil, func(int, int) (Sink, error) { return counting{Nowhere(), &kept}, nil })
	job.Clients, job.Files, job.Bytes = job.Clients[:1], 1, 1000
	job.Name = func(int, int) string { return "f" }
	if _, err := Run(t.Context(), job); !errors.Is(err, transfer.ErrLong) || kept != 1000 {
		t.Errorf("%v, %d bytes were kept", err, kept)
	}
	job.Clients = []transfer.Client{&program{shelf{files: server.files}}}
	if _, err := Run(t.Context(), job); !errors.Is(err, transfer.ErrLong) {
		t.Errorf("by a program: %v", err)
	}
}

// counting is a sink that counts.
type counting struct {
	Sink
	n *int
}

func (c counting) Write(p []byte) (int, error) { *c.n += len(p); return c.Sink.Write(p) }

// TestFile: a download gets its name when it is complete, and a failed one
// leaves nothing.
func TestFile(t *testing.T) {
	data := read(t, stream(t, 1).Reader(0, 1<<20))
	sum := fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	tests := []struct {
		name      string
		server    *shelf
		there     string // what has the name already
		overwrite bool
		want      error
	}{
		{"whole", &shelf{}, "", false, nil},
		{"there is one", &shelf{}, "mine", false, transfer.ErrExists},
		{"there is one, to be replaced", &shelf{}, "mine", true, nil},
		{"the server stops", &shelf{cut: 1000}, "", false, transfer.ErrShort},
		{"the server stops, and one was to be replaced", &shelf{cut: 1000}, "mine", true, transfer.ErrShort},
		{"the login fails", &shelf{deny: transfer.ErrLogin}, "", false, transfer.ErrLogin},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.server.files = map[string][]byte{"f": data}
			target := filepath.Join(t.TempDir(), "got")
			if tt.there != "" {
				os.WriteFile(target, []byte(tt.there), 0o600)
			}
			out, err := Run(t.Context(), download(tt.server, nil, func(int, int) (Sink, error) {
				f, _, err := NewFile(target, tt.overwrite)
				if err != nil {
					return nil, err
				}
				return f, nil
			}))
			if !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			want := tt.there
			if err == nil {
				want = string(data)
				if out.Run.CRC32C != sum {
					t.Errorf("the sum is %s, want %s", out.Run.CRC32C, sum)
				}
			}
			if got, _ := os.ReadFile(target); string(got) != want {
				t.Errorf("%d bytes are there, want %d", len(got), len(want))
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(target), ".*"))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestLeft: what a killed run has left is removed, unless another process is
// writing it.
func TestLeft(t *testing.T) {
	target := filepath.Join(t.TempDir(), "got")
	os.WriteFile(PartName(target), []byte("half"), 0o600)
	os.WriteFile(PartName(target)+transfer.FetchEnding, []byte("a program's"), 0o600)
	f, left, err := NewFile(target, false)
	if err != nil || !left {
		t.Fatalf("left %v, %v", left, err)
	}
	if _, _, err := NewFile(target, false); !errors.Is(err, stage.ErrLocked) {
		t.Errorf("two write the same: %v", err)
	}
	f.Write([]byte("whole"))
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	f.Drop()
	if entries, _ := os.ReadDir(filepath.Dir(target)); len(entries) != 1 {
		t.Errorf("%d files are there", len(entries))
	}
	if got, _ := os.ReadFile(target); string(got) != "whole" {
		t.Errorf("%q is there", got)
	}
	os.Remove(target)
	os.Symlink("/etc/passwd", PartName(target))
	if _, _, err := NewFile(target, false); err == nil || !strings.Contains(err.Error(), "not a file of thru") {
		t.Errorf("a link was followed: %v", err)
	}
}

// TestLongName: a name of any length that the system allows can be a target.
func TestLongName(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{strings.Repeat("a", 255), strings.Repeat("a", 254) + "b", strings.Repeat("é", 127), strings.Repeat("a", 237)} {
		target := filepath.Join(dir, name)
		if len(filepath.Base(PartName(target))+transfer.FetchEnding) > 255 {
			t.Errorf("%s is too long", PartName(target))
		}
		f, _, err := NewFile(target, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Keep(); err != nil {
			t.Error(err)
		}
	}
	if a := strings.Repeat("a", 254); PartName(a+"a") == PartName(a+"b") {
		t.Error("two targets share a part")
	}
}

// TestRace: a file created under the name meanwhile is not replaced.
func TestRace(t *testing.T) {
	target := filepath.Join(t.TempDir(), "got")
	f, _, err := NewFile(target, false)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(target, []byte("mine"), 0o600)
	if err := f.Keep(); !errors.Is(err, transfer.ErrExists) {
		t.Errorf("it was replaced: %v", err)
	}
	entries, _ := os.ReadDir(filepath.Dir(target))
	if got, _ := os.ReadFile(target); string(got) != "mine" || len(entries) != 1 {
		t.Errorf("%q and %d files are there", got, len(entries))
	}
}

func TestCheckTarget(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("got", link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ target, want string }{
		{filepath.Join(dir, "none", "got"), "no such file"}, {dir, "is a folder"}, {filepath.Join(dir, "got"), ""},
		{os.DevNull, "is a device"}, {link, "or a link"},
	} {
		err := CheckTarget(tt.target, true)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.target, err, tt.want)
		}
	}
}

// TestDialer: its connections carry the stream, and their statistics are
// read.
func TestDialer(t *testing.T) {
	s := stream(t, 3)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, s.Reader(0, 3_000_000)) }))
	defer server.Close()
	d := &Dialer{Buffer: 100_000}
	client := http.Client{Transport: &http.Transport{DialContext: d.Dial}}
	defer client.CloseIdleConnections()
	reply, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	c := s.checker()
	io.Copy(c, reply.Body)
	if !c.holds(3_000_000) {
		t.Errorf("%d bytes came, the wrong one at %d", c.bytes, c.wrong)
	}
	d.Sample()
	all := d.Streams()
	if len(all) == 0 {
		t.Skip("this system does not tell of its sockets")
	}
	if w := all[0].Window; len(all) != 1 || w.Asked != 100_000 || w.Granted == 0 || all[0].Bytes < 3_000_000 {
		t.Errorf("%+v", all)
	}
}

// program is a shelf whose bytes do not pass through this process.
type program struct{ shelf }

func (p *program) Open(context.Context) (transfer.Session, error) {
	return errand{visit{&p.shelf}}, nil
}

type errand struct{ visit }

func (errand) Info() transfer.Info { return transfer.Info{Client: "program"} }

func (e errand) Fetch(_ context.Context, path, local string, progress func(int64)) (int64, error) {
	b, err := e.file(path)
	if err == nil && e.cut > 0 {
		b, err = b[:e.cut], transfer.ErrShort
	}
	progress(int64(len(b) / 2))
	if local != "" && b != nil { // like a program: a new file under the old name
		os.Remove(local)
		err = errors.Join(err, os.WriteFile(local, b, 0o600))
	}
	return int64(len(b)), err
}

func (e errand) Send(ctx context.Context, local, path string, overwrite bool, progress func(int64)) error {
	b, err := os.ReadFile(local)
	if err != nil {
		return err
	}
	progress(int64(len(b)))
	return e.Put(ctx, path, bytes.NewReader(b), int64(len(b)), overwrite)
}

// TestOutside: programs move files of this machine, which are removed
// afterwards.
func TestOutside(t *testing.T) {
	s := stream(t, 1)
	data := read(t, s.Reader(0, 1<<20))
	server := &program{shelf{files: map[string][]byte{}}}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	up := Job{
		Direction: measure.Upload, Clients: []transfer.Client{server, server}, Files: 2, Bytes: 1 << 20,
		Name:   func(client, file int) string { return fmt.Sprintf("f%d.%d", client, file) },
		Source: func(int, int) (io.ReadCloser, error) { return io.NopCloser(s.Reader(0, 1<<20)), nil },
	}
	out, err := Run(t.Context(), up)
	if err != nil || out.Run.Bytes != 4<<20 || len(out.Made) != 4 || !bytes.Equal(server.files["f1.1"], data) {
		t.Fatalf("%+v, %v", out, err)
	}
	file := filepath.Join(dir, "mine")
	os.WriteFile(file, data, 0o600)
	up.Files, up.Overwrite, up.Source = 1, true, func(int, int) (io.ReadCloser, error) { return os.Open(file) }
	if _, err := Run(t.Context(), up); err != nil {
		t.Error(err)
	}
	target := filepath.Join(dir, "got")
	server.files["f"] = data
	down := download(server, nil, func(int, int) (Sink, error) {
		f, _, err := NewFile(target, false)
		return f, err
	})
	out, err = Run(t.Context(), down)
	if got, _ := os.ReadFile(target); err != nil || !bytes.Equal(got, data) || out.Run.Bytes != 1<<20 || out.Run.SHA256 != "" {
		t.Errorf("%d bytes came, %+v, %v", len(got), out.Run, err)
	}
	os.Remove(target)
	server.cut = 1000
	if _, err := Run(t.Context(), down); !errors.Is(err, transfer.ErrShort) {
		t.Errorf("a file that is too short: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// TestLateReader: a client that still reads after its Put has failed gets
// nothing.
func TestLateReader(t *testing.T) {
	s := stream(t, 1)
	o := &outlet{run: &run{}, from: s.Reader(0, 1<<20)}
	b := make([]byte, 1000)
	if n, err := o.Read(b); n != 1000 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	o.end()
	if n, err := o.Read(b); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%d, %v", n, err)
	}
}
