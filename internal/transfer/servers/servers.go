//go:build unix

// Package servers readies real servers of file protocols, as Debian packages them,
// in a folder of their own: it writes what they read, and says how they are
// called. Tests and comparisons start them; nothing else does.
package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"thru/internal/transfer"
)

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

// with adds a user with a password.
func (s Server) with(user, password string) Server {
	s.Config.User, s.Secret = user, password
	s.Config.Password = func() (string, error) { return password, nil }
	return s
}

// Program is the path of a program, with Debian's folders for daemons.
func Program(name string) (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/lib/openssh") {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("servers: the program %s is not installed", name)
}

// write makes a file that nobody else reads, and returns its path.
func write(dir, name, text string) (string, error) {
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("servers: writing what the server reads: %w", err)
	}
	return file, nil
}

// folder makes one for files, which every user may write to.
func folder(parts ...string) (string, error) {
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("servers: making the folder of the files: %w", err)
	}
	return dir, nil
}

// Certificate writes a certificate of Host that signs itself, with its key, into
// two files. raw is the certificate (DER).
func Certificate(dir string) (cert, key string, raw []byte, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", nil, fmt.Errorf("servers: making a key: %w", err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a server to be tested"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err = x509.CreateCertificate(rand.Reader, about, about, &secret.PublicKey, secret)
	if err != nil {
		return "", "", nil, fmt.Errorf("servers: making a certificate: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return "", "", nil, fmt.Errorf("servers: making a key: %w", err)
	}
	if cert, err = write(dir, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))); err != nil {
		return "", "", nil, err
	}
	key, err = write(dir, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	return cert, key, raw, err
}
