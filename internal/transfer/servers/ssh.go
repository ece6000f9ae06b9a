package servers

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"os/user"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// key writes a private key (Ed25519), and returns its file and the public
// key.
func (s *setup) key(name string) (file string, public ssh.PublicKey) {
	pub, secret, err := ed25519.GenerateKey(rand.Reader)
	s.fail("making a key", err)
	block, err := ssh.MarshalPrivateKey(secret, "")
	s.fail("making a key", err)
	public, err = ssh.NewPublicKey(pub)
	s.fail("making a key", err)
	return s.write(name, string(pem.EncodeToMemory(block))), public
}

// SSHD returns OpenSSH's server for the present user, who logs in by a key: a
// password would be the system's own. It also returns the host key.
func SSHD(dir, port string) (Server, ssh.PublicKey, error) {
	s := &setup{dir: dir}
	program, files := s.program("sshd"), s.program("sftp-server")
	if os.Geteuid() == 0 { // the package creates this folder at boot, which a container does not have
		s.fail("making sshd's folder", os.MkdirAll("/run/sshd", 0o755))
	}
	me, err := user.Current()
	s.fail("asking who runs this", err)
	if s.err != nil {
		return Server{}, nil, s.err
	}
	hostFile, host := s.key("host")
	mine, public := s.key("mine")
	if s.err != nil {
		return Server{}, nil, s.err
	}
	authorized := s.write("authorized", string(ssh.MarshalAuthorizedKey(public)))
	conf := s.write("sshd.conf", strings.Join([]string{
		"ListenAddress " + Host, "Port " + port, "HostKey " + hostFile, "PidFile none", "UsePAM no", "StrictModes no",
		"AuthorizedKeysFile " + authorized, "PasswordAuthentication yes", "PermitRootLogin yes", "Subsystem sftp " + files, "",
	}, "\n"))
	known := s.write("known_hosts", knownhosts.Line([]string{net.JoinHostPort(Host, port)}, host)+"\n")
	box := s.folder("box")
	server, err := s.server(port, box, strings.TrimPrefix(box, "/"), program, "-D", "-e", "-f", conf)
	server.Config.User, server.Config.Key, server.Config.KnownHosts = me.Username, mine, known
	return server, host, err
}
