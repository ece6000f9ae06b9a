package bus

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/nats-io/nkeys"

	"thru/internal/fault"
)

// identity is who one is on the bus of a fleet: a key pair (nkeys, Ed25519) whose
// public key stands in subjects, and is proved at each login by a signature.
type identity struct {
	pub  string
	pair nkeys.KeyPair
}

// newIdentity is a fresh one, for an operator or a controller with a join string.
func newIdentity() (identity, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return identity{}, fmt.Errorf("bus: making a key: %w", err)
	}
	return identityOf(pair)
}

func identityOf(pair nkeys.KeyPair) (identity, error) {
	pub, err := pair.PublicKey()
	if err != nil {
		return identity{}, fmt.Errorf("bus: reading a key: %w", err)
	}
	if !validKey(pub) {
		return identity{}, fault.Usagef("make one of a user: nk -gen user", "bus: the nkey %s is not of a user", pub)
	}
	return identity{pub, pair}, nil
}

// HostID is the public nkey by which a fleet knows the agent of this state.
func (s *State) HostID() (string, error) {
	id, err := s.identity()
	return id.pub, err
}

// identity of the agent in a fleet. It is derived from the certificate's key
// (RFC 5869), as the secrets of privileges are: so it changes with a rotation.
func (s *State) identity() (identity, error) {
	seed, err := hkdf.Key(sha256.New, s.key, nil, "thru fleet identity", 32)
	if err != nil {
		return identity{}, fmt.Errorf("bus: deriving the agent's key: %w", err)
	}
	encoded, err := nkeys.EncodeSeed(nkeys.PrefixByteUser, seed)
	if err != nil {
		return identity{}, fmt.Errorf("bus: deriving the agent's key: %w", err)
	}
	pair, err := nkeys.FromSeed(encoded)
	if err != nil {
		return identity{}, fmt.Errorf("bus: deriving the agent's key: %w", err)
	}
	return identityOf(pair)
}

// readSeed reads a file with the seed of an nkey.
func readSeed(path string) (identity, error) {
	b, err := readPrivate(path)
	if err != nil {
		return identity{}, err
	}
	pair, err := nkeys.ParseDecoratedNKey(b)
	if err != nil {
		return identity{}, fault.Usagef("it holds one line that begins with SU, as `nk -gen user` prints", "bus: %s holds no nkey seed", path)
	}
	return identityOf(pair)
}

// readCreds reads a credentials file of NATS, and returns the key in it.
func readCreds(path string) (identity, []byte, error) {
	b, err := readPrivate(path)
	if err != nil {
		return identity{}, nil, err
	}
	if !bytes.Contains(b, []byte("BEGIN NATS USER JWT")) {
		return identity{}, nil, fault.Usagef("name the file that `nsc generate creds` made", "bus: %s holds no credentials of NATS", path)
	}
	pair, err := nkeys.ParseDecoratedUserNKey(b)
	if err != nil {
		return identity{}, nil, fault.Usagef("name the file that `nsc generate creds` made", "bus: %s holds no key of a user", path)
	}
	id, err := identityOf(pair)
	return id, b, err
}

// sign signs the nonce of a server.
func (i identity) sign(nonce []byte) ([]byte, error) { return i.pair.Sign(nonce) }

// signFor signs the nonce of the hub that has a certificate.
func (i identity) signFor(certSHA256 [32]byte) func(nonce []byte) ([]byte, error) {
	return func(nonce []byte) ([]byte, error) { return i.sign(boundTo(certSHA256, nonce)) }
}

// boundTo is what is signed at a hub: so whoever runs one cannot log in at another
// by what its own members sign.
func boundTo(certSHA256 [32]byte, nonce []byte) []byte {
	return append(append([]byte("thru hub login\n"), certSHA256[:]...), nonce...)
}

// verify tells whether a signature over the nonce of a hub is that of a public key.
func verify(key string, certSHA256 [32]byte, nonce []byte, signature string) error {
	pub, err := nkeys.FromPublicKey(key)
	if err != nil || !validKey(key) {
		return errors.New("bus: no public key of a user")
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(nonce) == 0 {
		return errors.New("bus: the signature cannot be read")
	}
	return pub.Verify(boundTo(certSHA256, nonce), sig)
}

// validKey tells whether a text is the public nkey of a user: safe in a subject.
func validKey(key string) bool { return validID(key) && nkeys.IsValidPublicUserKey(key) }
