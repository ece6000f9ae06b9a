//go:build unix

package rsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/stage"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	transfertest.Run(t, transfertest.Suite{Start: daemon, New: New, Dials: true, Large: 16 << 20})
	left, err := filepath.Glob(filepath.Join(stage.Memory, fmt.Sprintf("thru-stage-%d-*", os.Getpid())))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func opened(t *testing.T, cfg transfer.Config) *session {
	t.Helper()
	s, err := New(cfg).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.(*session)
}

// TestOutside: the program moves files of this machine by itself, and reports
// its progress.
func TestOutside(t *testing.T) {
	server := daemon(t)
	server.Config.Buffer = 2000000
	s, dir, b := opened(t, server.Config), t.TempDir(), transfertest.Bytes(1, 8<<20)
	from, to := filepath.Join(dir, "-from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var heard []int64
	progress := func(n int64) { heard = append(heard, n) }
	whole := func(doing string) {
		t.Helper()
		if !slices.IsSorted(heard) || len(heard) == 0 || heard[len(heard)-1] != int64(len(b)) {
			t.Errorf("%s: progress %v", doing, heard)
		}
		heard = nil
	}
	name := server.Dir + "/-outside"
	if err := s.Send(t.Context(), from, name, false, progress); err != nil {
		t.Fatal(err)
	}
	whole("Send")
	if err := s.Send(t.Context(), from, name, false, nil); !errors.Is(err, transfer.ErrExists) {
		t.Error(err)
	}
	if n, err := s.Fetch(t.Context(), name, to, progress); n != int64(len(b)) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	whole("Fetch")
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, b) {
		t.Errorf("%d bytes arrived, %v", len(got), err)
	}
	null, _ := os.Stat(os.DevNull)
	if n, err := s.Fetch(t.Context(), name, "", progress); n != int64(len(b)) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	whole("Fetch to nowhere")
	if after, _ := os.Stat(os.DevNull); after.Mode() != null.Mode() {
		t.Errorf("the null device is %v now", after.Mode())
	}
	if _, err := s.Fetch(t.Context(), name, filepath.Join(dir, "no", "folder", "x"), nil); err == nil {
		t.Error("a file was written to a folder that is not there")
	}
	info := s.Info()
	if info.Library || !strings.HasPrefix(info.Client, "rsync 3.") || !strings.HasPrefix(info.Server, "rsync daemon, protocol ") ||
		!slices.Contains(info.Details, "SO_SNDBUF and SO_RCVBUF 2000000") {
		t.Errorf("%+v", info)
	}
}

func TestRefused(t *testing.T) {
	server := daemon(t)
	for name, c := range map[string]struct {
		change func(*transfer.Config)
		want   error
	}{
		"no such module": {func(c *transfer.Config) { c.Path = "nowhere/x" }, transfer.ErrMissing},
		"no user":        {func(c *transfer.Config) { c.User = "" }, transfer.ErrLogin},
		"another user":   {func(c *transfer.Config) { c.User = "eve" }, transfer.ErrLogin},
		"a pattern":      {func(c *transfer.Config) { c.Path = "data/*" }, transfer.ErrName},
	} {
		cfg := server.Config
		c.change(&cfg)
		s, err := New(cfg).Open(t.Context())
		if err == nil {
			_, err = s.Size(t.Context(), cfg.Path)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	cfg := server.Config
	cfg.User = "bob@elsewhere"
	if _, err := New(cfg).Open(t.Context()); fault.Code(err) != fault.Usage {
		t.Error(err)
	}
	cfg = server.Config
	cfg.User, cfg.Path = "", "open/files/x" // read-only by the daemon's configuration, and open to everyone
	s := opened(t, cfg)
	if err := s.Put(t.Context(), "open/files/y", strings.NewReader("x"), 1, false); !errors.Is(err, transfer.ErrReadOnly) {
		t.Error(err)
	}
	if _, err := s.Size(t.Context(), "open/files"); !errors.Is(err, transfer.ErrMissing) {
		t.Errorf("a folder: %v", err)
	}
	if err := opened(t, server.Config).Put(t.Context(), "data/files", strings.NewReader("x"), 1, true); !errors.Is(err, transfer.ErrExists) {
		t.Errorf("over a folder: %v", err)
	}
}

// TestEnds: at the end of the context the program and its children end, and
// incomplete files are removed.
func TestEnds(t *testing.T) {
	server, dir := daemon(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(server.Folder, "huge"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(server.Folder, "huge"), 1<<40); err != nil {
		t.Skipf("the file system has no such files: %v", err)
	}
	s := opened(t, server.Config)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := s.Fetch(ctx, server.Dir+"/huge", "", func(n int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Fetch(ctx, server.Dir+"/huge", filepath.Join(dir, "here"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestAnswered: a listing ends with the answer, not with the program.
func TestAnswered(t *testing.T) {
	for script, want := range map[string]struct {
		entry
		found bool
	}{
		"echo '-rw-r--r--  7 2026/11/22 21:12:54 name'": {entry{'-', 7}, true},
		"echo 'link_stat failed: " + noFile + "' >&2":   {},
	} {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\nexec sleep 100\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		s := session{program: program, cfg: transfer.Config{Host: "h", Timeout: 50 * time.Second}}
		if e, found, err := s.list(t.Context(), "data/name"); e != want.entry || found != want.found || err != nil {
			t.Errorf("%s: %+v, %t, %v", script, e, found, err)
		}
	}
}

func TestProgress(t *testing.T) {
	for line, want := range map[string]int64{
		"              0   0%    0.00kB/s    0:00:00  ":                   0,
		"    100,000,000 100%  908.26MB/s    0:00:00 (xfr#1, to-chk=0/1)": 100000000,
		"100000000  42% 1.00GB/s 0:00:01":                                 100000000,
		"100.000.000  42% 1.00GB/s 0:00:01":                               100000000,
		"9223372036854775807 1%":                                          9223372036854775807,
		"9223372036854775808 1%":                                          -1, "": -1, "12": -1, "a 1%": -1, "-5 1%": -1, "sent 57 bytes": -1,
	} {
		n, ok := parseProgress(line)
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", line, n, ok)
		}
	}
	var heard []int64
	var lines []string
	line := func(s string) { lines = append(lines, s) }
	text := follow(strings.NewReader("hello\n  0   0%  a\r  5  10%  a\r  3  10%\r\n  9 100%\nbye"), line, func(n int64) { heard = append(heard, n) })
	if text != "hello\nbye\n" || !slices.Equal(lines, []string{"hello", "bye"}) || !slices.Equal(heard, []int64{5, 9}) {
		t.Errorf("%q, %q, %d", text, lines, heard)
	}
	if text := follow(strings.NewReader(strings.Repeat("a", 1<<20)), line, nil); len(text) > saidMost {
		t.Errorf("%d bytes are kept", len(text))
	}
}

func TestWhole(t *testing.T) {
	for out, want := range map[string]int64{
		"whole file of 100000000\n": 100000000, "skipping\nwhole file of 0\n": 0, "whole file of 1,657": 1657,
		"": -1, "skipping directory files\n": -1, "whole file of \n": -1, "the whole file of 5\n": -1, "whole file of -5": -1,
	} {
		n, ok := parseWhole(out)
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", out, n, ok)
		}
	}
}

func TestEntry(t *testing.T) {
	for line, want := range map[string]entry{
		"-rw-r--r--   100000000 2026/11/22 21:12:54 f":        {'-', 100000000},
		"-rw-r--r--      1,657 2026/11/22 21:34:09 a b c":     {'-', 1657},
		"drwxr-xr-x        4096 2026/11/22 21:34:02 d\n- x\n": {'d', 4096},
		"": {}, "rsync: error": {}, "xrw-r--r-- 1 2 3 4": {}, "-rw-r--r-- x 2026/11/22 21:34:09 f": {},
	} {
		if got, ok := parseEntry(line); got != want || ok != (want != entry{}) {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]string{
		"rsync  version 3.2.7  protocol version 31\nCopyright": "3.2.7", "rsync  version v3.4.1  protocol version 32": "3.4.1",
		"rsync  version 3.5.0pre1  protocol": "3.5.0", "openrsync: protocol version 29\nrsync version 2.6.9 compatible": "", "": "", "rsync version x": "",
	} {
		v, ok := parseVersion(text)
		if ok != (want != "") || ok && v.String() != want {
			t.Errorf("%q: %v, %v", text, v, ok)
		}
	}
	if v := (version{3, 1, 0}); v.atLeast(3, 2) || !v.atLeast(3, 1) || !v.atLeast(2, 9) || v.atLeast(4, 0) {
		t.Error(v)
	}
}

func TestGreeting(t *testing.T) {
	for text, want := range map[string]string{
		"@RSYNCD: 31.0\n": "31.0", "@RSYNCD: 32.0 sha512 sha256 md5\nmore": "32.0",
		"": "", "SSH-2.0-OpenSSH_9.2\n": "", "@RSYNCD: evil\x1b\n": "", "@RSYNCD:\n": "", "@RSYNCD: 31.0": "",
	} {
		if got, err := readGreeting(strings.NewReader(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestMeaning(t *testing.T) {
	for name, c := range map[string]struct {
		code  int
		said  string
		begun bool
		want  error
	}{
		"login":     {5, "@ERROR: auth failed on module auth\nrsync error: error starting client-server protocol (code 5)", false, transfer.ErrLogin},
		"module":    {5, "@ERROR: Unknown module 'zz'\n", false, transfer.ErrMissing},
		"file":      {23, `rsync: [sender] link_stat "nope" (in m) failed: No such file or directory (2)`, false, transfer.ErrMissing},
		"read-only": {1, "ERROR: module is read only\n", false, transfer.ErrReadOnly},
		"denied":    {23, "rsync: mkstemp \"/.f\" failed: Permission denied (13)", false, transfer.ErrDenied},
		"full":      {11, `rsync: [receiver] write failed on "f": No space left on device (28)`, true, transfer.ErrFull},
		"silent":    {30, "rsync error: timeout in data send/receive (code 30)", true, transfer.ErrSilent},
		"broken":    {12, "rsync: connection unexpectedly closed", false, transfer.ErrShort},
	} {
		if err := meaning(c.code, c.said, transfer.ErrDenied, c.begun); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := meaning(exitSocket, "rsync: read error", transfer.ErrDenied, true); !errors.Is(err, transfer.ErrShort) {
		t.Error(err)
	}
	if err := meaning(exitSocket, "rsync: failed to connect", transfer.ErrDenied, false); errors.Is(err, transfer.ErrShort) {
		t.Error(err)
	}
	if got := complaint("rsync: [sender] read error: Connection reset by peer (104)\n@ERROR: Unknown \x1b[31mmodule\nrsync error: x\n"); got != "@ERROR: Unknown [31mmodule" {
		t.Errorf("%q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("    100,000,000 100%  908.26MB/s    0:00:00 (xfr#1, to-chk=0/1)\r")
	f.Add("-rw-r--r--   100000000 2026/11/22 21:12:54 f\n")
	f.Add("rsync  version 3.2.7  protocol version 31\n")
	f.Add("@RSYNCD: 31.0 sha512\n@ERROR: no\n")
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := parseProgress(text); ok && n < 0 {
			t.Errorf("progress %d", n)
		}
		if n, ok := parseWhole(text); ok && n < 0 {
			t.Errorf("whole file of %d", n)
		}
		if e, ok := parseEntry(text); ok && e.size < 0 {
			t.Errorf("size %d", e.size)
		}
		if v, ok := parseVersion(text); ok && (v.major < 0 || v.minor < 0 || v.patch < 0) {
			t.Errorf("version %v", v)
		}
		if got, err := readGreeting(strings.NewReader(text)); err == nil && strings.Trim(got, "0123456789.") != "" {
			t.Errorf("protocol %q", got)
		}
		if got := complaint(text); len(got) > 310 || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q", got)
		}
		last := int64(0)
		kept := follow(strings.NewReader(text), func(string) {}, func(n int64) {
			if n <= last {
				t.Errorf("%d after %d", n, last)
			}
			last = n
		})
		if len(kept) > saidMost+bufferMost {
			t.Errorf("%d bytes kept", len(kept))
		}
	})
}

// bufferMost is the longest line that is read (bufio.MaxScanTokenSize).
const bufferMost = 64 << 10
