//go:build unix

package smb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	transfertest.Run(t, transfertest.Suite{
		Start: func(t *testing.T) transfertest.Server { return samba(t) },
		New:   New,
		Large: 16 << 20,
	})
}

// TestAgreed verifies what a session reports against the server's
// configuration.
func TestAgreed(t *testing.T) {
	for name, c := range map[string]struct {
		options []string
		want    []string
	}{
		"2.0":       {[]string{"server max protocol = SMB2_02"}, []string{"SMB 2.0.2", "neither signed nor encrypted"}},
		"2.1":       {[]string{"server max protocol = SMB2_10"}, []string{"SMB 2.1", "neither signed nor encrypted"}},
		"3.1.1":     {nil, []string{"SMB 3.1.1", "neither signed nor encrypted"}},
		"signed":    {[]string{"server signing = mandatory"}, []string{"SMB 3.1.1", "signed (the server requires it), not encrypted"}},
		"encrypted": {[]string{"server smb encrypt = required"}, []string{"SMB 3.1.1", "encrypted (AES-128)"}},
		"small":     {[]string{"smb2 max read = 65536", "smb2 max write = 131072"}, []string{"the server accepts reads of 65536 bytes and writes of 131072"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := samba(t, c.options...)
			s, err := New(server.Config).Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			info := s.Info()
			for _, w := range c.want {
				if !slices.Contains(info.Details, w) {
					t.Errorf("%q is not in %q", w, info.Details)
				}
			}
			if !strings.HasPrefix(info.Server, "THRUTEST") || !strings.HasPrefix(info.Client, "cloudsoda/go-smb2") || !info.Library {
				t.Errorf("%+v", info)
			}
			roundTrip(t, s, server.Dir+"/agreed", 3<<20+1)
		})
	}
}

func roundTrip(t *testing.T, s transfer.Session, name string, size int64) {
	t.Helper()
	b, got := transfertest.Bytes(1, size), &bytes.Buffer{}
	if err := s.Put(t.Context(), name, bytes.NewReader(b), size, false); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Get(t.Context(), name, got); err != nil || n != size || !bytes.Equal(got.Bytes(), b) {
		t.Errorf("%d bytes of %d, %v", n, size, err)
	}
}

func TestBlock(t *testing.T) {
	server := samba(t)
	server.Config.Block = 60000
	s, err := New(server.Config).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(strings.Join(s.Info().Details, "\n"), "requests of 60000 bytes") {
		t.Errorf("%q", s.Info().Details)
	}
	roundTrip(t, s, server.Dir+"/block", 1<<20)
}

func TestRefused(t *testing.T) {
	t.Run("SMB1", func(t *testing.T) {
		server := samba(t, "server min protocol = NT1", "server max protocol = NT1", "client min protocol = NT1")
		_, err := New(server.Config).Open(t.Context())
		if !errors.Is(err, ErrOld) || fault.Hint(err) == "" {
			t.Errorf("%v, hint %q", err, fault.Hint(err))
		}
	})
	server := samba(t)
	for name, c := range map[string]struct {
		change func(*transfer.Config)
		want   error
	}{
		"no such share":     {func(c *transfer.Config) { c.Path = "nowhere/x" }, transfer.ErrMissing},
		"no share":          {func(c *transfer.Config) { c.Path = "" }, transfer.ErrName},
		"a pipe as a share": {func(c *transfer.Config) { c.Path = `da|ta/x` }, transfer.ErrName},
		"no such user":      {func(c *transfer.Config) { c.User = "nobody-here" }, transfer.ErrLogin},
		"a guest":           {func(c *transfer.Config) { c.User = "" }, transfer.ErrLogin},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := server.Config
			c.change(&cfg)
			if s, err := New(cfg).Open(t.Context()); !errors.Is(err, c.want) {
				if err == nil {
					s.Close()
				}
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	s, err := New(server.Config).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"data/files/a:b", "data/files/a*", "data/a?", `data/a"`} {
		if _, err := s.Size(t.Context(), name); !errors.Is(err, transfer.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"other/files/a", "data"} {
		if _, err := s.Size(t.Context(), name); !errors.Is(err, transfer.ErrMissing) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := s.Size(t.Context(), "data/files"); !errors.Is(err, transfer.ErrMissing) {
		t.Errorf("a folder: %v", err)
	}
	if err := s.Put(t.Context(), "data/files", strings.NewReader("x"), 1, true); !errors.Is(err, transfer.ErrExists) {
		t.Errorf("over a folder: %v", err)
	}
}

// TestDomain: a user may have a domain, with either separator.
func TestDomain(t *testing.T) {
	server := samba(t)
	for _, sign := range []string{";", `\`} {
		cfg := server.Config
		cfg.User = "THRUTEST" + sign + cfg.User
		s, err := New(cfg).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

// TestEnds: a cancelled download ends although its sink was waiting.
func TestEnds(t *testing.T) {
	server := samba(t)
	s, err := New(server.Config).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s, server.Dir+"/ends", 16<<20)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	slow := writer(func(b []byte) (int, error) { <-ctx.Done(); return len(b), nil })
	if _, err := s.Get(ctx, server.Dir+"/ends", slow); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	s.Close()
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

var _ io.Writer = writer(nil)

// answer is a negotiate response by the specification ([MS-SMB2] 2.2.4).
func answer(dialect uint16, mode byte, capabilities, reads, writes uint32) []byte {
	b := make([]byte, header+body+24)
	copy(b, "\xfeSMB")
	little, r := binary.LittleEndian, b[header:]
	little.PutUint16(r, 65)
	r[2] = mode
	little.PutUint16(r[4:], dialect)
	little.PutUint32(r[24:], capabilities)
	little.PutUint32(r[28:], 1<<20)
	little.PutUint32(r[32:], reads)
	little.PutUint32(r[36:], writes)
	return b
}

func TestTap(t *testing.T) {
	first := answer(0x0302, 3, 4, 8<<20, 4<<20)
	frame := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	stream := slices.Concat(frame(nil), frame(first), frame([]byte("\xfeSMB and more")), frame(append([]byte("\xfdSMB"), make([]byte, 5000)...)))
	for size := 1; size < 300; size += 7 { // in pieces of any size
		tap := &tap{}
		for piece := range slices.Chunk(stream, size) {
			tap.see(piece)
		}
		n, spoken := tap.negotiated()
		if want := (negotiation{dialect: 0x0302, signs: true, large: true, reads: 8 << 20, write: 4 << 20}); !spoken || n != want {
			t.Fatalf("pieces of %d: %+v, %v", size, n, spoken)
		}
		if !tap.stop() {
			t.Fatalf("pieces of %d: the last message was encrypted", size)
		}
	}
}

func TestNegotiation(t *testing.T) {
	for _, c := range []struct {
		n        negotiation
		asked    int
		block    int
		contains string
	}{
		{negotiation{dialect: 0x0202, reads: 8 << 20, write: 8 << 20}, 0, 65536, "SMB 2.0.2"},
		{negotiation{dialect: 0x0210, large: true, reads: 8 << 20, write: 8 << 20}, 0, 1 << 20, "SMB 2.1"},
		{negotiation{dialect: 0x0300, large: true, reads: 8 << 20, write: 65536}, 0, 65536, "SMB 3.0"},
		{negotiation{dialect: 0x0311, large: true, reads: 1 << 20, write: 1 << 20, signs: true}, 4096, 4096, "SMB 3.1.1"},
		{negotiation{dialect: 0x0311}, 0, 1, "SMB 3.1.1"},
	} {
		if got := c.n.block(c.asked); got != c.block {
			t.Errorf("%+v: block %d, want %d", c.n, got, c.block)
		}
		if got := c.n.describe(false); got[0] != c.contains {
			t.Errorf("%+v: %q, want %q", c.n, got[0], c.contains)
		}
	}
}

// challenge is a message by the specification ([MS-NLMP] 2.2.1.2).
func challenge(name string) []byte {
	b := append([]byte("NTLMSSP\x00\x02\x00\x00\x00"), make([]byte, 44)...)
	little := binary.LittleEndian
	little.PutUint32(b[20:], 0x02000000)
	copy(b[48:], []byte{10, 0, 0x7c, 0x4f, 0, 0, 0, 15})
	info := []byte{2, 0, 2, 0, 'W', 0, 1, 0, byte(2 * len(name)), 0}
	for _, r := range name {
		info = append(info, byte(r), 0)
	}
	info = append(info, 0, 0, 0, 0)
	little.PutUint16(b[40:], uint16(len(info)))
	little.PutUint32(b[44:], uint32(len(b)))
	return append(b, info...)
}

func TestChallenge(t *testing.T) {
	if name, version := parseChallenge(challenge("FILES-1")); name != "FILES-1" || version != "10.0.20348" {
		t.Errorf("%q, %q", name, version)
	}
	if name, _ := parseChallenge(challenge("A\x1b[31m\nB")); name != "A[31mB" {
		t.Errorf("%q", name)
	}
	short := challenge("FILES-1")
	for n := range len(short) {
		if name, _ := parseChallenge(short[:n]); name != "" {
			t.Errorf("%d bytes of a challenge are enough for %q", n, name)
		}
	}
}

func TestOld(t *testing.T) {
	request := oldRequest()
	if int(request[3]) != len(request)-lengthField || string(request[4:9]) != "\xffSMB\x72" {
		t.Errorf("%x", request)
	}
	yes := make([]byte, 35)
	copy(yes, "\xffSMB\x72")
	yes[32] = 17
	no := slices.Clone(yes)
	no[33], no[34] = 0xff, 0xff
	if !isOld(yes) || isOld(no) || isOld(yes[:34]) || isOld(answer(0x0311, 0, 0, 0, 0)) {
		t.Error("an answer of SMB1 is not detected")
	}
}

func FuzzTap(f *testing.F) {
	f.Add(answer(0x0311, 1, 4, 8<<20, 8<<20), 3)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 4, 0xfd, 'S', 'M', 'B'}, 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		tap := &tap{}
		for piece := range slices.Chunk(b, max(1, size)) {
			tap.see(piece)
		}
		if n, spoken := tap.negotiated(); spoken && (n.block(0) < 1 || n.block(0) > largest) {
			t.Errorf("block %d", n.block(0))
		}
		if len(tap.head) > lengthField+header+body {
			t.Errorf("%d bytes are kept", len(tap.head))
		}
	})
}

func FuzzChallenge(f *testing.F) {
	f.Add(challenge("FILES-1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if name, _ := parseChallenge(b); strings.ContainsFunc(name, unicode.IsControl) {
			t.Errorf("%q", name)
		}
	})
}
