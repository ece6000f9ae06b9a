//go:build unix

package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nginxConf is a server of files with WebDAV's PUT and DELETE, for one user.
const nginxConf = `
%[5]s
daemon off; master_process off; pid %[1]s/pid; error_log stderr crit;
events {}
http {
	access_log off; client_max_body_size 0;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server {
		listen 127.0.0.1:%[2]s %[3]s;
		root %[1]s/files;
		auth_basic thru; auth_basic_user_file %[1]s/users;
		location / { dav_methods PUT DELETE; }
		location /fixed/ { }
		location /there { return 302 /target; }
		location /away { return 302 http://192.0.2.1/target; }
	}
}
`

// nginx starts one, with TLS where cert is given.
func nginx(t *testing.T, cert, key string) transfertest.Server {
	t.Helper()
	program, dir, port, tls, user := transfertest.Program(t, "nginx"), t.TempDir(), transfertest.FreePort(t), "", ""
	if cert != "" {
		tls = fmt.Sprintf("ssl; ssl_certificate %s; ssl_certificate_key %s", cert, key)
	}
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	if err := os.MkdirAll(filepath.Join(dir, "files", "fixed"), 0o755); err != nil {
		t.Fatal(err)
	}
	transfertest.File(t, dir, "users", "me:{PLAIN}right\n")
	conf := transfertest.File(t, dir, "conf", fmt.Sprintf(nginxConf, dir, port, tls, "", user))
	transfertest.Start(t, "127.0.0.1:"+port, program, "-p", dir, "-c", conf, "-e", "stderr")
	if err := os.Mkdir(filepath.Join(dir, "files", "box"), 0o777); err != nil {
		t.Fatal(err)
	}
	return transfertest.Server{
		Config: transfer.Config{Host: "127.0.0.1", Port: port, User: "me", Password: func() (string, error) { return "right", nil }},
		Folder: filepath.Join(dir, "files", "box"), Dir: "box", ReadOnly: "fixed/new",
	}
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
	transfertest.File(t, filepath.Dir(server.Folder), "target", "here")
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
	if _, err = s.Get(t.Context(), "away", got); err == nil || !strings.Contains(err.Error(), "sends us elsewhere") {
		t.Errorf("another host: %v", err)
	}
}
