package loopback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/transfer"
	"thru/internal/transfer/clients"
	"thru/internal/transfer/servers"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// count fills b with values that identify each offset.
func count(b []byte, offset int64) {
	for i := range b {
		at := offset + int64(i)
		b[i] = byte(at>>16) ^ byte(at>>8)*7 ^ byte(at)
	}
}

// counted returns the first size bytes of these values.
func counted(size int64) []byte {
	b := make([]byte, size)
	count(b, 0)
	return b
}

// programs are the servers that do not run in this process.
var programs = map[string]string{"rsync": "rsync", "smb": "smbd"}

// serve starts a server, and ends it with the test: nothing of it may be
// left.
func serve(t *testing.T, protocol string, o Options) *Server {
	t.Helper()
	if name := programs[protocol]; name != "" {
		transfertest.Program(t, name)
	}
	s, err := Serve(t.Context(), protocol, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if programs[protocol] == "" {
			return // goleak finds leftovers
		}
		if conn, err := net.Dial("tcp", net.JoinHostPort(s.host, s.port)); err == nil {
			conn.Close()
			t.Error("somebody listens there still")
		}
	})
	return s
}

// each runs a test with the server and the client of every protocol.
func each(t *testing.T, test func(t *testing.T, s *Server, p clients.Protocol)) {
	for _, p := range clients.All() {
		t.Run(p.Name, func(t *testing.T) {
			if programs[p.Name] == "" { // a program's port is free only as long as nobody else takes one
				t.Parallel()
			}
			o := Options{Fill: count}
			if p.Name == "thru" {
				if _, err := Serve(t.Context(), p.Name, o); !errors.Is(err, ErrNone) {
					t.Errorf("%v, want %v", err, ErrNone)
				}
				return
			}
			test(t, serve(t, p.Name, o), p)
		})
	}
}

// open logs in like the session of a transfer.
func open(t *testing.T, s *Server, p clients.Protocol, block int) transfer.Session {
	t.Helper()
	real := transfer.Config{Host: "192.0.2.1", Port: "1", Path: "far/away", User: "somebody", Pin: "00", Block: block, Dial: (&net.Dialer{}).DialContext}
	session, err := p.New(s.Config(real)).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// down downloads a file of so many bytes, and compares it.
func down(ctx context.Context, s *Server, session transfer.Session, protocol string, size int64) error {
	path, err := s.Path(size)
	if err != nil {
		return err
	}
	var got bytes.Buffer
	n, err := session.Get(ctx, path, &got)
	want := counted(size)
	if programs[protocol] != "" {
		clear(want)
	}
	if err != nil || n != size || !bytes.Equal(got.Bytes(), want) {
		return fmt.Errorf("%d of %d bytes came, the right ones: %t, %w", n, size, bytes.Equal(got.Bytes(), want), err)
	}
	return nil
}

// TestRoundTrip: files of every size are moved both ways, with blocks that
// divide no size.
func TestRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, s *Server, p clients.Protocol) {
		for _, block := range []int{0, 5000} {
			if block > 0 && p.Name == "rsync" { // has no blocks to choose
				continue
			}
			session, sizes := open(t, s, p, block), []int64{1, 65535, 1<<20 + 7}
			if p.Name == "rsync" { // each call is a process, which takes its time
				sizes = sizes[2:]
			}
			for _, size := range sizes {
				if err := down(t.Context(), s, session, p.Name, size); err != nil {
					t.Errorf("blocks of %d: %v", block, err)
				}
				up := s.Upload(block)
				if err := session.Put(t.Context(), up, bytes.NewReader(counted(size)), size, false); err != nil {
					t.Fatalf("blocks of %d: %d bytes: %v", block, size, err)
				}
				if n, err := session.Size(t.Context(), up); n != size || err != nil {
					t.Errorf("size %d, %v, want %d", n, err, size)
				}
				if err := session.Put(t.Context(), up, strings.NewReader("x"), 1, false); !errors.Is(err, transfer.ErrExists) {
					t.Errorf("a second one: %v", err)
				}
				if err := session.Put(t.Context(), up, strings.NewReader("x"), 1, true); err != nil {
					t.Errorf("over it: %v", err)
				}
				if err := session.Remove(t.Context(), up); err != nil {
					t.Error(err)
				}
				if _, err := session.Size(t.Context(), up); !errors.Is(err, transfer.ErrMissing) {
					t.Errorf("removed: %v", err)
				}
			}
		}
	})
}

// TestAtOnce: parallel clients do not affect each other.
func TestAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *Server, p clients.Protocol) {
		var all sync.WaitGroup
		for i := range 4 {
			session := open(t, s, p, 0)
			all.Go(func() {
				if err := down(t.Context(), s, session, p.Name, 1<<20); err != nil {
					t.Error(err)
				}
				if err := session.Put(t.Context(), s.Upload(i), bytes.NewReader(counted(1<<20)), 1<<20, false); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// TestClosed: a server that ends closes all connections, whatever is in
// progress.
func TestClosed(t *testing.T) {
	each(t, func(t *testing.T, s *Server, p clients.Protocol) {
		session := open(t, s, p, 0)
		path, err := s.Path(1 << 40)
		if err != nil {
			t.Fatal(err)
		}
		var once sync.Once
		moving, over := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := session.Get(t.Context(), path, writer(func(b []byte) (int, error) {
				once.Do(func() { close(moving) })
				return len(b), nil
			}))
			over <- err
		}()
		if programs[p.Name] != "" && p.Name != "smb" { // its bytes do not pass through this process
			once.Do(func() { close(moving) })
		}
		<-moving
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-over; err == nil {
			t.Error("a file came whole of a server that had ended")
		}
	})
}

// writer is a function as an io.Writer.
type writer func([]byte) (int, error)

// Write calls it.
func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestNoise: connections of other programs do not affect a client.
func TestNoise(t *testing.T) {
	each(t, func(t *testing.T, s *Server, p clients.Protocol) {
		for _, said := range []string{"", "\x00\xff\x80\r\n\r\n", strings.Repeat("A", 100_000), "STOR x\r\nRETR 1\r\nSIZE\r\nRNTO y\r\nEPSV\r\n", "GET /x HTTP/1.0\r\n\r\n",
			"\x80\x00\x00\x04aaaa\x80\x00\x00\x00", "\xff\xff\xff\xff"} {
			conn, err := net.Dial("tcp", net.JoinHostPort(s.host, s.port))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(conn, said)
			_ = conn.(*net.TCPConn).CloseWrite()
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20))
			conn.Close()
		}
		if err := down(t.Context(), s, open(t, s, p, 0), p.Name, 100_000); err != nil {
			t.Error(err)
		}
	})
}

// TestAgreed: the cipher and the signatures are those of the real server.
func TestAgreed(t *testing.T) {
	for _, c := range []struct{ protocol, agreed, want string }{
		{"sftp", "cipher up aes256-ctr with hmac-sha2-256-etm@openssh.com", "cipher down aes256-ctr with hmac-sha2-256-etm@openssh.com"},
		{"sftp", "cipher up chacha20-poly1305@openssh.com", "cipher down chacha20-poly1305@openssh.com"},
		{"https", "TLS 1.3 TLS_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
		{"https", "TLS 1.2 TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, session resumed", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
		{"https", "TLS 1.3 TLS_AES_128_GCM_SHA256", "TLS 1.3"},
		{"https", "TLS 1.2 TLS_OF_NO_KIND", "TLS 1.3"},
		{"ftps", "data: TLS 1.3 TLS_AES_256_GCM_SHA384", "control: TLS 1.2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
		{"smb", "signed (the server requires it), not encrypted", "signed"},
		{"smb", "encrypted (AES-128)", "encrypted"},
		{"smb", "SMB 3.1.1", "neither signed nor encrypted"},
		{"nfs", "NFS 3 over TCP", "NFS 3 over TCP"},
		{"nfs", "NFS 4.1 over TCP", "NFS 4.1 over TCP"},
		{"nfs4", "NFS 4.1 over TCP", "NFS 4.1 over TCP"},
	} {
		t.Run(c.protocol+"/"+c.agreed, func(t *testing.T) {
			p, err := clients.Of(c.protocol)
			if err != nil {
				t.Fatal(err)
			}
			s := serve(t, c.protocol, Options{Agreed: []string{c.agreed}})
			session := open(t, s, p, 0)
			path, err := s.Path(1000)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := session.Get(t.Context(), path, io.Discard); n != 1000 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
			if said := strings.Join(session.Info().Details, "\n"); !strings.Contains(said, c.want) {
				t.Errorf("%s\ndoes not say %q", said, c.want)
			}
		})
	}
}

// TestNone: a missing server is reported.
func TestNone(t *testing.T) {
	if _, err := Serve(t.Context(), "gopher", Options{}); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	_, err := serveProgram(t.Context(), func(string, string) (s servers.Server, err error) {
		_, err = servers.Program("no such program")
		return s, err
	})
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "not installed") {
		t.Error(err)
	}
}

// TestProgramFails: a program that does not listen leaves nothing behind.
func TestProgramFails(t *testing.T) {
	transfertest.Program(t, "rsync")
	dir := ""
	_, err := serveProgram(t.Context(), func(in, port string) (servers.Server, error) {
		s, err := servers.Rsync(in, port, "")
		dir, s.Argv = in, append(s.Argv, "--no-such-flag")
		return s, err
	})
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "ended at once") {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("its folder is left")
	}
}
