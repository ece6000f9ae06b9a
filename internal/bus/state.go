package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"thru/internal/fault"
)

// stateFile is the only file of a state folder, so that a rotation is one rename.
const stateFile = "agent.json"

// State is the identity of an agent, from which its join strings are made.
type State struct {
	ID     string // agent id; a rotation keeps it
	Secret Secret // admits clients to measure

	path string // "" for one in memory
	key  []byte // PEM of the certificate's key
	cert tls.Certificate
}

// stateDoc is the format of stateFile.
type stateDoc struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Secret  string `json:"secret"`
	Cert    string `json:"certificate"` // PEM
	Key     string `json:"key"`         // PEM, PKCS #8
}

const stateVersion = 1

// NewState returns a new identity in memory: for tests and for an agent in the process
// of its client.
func NewState() (*State, error) {
	s := &State{}
	doc, err := newStateDoc(newID())
	if err != nil {
		return nil, err
	}
	return s, s.take(doc)
}

// OpenState reads the identity in a folder, and creates folder and identity where they
// are missing. It refuses a file that others can read.
func OpenState(dir string) (*State, error) {
	if err := makePrivateDir(dir); err != nil {
		return nil, unwritable(err)
	}
	s := &State{path: filepath.Join(dir, stateFile)}
	err := s.read()
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	doc, err := newStateDoc(newID())
	if err != nil {
		return nil, err
	}
	if err := s.write(doc, false); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unwritable(err)
	}
	return s, s.read() // the file counts, even if another process was faster
}

// unwritable adds a hint to an error about the state folder that has none.
func unwritable(err error) error {
	if fault.Hint(err) != "" {
		return err
	}
	return fault.Failf("name a folder that this user can write: --state DIR", "%w", err)
}

// HasState reports whether a folder has an identity.
func HasState(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, stateFile))
	return err == nil
}

// Rotate replaces secret and certificate: earlier join strings stop working. A running
// agent keeps the old ones until it is restarted.
func (s *State) Rotate() error {
	doc, err := newStateDoc(s.ID)
	if err != nil {
		return err
	}
	if s.path != "" {
		if err := s.write(doc, true); err != nil {
			return err
		}
	}
	return s.take(doc)
}

// Dir returns the folder of the state; empty for one in memory.
func (s *State) Dir() string {
	if s.path == "" {
		return ""
	}
	return filepath.Dir(s.path)
}

// secretOf returns the secret of a privilege. All but the one for measuring are derived
// from the certificate's key (RFC 5869), which no client knows: so an identity of an
// older thru has them too, and a rotation, which replaces them all, stays one rename.
func (s *State) secretOf(privilege string) Secret {
	if privilege == PrivilegeMeasure {
		return s.Secret
	}
	b, err := hkdf.Key(sha256.New, s.key, nil, "thru join "+privilege, 32)
	if err != nil {
		return "" // admits no client; only an absurd length is an error
	}
	return Secret(base64.RawURLEncoding.EncodeToString(b))
}

// CertSHA256 returns the SHA-256 of the certificate (DER), which clients pin.
func (s *State) CertSHA256() [32]byte { return sha256.Sum256(s.cert.Certificate[0]) }

// Format implements fmt.Formatter, so that no key is ever printed.
func (s *State) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "state of agent %s", s.ID) }

func (s *State) read() error {
	b, err := readPrivate(s.path)
	if err != nil {
		return err
	}
	var doc stateDoc
	err = json.Unmarshal(b, &doc)
	if err == nil && doc.Version > stateVersion {
		return fault.Failf("upgrade thru, or name another folder with --state", "bus: %s was written by a newer thru", s.path)
	}
	if err == nil {
		err = s.take(doc)
	}
	if err != nil {
		return fault.Failf("remove the file to get a new identity; join strings made before stop working",
			"bus: reading %s: the file is damaged: %w", s.path, err)
	}
	return nil
}

func (s *State) write(doc stateDoc, replace bool) error {
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("bus: writing %s: %w", s.path, err)
	}
	return WritePrivate(s.path, append(b, '\n'), replace)
}

// take sets the state from a document.
func (s *State) take(doc stateDoc) error {
	cert, err := tls.X509KeyPair([]byte(doc.Cert), []byte(doc.Key))
	if err != nil {
		return fmt.Errorf("bus: reading the agent's certificate: %w", err)
	}
	if doc.ID == "" || len(doc.Secret) < 22 {
		return errors.New("bus: the agent's id or secret is missing")
	}
	s.ID, s.Secret, s.cert, s.key = doc.ID, Secret(doc.Secret), cert, []byte(doc.Key)
	return nil
}

// newStateDoc makes a secret, and a self-signed certificate that never expires in
// practice: clients pin it and check nothing else, and only a rotation ends it.
func newStateDoc(id string) (stateDoc, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return stateDoc{}, fmt.Errorf("bus: making a key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes([]byte(newID())[:16]),
		Subject:      pkix.Name{CommonName: "thru " + id},
		NotBefore:    now.Add(-24 * time.Hour),
		NotAfter:     now.AddDate(100, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return stateDoc{}, fmt.Errorf("bus: making a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return stateDoc{}, fmt.Errorf("bus: writing a key: %w", err)
	}
	return stateDoc{
		Version: stateVersion, ID: id, Secret: string(newSecret()),
		Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})),
	}, nil
}

// DefaultState returns the state folder of this user, by the XDG base directory specification.
func DefaultState() (string, error) {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "thru"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fault.Failf("name a folder with --state", "bus: finding the state folder: %w", err)
	}
	return filepath.Join(home, ".local", "state", "thru"), nil
}
