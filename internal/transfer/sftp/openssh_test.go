//go:build unix

package sftp

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"thru/internal/transfer"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyPair makes a private key's file, and the public one.
func keyPair(t *testing.T, dir, name string) (file string, public ssh.PublicKey) {
	t.Helper()
	pub, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(secret, "")
	if err != nil {
		t.Fatal(err)
	}
	if public, err = ssh.NewPublicKey(pub); err != nil {
		t.Fatal(err)
	}
	return transfertest.File(t, dir, name, string(pem.EncodeToMemory(block))), public
}

// sshd starts one for the user of the test, who logs in by a key: a password would
// need the system's own. It returns the host's key too.
func sshd(t *testing.T) (transfertest.Server, ssh.PublicKey) {
	t.Helper()
	t.Setenv(agentVariable, "")
	program, server := transfertest.Program(t, "sshd"), transfertest.Program(t, "sftp-server")
	dir, port := t.TempDir(), transfertest.FreePort(t)
	me, err := user.Current()
	if err != nil {
		t.Skipf("needs a user with a name: %v", err)
	}
	hostFile, host := keyPair(t, dir, "host")
	mine, public := keyPair(t, dir, "mine")
	authorized := transfertest.File(t, dir, "authorized", string(ssh.MarshalAuthorizedKey(public)))
	conf := transfertest.File(t, dir, "conf", strings.Join([]string{
		"ListenAddress 127.0.0.1", "Port " + port, "HostKey " + hostFile, "PidFile none", "UsePAM no", "StrictModes no",
		"AuthorizedKeysFile " + authorized, "PasswordAuthentication yes", "PermitRootLogin yes", "Subsystem sftp " + server, "",
	}, "\n"))
	for _, d := range []string{"box", "fixed", "full"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	full := transfertest.StartFull(t, filepath.Join(dir, "full"), "127.0.0.1:"+port, program, "-D", "-e", "-f", conf)
	line := knownhosts.Line([]string{net.JoinHostPort("127.0.0.1", port)}, host)
	s := transfertest.Server{
		Config: transfer.Config{
			Host: "127.0.0.1", Port: port, User: me.Username, Key: mine,
			KnownHosts: transfertest.File(t, dir, "known_hosts", line+"\n"),
		},
		Folder: filepath.Join(dir, "box"), Dir: strings.TrimPrefix(filepath.Join(dir, "box"), "/"),
	}
	if full {
		s.Full = strings.TrimPrefix(filepath.Join(dir, "full", "large"), "/")
	}
	if os.Geteuid() != 0 { // whom no mode stops
		os.Chmod(filepath.Join(dir, "fixed"), 0o555)
		s.ReadOnly = strings.TrimPrefix(filepath.Join(dir, "fixed", "new"), "/")
	}
	return s, host
}

func TestSFTP(t *testing.T) {
	server, key := sshd(t)
	transfertest.Run(t, transfertest.Suite{
		Start: func(*testing.T) transfertest.Server { return server }, New: New,
	})
	t.Run("trust", func(t *testing.T) { transfertest.Trust(t, server.Config, key.Marshal(), New) })
	t.Run("blocks", func(t *testing.T) {
		for _, block := range []int{1000, largestBlock} {
			cfg := server.Config
			cfg.Block = block
			transfertest.RoundTrip(t, transfertest.Server{Config: cfg, Folder: server.Folder, Dir: server.Dir}, New)
		}
	})
	t.Run("info", func(t *testing.T) {
		s, err := New(server.Config).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		said := fmt.Sprint(s.Info())
		for _, want := range []string{"OpenSSH", "cipher up ", "key exchange ", library} {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q", said, want)
			}
		}
	})
}
