//go:build unix

package ftp

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/transfer"
	"thru/internal/transfer/servers"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vsftpd starts a vsftpd, with more lines of its configuration.
func vsftpd(t *testing.T, more string) transfertest.Server {
	t.Helper()
	transfertest.Program(t, "vsftpd")
	ready, err := servers.Vsftpd(t.TempDir(), transfertest.FreePort(t), more)
	if err != nil {
		t.Fatal(err)
	}
	s := transfertest.Server{Config: ready.Config, Folder: ready.Folder, Dir: ready.Dir}
	apart := transfertest.MakeFolders(t, filepath.Dir(ready.Folder))
	if apart != nil {
		s.Full, s.ReadOnly = "full/large", "ro/new"
	}
	words := append(apart, ready.Argv...)
	transfertest.Start(t, ready.Address(), words[0], words[1:]...)
	return s
}

func TestFTP(t *testing.T) {
	transfertest.Run(t, transfertest.Suite{
		Start: func(t *testing.T) transfertest.Server { return vsftpd(t, "") },
		New:   func(cfg transfer.Config) transfer.Client { return New("ftp", cfg) },
		Open:  true,
	})
}

// TestReadOnly: a server that accepts no uploads.
func TestReadOnly(t *testing.T) {
	server := vsftpd(t, "write_enable=NO\n")
	s, err := New("ftp", server.Config).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Put(t.Context(), "box/new", strings.NewReader("x"), 1, false); !errors.Is(err, transfer.ErrReadOnly) {
		t.Errorf("%v, want %v", err, transfer.ErrReadOnly)
	}
	server.Config.User, server.Config.Password = "somebody", func() (string, error) { return "s3cret", nil }
	if _, err := New("ftp", server.Config).Open(t.Context()); !errors.Is(err, transfer.ErrLogin) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a user where only guests are: %v", err)
	}
}

func ftps(cfg transfer.Config) transfer.Client { return New("ftps", cfg) }

func TestFTPS(t *testing.T) {
	cert, key, trusted, raw := transfertest.Certificate(t)
	server := vsftpd(t, servers.VsftpdTLS(cert, key))
	server.Config.Roots = trusted
	transfertest.Run(t, transfertest.Suite{
		Start: func(*testing.T) transfertest.Server { return server },
		New:   ftps, Open: true,
	})
	t.Run("trust", func(t *testing.T) { transfertest.Trust(t, server.Config, raw, ftps) })
}

// TestImplicit: on port 990 TLS comes first. The test uses another port,
// which needs no privilege.
func TestImplicit(t *testing.T) {
	cert, key, trusted, _ := transfertest.Certificate(t)
	server := vsftpd(t, servers.VsftpdTLS(cert, key)+"implicit_ssl=YES\n")
	real := net.JoinHostPort("127.0.0.1", server.Config.Port)
	server.Config.Roots, server.Config.Port = trusted, implicitPort
	server.Config.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "127.0.0.1:"+implicitPort {
			addr = real
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	transfertest.RoundTrip(t, server, ftps)
	s, err := ftps(server.Config).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Size(t.Context(), "box/none"); !errors.Is(err, transfer.ErrMissing) {
		t.Error(err)
	}
	if said := strings.Join(s.Info().Details, "\n"); !strings.Contains(said, "control: TLS") {
		t.Errorf("%q", said)
	}
}

// TestNoRename: on a server that forbids renames, an existing file stays.
func TestNoRename(t *testing.T) {
	server := vsftpd(t, "cmds_denied=RNFR,RNTO\n")
	file := filepath.Join(server.Folder, "mine")
	if err := os.WriteFile(file, []byte("of the user"), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := New("ftp", server.Config).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Put(t.Context(), "box/mine", strings.NewReader("x"), 1, true); !errors.Is(err, transfer.ErrReadOnly) {
		t.Errorf("%v, want %v", err, transfer.ErrReadOnly)
	}
	if kept, err := os.ReadFile(file); string(kept) != "of the user" {
		t.Errorf("%q, %v", kept, err)
	}
	all, err := os.ReadDir(filepath.Dir(file))
	for _, e := range all {
		if strings.HasPrefix(e.Name(), ".thru-") {
			t.Errorf("left: %s", e.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}
