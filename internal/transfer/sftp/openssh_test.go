//go:build unix

package sftp

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"os/user"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"thru/internal/transfer"
	"thru/internal/transfer/servers"
	"thru/internal/transfer/transfertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sshd starts a server for the user of the test, who logs in by a key. It
// also returns the host key.
func sshd(t *testing.T) (transfertest.Server, ssh.PublicKey) {
	t.Helper()
	t.Setenv(agentVariable, "")
	transfertest.Program(t, "sshd")
	transfertest.Program(t, "sftp-server")
	if _, err := user.Current(); err != nil {
		t.Skipf("needs a user with a name: %v", err)
	}
	dir := t.TempDir()
	ready, host, err := servers.SSHD(dir, transfertest.FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	s := transfertest.Server{Config: ready.Config, Folder: ready.Folder, Dir: ready.Dir}
	apart := transfertest.MakeFolders(t, dir)
	if apart != nil {
		root := strings.TrimPrefix(dir, "/")
		s.Full, s.ReadOnly = root+"/full/large", root+"/ro/new"
	}
	words := append(apart, ready.Argv...)
	transfertest.Start(t, ready.Address(), words[0], words[1:]...)
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

// TestPassword: servers that ask for the password in either way, once; the
// files are those of OpenSSH's sftp-server, behind our own SSH server.
func TestPassword(t *testing.T) {
	t.Setenv(agentVariable, "")
	server, dir := transfertest.Program(t, "sftp-server"), t.TempDir()
	for name, directions := range map[string]func(*ssh.ServerConfig){
		"password": func(c *ssh.ServerConfig) {
			c.PasswordCallback = func(_ ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) { return nil, isRight(string(p)) }
		},
		"questions": func(c *ssh.ServerConfig) {
			c.KeyboardInteractiveCallback = func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
				answers, err := ask("", "", []string{"Password: "}, []bool{false})
				if err != nil || len(answers) != 1 {
					return nil, errors.Join(err, errors.New("no answer"))
				}
				return nil, isRight(answers[0])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, password := range []string{"right", "wr0ng"} {
				cfg, asked := door(t, server, directions), 0
				cfg.Password = func() (string, error) { asked++; return password, nil }
				s, err := New(cfg).Open(t.Context())
				switch {
				case password == "right" && err != nil, asked != 1:
					t.Errorf("asked %d times, %v", asked, err)
				case password != "right" && (!errors.Is(err, transfer.ErrLogin) || strings.Contains(err.Error(), password)):
					t.Errorf("%v, want %v", err, transfer.ErrLogin)
				}
				if err != nil {
					continue
				}
				name := strings.TrimPrefix(dir, "/") + "/file"
				if err := s.Put(t.Context(), name, strings.NewReader("some"), 4, true); err != nil {
					t.Error(err)
				}
				s.Close()
			}
		})
	}
}

func isRight(password string) error {
	if password != "right" {
		return errors.New("wrong")
	}
	return nil
}

// door is an SSH server for one client in front of the real SFTP server.
func door(t *testing.T, program string, directions func(*ssh.ServerConfig)) transfer.Config {
	t.Helper()
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{}
	config.AddHostKey(signer)
	directions(config)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		all.Go(func() { ssh.DiscardRequests(requests) })
		for c := range channels {
			channel, requests, err := c.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				for r := range requests {
					r.Reply(r.Type == "subsystem", nil)
				}
			})
			files := exec.Command(program)
			files.Stdin, files.Stdout = channel, channel
			files.Run()
			channel.Close()
		}
	})
	host, port, _ := net.SplitHostPort(l.Addr().String())
	return transfer.Config{Host: host, Port: port, User: "me", Pin: transfer.Fingerprint(signer.PublicKey().Marshal())}
}
