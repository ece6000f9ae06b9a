//go:build unix

package ftp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vsftpdConf lets guests write, which needs no privilege: users would need PAM.
const vsftpdConf = `listen=YES
listen_address=127.0.0.1
listen_port=%s
background=NO
run_as_launching_user=YES
one_process_model=%s
seccomp_sandbox=NO
anonymous_enable=YES
local_enable=NO
anon_root=%s
no_anon_password=YES
write_enable=YES
anon_upload_enable=YES
anon_other_write_enable=YES
anon_world_readable_only=NO
anon_umask=022
xferlog_enable=NO
ftpd_banner=thru's judge (vsFTPd)
`

// vsftpd starts one, with more lines of its configuration.
func vsftpd(t *testing.T, more string) transfertest.Server {
	t.Helper()
	program, dir, port := transfertest.Program(t, "vsftpd"), t.TempDir(), transfertest.FreePort(t)
	root := filepath.Join(dir, "root")
	for _, d := range []string{root, filepath.Join(root, "box")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	oneProcess := "YES"
	if more != "" {
		oneProcess = "NO"
	}
	conf := transfertest.File(t, dir, "conf", fmt.Sprintf(vsftpdConf, port, oneProcess, root)+more)
	s := transfertest.Server{
		Config: transfer.Config{Host: "127.0.0.1", Port: port}, Folder: filepath.Join(root, "box"), Dir: "box",
	}
	apart := transfertest.Apart(t, root)
	words := append(apart, program, conf)
	if transfertest.Start(t, "127.0.0.1:"+port, words[0], words[1:]...); apart != nil {
		s.Full, s.ReadOnly = "full/large", "ro/new"
	}
	return s
}

func TestFTP(t *testing.T) {
	transfertest.Run(t, transfertest.Suite{
		Start: func(t *testing.T) transfertest.Server { return vsftpd(t, "") },
		New:   func(cfg transfer.Config) transfer.Client { return New("ftp", cfg) },
		Open:  true,
	})
}

// TestReadOnly: a server that takes nothing of anyone.
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

// secured are vsftpd's lines for TLS, with the session of the control connection for data.
func secured(cert, key string) string {
	return fmt.Sprintf("ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_data_ssl=YES\nforce_anon_logins_ssl=YES\n"+
		"require_ssl_reuse=YES\nssl_tlsv1=YES\nssl_ciphers=HIGH\nrsa_cert_file=%s\nrsa_private_key_file=%s\n", cert, key)
}

func ftps(cfg transfer.Config) transfer.Client { return New("ftps", cfg) }

func TestFTPS(t *testing.T) {
	cert, key, trusted, raw := transfertest.Certificate(t)
	server := vsftpd(t, secured(cert, key))
	server.Config.Roots = trusted
	transfertest.Run(t, transfertest.Suite{
		Start: func(*testing.T) transfertest.Server { return server },
		New:   ftps, Open: true,
	})
	t.Run("trust", func(t *testing.T) { transfertest.Trust(t, server.Config, raw, ftps) })
}

// TestImplicit: at port 990 TLS comes first. The test's server has another, which needs no privilege.
func TestImplicit(t *testing.T) {
	cert, key, trusted, _ := transfertest.Certificate(t)
	server := vsftpd(t, secured(cert, key)+"implicit_ssl=YES\n")
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
