//go:build unix

package web

import (
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

// redirects are locations that redirect a client.
const redirects = "location /there { return 302 /target; } location /away { return 302 http://192.0.2.1/target; }"

// nginx starts an nginx, with TLS where cert is given.
func nginx(t *testing.T, cert, key string) transfertest.Server {
	t.Helper()
	transfertest.Program(t, "nginx")
	ready, err := servers.Nginx(t.TempDir(), transfertest.FreePort(t), cert, key, redirects)
	if err != nil {
		t.Fatal(err)
	}
	transfertest.Start(t, ready.Address(), ready.Argv[0], ready.Argv[1:]...)
	return transfertest.Server{Config: ready.Config, Folder: ready.Folder, Dir: ready.Dir, ReadOnly: "fixed/new"}
}

func TestHTTP(t *testing.T) {
	transfertest.Run(t, transfertest.Suite{
		Start: func(t *testing.T) transfertest.Server { return nginx(t, "", "") },
		New:   func(cfg transfer.Config) transfer.Client { return New("http", cfg) },
	})
}

func TestHTTPS(t *testing.T) {
	cert, key, trusted, raw := transfertest.Certificate(t)
	server := nginx(t, cert, key)
	server.Config.Roots = trusted
	transfertest.Run(t, transfertest.Suite{
		Start: func(*testing.T) transfertest.Server { return server },
		New:   func(cfg transfer.Config) transfer.Client { return New("https", cfg) },
	})
	t.Run("trust", func(t *testing.T) {
		transfertest.Trust(t, server.Config, raw, func(cfg transfer.Config) transfer.Client { return New("https", cfg) })
	})
}

func TestRedirects(t *testing.T) {
	server := nginx(t, "", "")
	if err := os.WriteFile(filepath.Join(filepath.Dir(server.Folder), "target"), []byte("here"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New("http", server.Config).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := &strings.Builder{}
	if _, err := s.Get(t.Context(), "there", got); err != nil || got.String() != "here" {
		t.Errorf("%q, %v", got, err)
	}
	if !strings.Contains(strings.Join(s.Info().Details, "\n"), "redirected to") {
		t.Errorf("%q does not say that it was redirected", s.Info().Details)
	}
	if _, err = s.Get(t.Context(), "away", got); err == nil || !strings.Contains(err.Error(), "redirects to another server") {
		t.Errorf("another host: %v", err)
	}
}
