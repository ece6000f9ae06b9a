package bus

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/nats-io/nkeys"

	"thru/internal/fault"
)

// Signer signs what this host hands over, with the agent's key: Ed25519 (RFC 8032),
// its public half written as an nkey of an account ("A...").
type Signer struct {
	Key  string // public
	pair nkeys.KeyPair
}

// Signer returns the one of this state. It is derived from the certificate's key
// (RFC 5869), as the agent's identity in a fleet is: so it changes with a rotation,
// and no other key can be had from it.
func (s *State) Signer() (*Signer, error) {
	seed, err := hkdf.Key(sha256.New, s.key, nil, "thru report signature", 32)
	if err != nil {
		return nil, fmt.Errorf("bus: deriving the signing key: %w", err)
	}
	encoded, err := nkeys.EncodeSeed(nkeys.PrefixByteAccount, seed)
	if err != nil {
		return nil, fmt.Errorf("bus: deriving the signing key: %w", err)
	}
	pair, err := nkeys.FromSeed(encoded)
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

// signed is what the signature is over: the text's SHA-256 behind words that no
// other use of such a key begins with.
func signed(text []byte) []byte {
	sum := sha256.Sum256(text)
	return append([]byte("thru report signature 1\n"), sum[:]...)
}

// ValidSigner tells whether a word is the public key of a Signer.
func ValidSigner(key string) bool { return nkeys.IsValidPublicAccountKey(key) }

// Verify tells whether a signature is that of a text by a key. The error is of a
// key or a signature that cannot be one.
func Verify(text []byte, key, signature string) (bool, error) {
	if !ValidSigner(key) {
		return false, fault.Usagef("a key is one word that begins with A, as thru report --my-key prints it", "bus: %.80q is no signing key", key)
	}
	sig, err := base64.RawURLEncoding.Strict().DecodeString(signature) // one signature has one form
	if err != nil {
		return false, fault.Failf("the file was changed", "bus: reading the signature: %w", err)
	}
	pair, err := nkeys.FromPublicKey(key)
	if err != nil {
		return false, fmt.Errorf("bus: reading the key %s: %w", key, err)
	}
	return pair.Verify(signed(text), sig) == nil, nil
}
