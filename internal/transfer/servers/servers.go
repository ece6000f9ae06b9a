// Package servers prepares real servers of file protocols, as Debian packages
// them, in a folder of their own: it writes their configuration, and returns
// their command lines. The caller starts them.
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

// ErrNone means that a server's program is missing.
var ErrNone = errors.New("is not installed")

// Host is the address on which all of them listen.
const Host = "127.0.0.1"

// Server is a server that is ready to start.
type Server struct {
	Argv   []string        // it stays in the foreground, and prints its errors
	Config transfer.Config // for a client of this server
	Secret string          // the user's password, for other clients; empty: none needed
	Folder string          // folder of the files on this machine
	Dir    string          // the same in a URL, without leading and trailing slash
}

// Address returns the listening address.
func (s Server) Address() string { return net.JoinHostPort(Host, s.Config.Port) }

// Program returns the path of a program, also in Debian's folders for
// daemons.
func Program(name string) (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin", "/usr/lib/openssh") {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("servers: the program %s %w", name, ErrNone)
}

// setup prepares a server in a folder. After its first failure it does
// nothing more.
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

// program returns the path of a required program.
func (s *setup) program(name string) string {
	path, err := Program(name)
	if s.err == nil {
		s.err = err
	}
	return path
}

// write creates a private file, and returns its path.
func (s *setup) write(name, text string) string {
	file := filepath.Join(s.dir, name)
	if s.err == nil {
		s.fail("writing what the server reads", os.WriteFile(file, []byte(text), 0o600))
	}
	return file
}

// folder creates a folder for files, which every user may write to.
func (s *setup) folder(parts ...string) string {
	dir := filepath.Join(append([]string{s.dir}, parts...)...)
	if s.err == nil {
		s.fail("making the folder of the files", os.MkdirAll(dir, 0o777))
	}
	return dir
}

// server returns the server, without a user.
func (s *setup) server(port, folder, dir string, argv ...string) (Server, error) {
	if s.err != nil {
		return Server{}, s.err
	}
	return Server{Argv: argv, Config: transfer.Config{Host: Host, Port: port, Path: dir + "/x"}, Folder: folder, Dir: dir}, nil
}

// guarded is server with a user and a password.
func (s *setup) guarded(user, password, port, folder, dir string, argv ...string) (Server, error) {
	server, err := s.server(port, folder, dir, argv...)
	server.Config.User, server.Secret = user, password
	server.Config.Password = func() (string, error) { return password, nil }
	return server, err
}

// pem writes one PEM block to a file.
func (s *setup) pem(name, kind string, der []byte) string {
	return s.write(name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// SelfSigned returns a new self-signed certificate of Host.
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

// Certificate writes a self-signed certificate of Host and its key to two
// files. raw is the certificate (DER).
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
