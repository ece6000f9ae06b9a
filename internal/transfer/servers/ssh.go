//go:build unix

package servers

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"os/user"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"thru/internal/transfer"
)

// SSHKey writes a private key (Ed25519), and returns its file and the public key.
func SSHKey(dir, name string) (file string, public ssh.PublicKey, err error) {
	pub, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", nil, fmt.Errorf("servers: making a key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(secret, "")
	if err != nil {
		return "", nil, fmt.Errorf("servers: making a key: %w", err)
	}
	if public, err = ssh.NewPublicKey(pub); err != nil {
		return "", nil, fmt.Errorf("servers: making a key: %w", err)
	}
	file, err = write(dir, name, string(pem.EncodeToMemory(block)))
	return file, public, err
}

// SSHD is OpenSSH's server for the user who runs this, who logs in by a key: a
// password would need the system's own. It returns the host's key too.
func SSHD(dir, port string) (Server, ssh.PublicKey, error) {
	program, err := Program("sshd")
	if err != nil {
		return Server{}, nil, err
	}
	files, err := Program("sftp-server")
	if err != nil {
		return Server{}, nil, err
	}
	if os.Geteuid() == 0 { // its package makes this folder at boot, which a container does not do
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return Server{}, nil, fmt.Errorf("servers: making sshd's folder: %w", err)
		}
	}
	me, err := user.Current()
	if err != nil {
		return Server{}, nil, fmt.Errorf("servers: asking who runs this: %w", err)
	}
	hostFile, host, err := SSHKey(dir, "host")
	if err != nil {
		return Server{}, nil, err
	}
	mine, public, err := SSHKey(dir, "mine")
	if err != nil {
		return Server{}, nil, err
	}
	authorized, err := write(dir, "authorized", string(ssh.MarshalAuthorizedKey(public)))
	if err != nil {
		return Server{}, nil, err
	}
	conf, err := write(dir, "sshd.conf", strings.Join([]string{
		"ListenAddress " + Host, "Port " + port, "HostKey " + hostFile, "PidFile none", "UsePAM no", "StrictModes no",
		"AuthorizedKeysFile " + authorized, "PasswordAuthentication yes", "PermitRootLogin yes", "Subsystem sftp " + files, "",
	}, "\n"))
	if err != nil {
		return Server{}, nil, err
	}
	s := Server{
		Argv:   []string{program, "-D", "-e", "-f", conf},
		Config: transfer.Config{Host: Host, Port: port, User: me.Username, Key: mine},
	}
	if s.Folder, err = folder(dir, "box"); err != nil {
		return Server{}, nil, err
	}
	s.Dir = strings.TrimPrefix(s.Folder, "/")
	s.Config.KnownHosts, err = write(dir, "known_hosts", knownhosts.Line([]string{s.Address()}, host)+"\n")
	return s, host, err
}
