// Package servers readies real servers of file protocols, as Debian packages them,
// in a folder of their own: it writes what they read, and says how they are
// called. Others start them.
package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"thru/internal/transfer"
)

// ErrNone is that of a server whose program is missing.
var ErrNone = errors.New("is not installed")

// Host is where all of them listen.
const Host = "127.0.0.1"

// Server is one that can be started.
type Server struct {
	Argv   []string        // it stays in the foreground, and says on its output what is wrong
	Config transfer.Config // with which a client gets in
	Secret string          // password of its user, for other clients; empty: it needs none
	Folder string          // on this machine, where the files lie
	Dir    string          // the same as a URL has it, without slash at its ends
}

// Address is where it listens.
func (s Server) Address() string { return net.JoinHostPort(Host, s.Config.Port) }

// Program is the path of a program, with Debian's folders for daemons.
func Program(name string) (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin", "/usr/lib/openssh") {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("servers: the program %s %w", name, ErrNone)
}

// setup readies a server in a folder. After its first failure it does nothing more.
type setup struct {
	dir string
	err error
}

// fail keeps the first error.
func (s *setup) fail(doing string, err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("servers: %s: %w", doing, err)
	}
}

// program is the path of one that is needed.
func (s *setup) program(name string) string {
	path, err := Program(name)
	if s.err == nil {
		s.err = err
	}
	return path
}

// write makes a file that nobody else reads, and returns its path.
func (s *setup) write(name, text string) string {
	file := filepath.Join(s.dir, name)
	if s.err == nil {
		s.fail("writing what the server reads", os.WriteFile(file, []byte(text), 0o600))
	}
	return file
}

// folder makes one for files, which every user may write to.
func (s *setup) folder(parts ...string) string {
	dir := filepath.Join(append([]string{s.dir}, parts...)...)
	if s.err == nil {
		s.fail("making the folder of the files", os.MkdirAll(dir, 0o777))
	}
	return dir
}

// server is what came of it, without a user.
func (s *setup) server(port, folder, dir string, argv ...string) (Server, error) {
	if s.err != nil {
		return Server{}, s.err
	}
	return Server{Argv: argv, Config: transfer.Config{Host: Host, Port: port, Path: dir + "/x"}, Folder: folder, Dir: dir}, nil
}

// guarded is server with a user who has a password.
func (s *setup) guarded(user, password, port, folder, dir string, argv ...string) (Server, error) {
	server, err := s.server(port, folder, dir, argv...)
	server.Config.User, server.Secret = user, password
	server.Config.Password = func() (string, error) { return password, nil }
	return server, err
}

// pem writes one block of a file for OpenSSL.
func (s *setup) pem(name, kind string, der []byte) string {
	return s.write(name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// SelfSigned is a new certificate of Host that signs itself.
func SelfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("servers: making a key: %w", err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a server to be tested"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("servers: making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Certificate writes a certificate of Host that signs itself, with its key, into
// two files. raw is the certificate (DER).
func Certificate(dir string) (cert, key string, raw []byte, err error) {
	made, err := SelfSigned()
	if err != nil {
		return "", "", nil, err
	}
	s := &setup{dir: dir}
	secret, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	s.fail("making a key", err)
	raw = made.Certificate[0]
	return s.pem("cert.pem", "CERTIFICATE", raw), s.pem("key.pem", "PRIVATE KEY", secret), raw, s.err
}
