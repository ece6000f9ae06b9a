package bus

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nats-io/nkeys"

	"thru/internal/fault"
)

// identity is the identity on the bus of a fleet: a key pair (nkeys, Ed25519) whose
// public key is part of subjects, and is proved at each login by a signature.
type identity struct {
	pub  string
	pair nkeys.KeyPair
}

// newIdentity returns a new identity, for an operator or a controller with a join string.
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
		return identity{}, fault.Usagef("make a user key: nk -gen user", "bus: the nkey %s is not a user key", pub)
	}
	return identity{pub, pair}, nil
}

// identity returns the identity of the agent in a fleet. It is derived from the
// certificate's key (RFC 5869), as the secrets of privileges are: it changes with a rotation.
func (s *State) identity() (identity, error) {
	pair, err := s.derive("thru fleet identity", nkeys.PrefixByteUser)
	if err != nil {
		return identity{}, fmt.Errorf("bus: deriving the agent's key: %w", err)
	}
	return identityOf(pair)
}

// derive derives a key pair from the certificate's key (RFC 5869).
func (s *State) derive(info string, prefix nkeys.PrefixByte) (nkeys.KeyPair, error) {
	seed, err := hkdf.Key(sha256.New, s.key, nil, info, 32)
	if err != nil {
		return nil, err
	}
	encoded, err := nkeys.EncodeSeed(prefix, seed)
	if err != nil {
		return nil, err
	}
	return nkeys.FromSeed(encoded)
}

// readSeed reads a file with the seed of an nkey.
func readSeed(path string) (identity, error) {
	b, err := readPrivate(path)
	if err != nil {
		return identity{}, err
	}
	pair, err := nkeys.ParseDecoratedNKey(b)
	if err != nil {
		return identity{}, fault.Usagef("make the file with `nk -gen user`: one line that begins with SU", "bus: %s holds no nkey seed", path)
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
		return identity{}, nil, fault.Usagef("name the file that `nsc generate creds` made", "bus: %s holds no NATS credentials", path)
	}
	pair, err := nkeys.ParseDecoratedUserNKey(b)
	if err != nil {
		return identity{}, nil, fault.Usagef("name the file that `nsc generate creds` made", "bus: %s holds no user key", path)
	}
	id, err := identityOf(pair)
	return id, b, err
}

// sign signs the nonce of a server.
func (i identity) sign(nonce []byte) ([]byte, error) { return i.pair.Sign(nonce) }

// signFor returns a function that signs the nonce of the hub with that certificate.
func (i identity) signFor(certSHA256 [32]byte) func(nonce []byte) ([]byte, error) {
	return func(nonce []byte) ([]byte, error) { return i.sign(boundTo(certSHA256, nonce)) }
}

// boundTo returns the bytes to sign at a hub: they contain its certificate, so that
// the operator of one hub cannot log in at another with its members' signatures.
func boundTo(certSHA256 [32]byte, nonce []byte) []byte {
	return append(append([]byte("thru hub login\n"), certSHA256[:]...), nonce...)
}

// verify returns an error unless the signature over the nonce of a hub is that of the key.
func verify(key string, certSHA256 [32]byte, nonce []byte, signature string) error {
	pub, err := nkeys.FromPublicKey(key)
	if err != nil || !validKey(key) {
		return errors.New("bus: not the public key of a user")
	}
	sig, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || len(nonce) == 0 {
		return errors.New("bus: the signature cannot be read")
	}
	return pub.Verify(boundTo(certSHA256, nonce), sig)
}

// validKey reports whether a text is the public nkey of a user: safe in a subject.
func validKey(key string) bool { return validID(key) && nkeys.IsValidPublicUserKey(key) }

// KeyFile returns the public nkey of a seed file for NATSConfig.Nkey, and creates
// the file (mode 0600) if there is none.
func KeyFile(path string) (public string, err error) {
	id, err := readSeed(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return id.pub, err
	}
	if id, err = newIdentity(); err != nil {
		return "", err
	}
	seed, err := id.pair.Seed()
	if err != nil {
		return "", fmt.Errorf("bus: making a key: %w", err)
	}
	return id.pub, WritePrivate(path, append(seed, '\n'), false)
}

// Signer signs documents of this host with the agent's key: Ed25519 (RFC 8032),
// its public half written as an nkey of an account ("A...").
type Signer struct {
	Key  string // public
	pair nkeys.KeyPair
}

// Signer returns the signer of this state. Its key is derived from the certificate's
// key (RFC 5869), as the agent's identity in a fleet is: it changes with a rotation,
// and no other key can be derived from it.
func (s *State) Signer() (*Signer, error) {
	pair, err := s.derive("thru report signature", nkeys.PrefixByteAccount)
	if err != nil {
		return nil, fmt.Errorf("bus: deriving the signing key: %w", err)
	}
	pub, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("bus: deriving the signing key: %w", err)
	}
	return &Signer{Key: pub, pair: pair}, nil
}

// Sign returns the signature of a text, in base64url.
func (s *Signer) Sign(text []byte) (string, error) {
	sig, err := s.pair.Sign(signed(text))
	if err != nil {
		return "", fmt.Errorf("bus: signing: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sig), nil
}

// signed returns the bytes that the signature covers: the text's SHA-256 after a
// prefix that no other use of such a key has.
func signed(text []byte) []byte {
	sum := sha256.Sum256(text)
	return append([]byte("thru report signature 1\n"), sum[:]...)
}

// ValidSigner reports whether a word is the public key of a Signer.
func ValidSigner(key string) bool { return nkeys.IsValidPublicAccountKey(key) }

// Verify reports whether a signature of a text is by a key. The error is that of a
// malformed key or signature.
func Verify(text []byte, key, signature string) (bool, error) {
	if !ValidSigner(key) {
		return false, fault.Usagef("give one word that begins with A, as thru report --my-key prints it", "bus: %.80q is not a signing key", key)
	}
	sig, err := base64.RawURLEncoding.Strict().DecodeString(signature) // strict: one signature has one encoding
	if err != nil {
		return false, fault.Failf("get the original file: this one was changed", "bus: reading the signature: %w", err)
	}
	pair, err := nkeys.FromPublicKey(key)
	if err != nil {
		return false, fmt.Errorf("bus: reading the key %s: %w", key, err)
	}
	return pair.Verify(signed(text), sig) == nil, nil
}
