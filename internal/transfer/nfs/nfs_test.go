package nfs

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContractFake(t *testing.T) {
	transfertest.Run(t, transfertest.Suite{
		Start: func(t *testing.T) transfertest.Server { return (&fake{}).serve(t) },
		New:   New, Open: true, Large: 16 << 20,
	})
}

func opened(t *testing.T, client func(transfer.Config) transfer.Client, cfg transfer.Config) transfer.Session {
	t.Helper()
	s, err := client(cfg).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestPieces: a server may move less than requested in each call.
func TestPieces(t *testing.T) {
	server := (&fake{short: true}).serve(t)
	server.Config.Block = 65535
	s, b, got := opened(t, New, server.Config), transfertest.Bytes(1, 300001), &bytes.Buffer{}
	if err := s.Put(t.Context(), server.Dir+"/f", bytes.NewReader(b), int64(len(b)), false); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Get(t.Context(), server.Dir+"/f", got); err != nil || int(n) != len(b) || !bytes.Equal(got.Bytes(), b) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if text := strings.Join(s.Info().Details, "\n"); !strings.Contains(text, "calls of 65535 bytes") || !strings.Contains(text, "writes of 65536") {
		t.Errorf("%s", text)
	}
}

// TestRebooted: data written before a restart of the server is not trusted.
func TestRebooted(t *testing.T) {
	server := (&fake{boots: true}).serve(t)
	s := opened(t, New, server.Config)
	err := s.Put(t.Context(), server.Dir+"/f", bytes.NewReader(make([]byte, 200000)), 200000, false)
	if !errors.Is(err, errRebooted) {
		t.Error(err)
	}
	if _, err := s.Size(t.Context(), server.Dir+"/f"); !errors.Is(err, transfer.ErrMissing) {
		t.Error(err)
	}
}

// TestBusy: a call to a busy server (JUKEBOX) is repeated.
func TestBusy(t *testing.T) {
	server := (&fake{busy: 2}).serve(t)
	s := opened(t, New, server.Config)
	if err := s.Put(t.Context(), server.Dir+"/f", strings.NewReader("x"), 1, false); err != nil {
		t.Error(err)
	}
}

// TestMounts: the deepest exported folder is mounted, others when they are
// needed.
func TestMounts(t *testing.T) {
	server := (&fake{}).serve(t)
	s := opened(t, New, server.Config).(*session)
	if len(s.mounts) != 1 || s.mounts[0].dir != "export/files" {
		t.Errorf("%+v", s.mounts)
	}
	if _, err := s.Size(t.Context(), "export/x"); !errors.Is(err, transfer.ErrMissing) {
		t.Error(err)
	}
	if len(s.mounts) != 2 || s.mounts[1].dir != "export" {
		t.Errorf("%+v", s.mounts)
	}
	if _, err := s.Size(t.Context(), "export/files"); !errors.Is(err, transfer.ErrMissing) {
		t.Errorf("a folder: %v", err)
	}
	server.Config.Path = "nowhere/at/all"
	deep := opened(t, New, server.Config).(*session)
	if deep.mounts[0].dir != "" {
		t.Errorf("%+v", deep.mounts)
	}
}

func TestIdentity(t *testing.T) {
	for user, want := range map[string][2]uint32{"0": {0, 0}, "1000": {1000, 1000}, "1000.100": {1000, 100}, "4294967294.1": {4294967294, 1}} {
		if uid, gid, err := identity(user); err != nil || uid != want[0] || gid != want[1] {
			t.Errorf("%q: %d, %d, %v", user, uid, gid, err)
		}
	}
	for _, user := range []string{"root", "1000.", ".1", "-1", "1.2.3", "1:2", "4294967296"} {
		if _, _, err := identity(user); fault.Code(err) != fault.Usage {
			t.Errorf("%q: %v", user, err)
		}
	}
}

func TestStatus(t *testing.T) {
	for code, want := range map[uint32]error{
		2: transfer.ErrMissing, 13: transfer.ErrDenied, 28: transfer.ErrFull, 30: transfer.ErrReadOnly, 17: transfer.ErrExists, 63: transfer.ErrName,
		70: transfer.ErrMissing, 10016: transfer.ErrLogin, 10029: transfer.ErrMissing, 10052: errForgotten, 10011: errForgotten,
	} {
		s := status{code, code > 10008}
		if err := refined(s, transfer.ErrDenied); !errors.Is(err, want) || !errors.Is(err, s) {
			t.Errorf("%d: %v", code, err)
		}
	}
	for s, want := range map[status]string{
		{10008, false}: "NFS3ERR_JUKEBOX", {10008, true}: "NFS4ERR_DELAY", {13, false}: "NFS3ERR_ACCES", {13, true}: "NFS4ERR_ACCESS",
		{10052, true}: "NFS4ERR_BADSESSION", {99, false}: "nfsstat3 99", {10099, true}: "nfsstat4 10099",
	} {
		if s.Error() != want {
			t.Errorf("%+v: %v", s, s)
		}
	}
	if err := refined(status{code: codeDelay}, transfer.ErrDenied); err != error(status{code: codeDelay}) {
		t.Error(err)
	}
	if !errors.Is(mountStatus(13), transfer.ErrLogin) || !errors.Is(mountStatus(2), transfer.ErrMissing) || errors.Is(mountStatus(2), transfer.ErrLogin) {
		t.Error("statuses of MNT")
	}
}

func TestAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		words []uint32
		want  string
	}{
		"success":        {[]uint32{1, 1, 0, 0, 0, 0}, ""},
		"a call":         {[]uint32{1, 0, 0, 0, 0, 0}, "not a reply"},
		"empty":          {nil, "not a reply"},
		"too short":      {[]uint32{1, 1, 0, 0}, "too short"},
		"no program":     {[]uint32{1, 1, 0, 0, 0, 1}, "no such program"},
		"garbage":        {[]uint32{1, 1, 0, 0, 0, 4}, "status 4"},
		"weak":           {[]uint32{1, 1, 1, 1, 5}, "authentication error 5"},
		"other version":  {[]uint32{1, 1, 1, 0, 2, 2}, "another version"},
		"a huge opaque":  {[]uint32{1, 1, 0, 0, 401, 0}, "too short"},
		"a wild length":  {[]uint32{1, 1, 0, 0, 0xffffffff, 0}, "too short"},
		"with a payload": {[]uint32{1, 1, 0, 0, 0, 0, 7, 7}, ""},
	} {
		err := accepted(&reader{b: appendUint32(nil, c.words...)})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestRecord(t *testing.T) {
	two := append(appendUint32(nil, 3), 'a', 'b', 'c')
	two = append(appendUint32(two, lastPiece|2), 'd', 'e', 'x')
	if b, err := readRecord(bytes.NewReader(two)); string(b) != "abcde" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := readRecord(bytes.NewReader(appendUint32(nil, lastPiece|(maxRecord+1)))); err == nil {
		t.Error("a record of any size is read")
	}
	if _, err := readRecord(bytes.NewReader(appendUint32(nil, 0, 0, lastPiece))); err == nil {
		t.Error("a record of empty pieces is read")
	}
}

// TestReadReply: a reply's data is read to its buffer, also where it is less
// than was asked for; only a full buffer is not copied.
func TestReadReply(t *testing.T) {
	for asked := range 12 {
		for n := range asked + 1 {
			data := transfertest.Bytes(1, int64(n))
			record := appendOpaque(appendUint32(nil, 7, 0, uint32(n), 0), data)
			length := lastPiece | uint32(len(record))
			in := bufio.NewReader(bytes.NewReader(append(appendUint32(nil, length), record...)))
			into := make([]byte, asked)
			r, err := readReply(in, length, into)
			if err != nil || r.uint32() != 7 {
				t.Fatal(err)
			}
			if full := n == asked; full != (len(r.tail) == n && bytes.Equal(into, data)) {
				t.Errorf("%d of %d: tail %v, buffer %v", n, asked, r.tail, into)
			}
			if got, err := parseRead(r, into); err != nil || got != n || !bytes.Equal(into[:n], data) || in.Buffered() > 0 {
				t.Errorf("%d of %d: %d, %v, %v", n, asked, got, err, into)
			}
		}
	}
}

func FuzzReplies(f *testing.F) {
	f.Add(appendUint32(nil, 1, 1, 0, 0, 0, 0, 0))
	f.Add(appendUint32(nil, 1, 1, 0, 0, 0, 0, 4, 0x01020304, 1, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = accepted(&reader{b: b})
		if handle, err := parseMount(&reader{b: b}); err == nil && len(handle) > maxHandle {
			t.Errorf("a handle of %d bytes", len(handle))
		}
		if l, err := parseLimits(&reader{b: b}); err == nil && (l.reads == 0 || l.writes == 0) {
			t.Errorf("%+v", l)
		}
		if n, _, err := parseLookup(&reader{b: b}); err == nil && (len(n.handle) == 0 || len(n.handle) > maxHandle) {
			t.Errorf("a handle of %d bytes", len(n.handle))
		}
		room := make([]byte, 100)
		if n, err := parseRead(&reader{b: b}, room); err == nil && (n < 0 || n > len(room)) {
			t.Errorf("%d bytes read", n)
		}
		if n, _, err := parseWrite(&reader{b: b}, 100); err == nil && (n < 0 || n > 100) {
			t.Errorf("%d bytes written", n)
		}
		_, _ = readRecord(bytes.NewReader(b))
	})
}
