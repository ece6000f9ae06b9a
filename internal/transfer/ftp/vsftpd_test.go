//go:build unix

package ftp

import (
	"errors"
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

func TestFTPS(t *testing.T) {
	cert, key, trusted, raw := transfertest.Certificate(t)
	server := vsftpd(t, fmt.Sprintf("ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_data_ssl=YES\nforce_anon_logins_ssl=YES\n"+
		"require_ssl_reuse=YES\nssl_tlsv1=YES\nssl_ciphers=HIGH\nrsa_cert_file=%s\nrsa_private_key_file=%s\n", cert, key))
	server.Config.Roots = trusted
	client := func(cfg transfer.Config) transfer.Client { return New("ftps", cfg) }
	transfertest.Run(t, transfertest.Suite{
		Start: func(*testing.T) transfertest.Server { return server },
		New:   client, Open: true,
	})
	t.Run("trust", func(t *testing.T) { transfertest.Trust(t, server.Config, raw, client) })
}
