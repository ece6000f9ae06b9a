// Package token authenticates the two ends of a data connection to each other. The listening end makes a token for one flow, and the control plane passes it
// to the dialling end. The dialling end sends no traffic to a peer that does not prove that it holds the token (docs/data.md).
package token

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	half      = 16
	nonceSize = 16
	magicSize = 8
	label     = "thru answers\n" // prefix of the proven data, so that no answer is an echo
)

// Kinds of greeting: of a TCP connection, of a UDP stream, of a probe of the path, of a file.
const (
	Data     = 'd'
	Datagram = 'u'
	Path     = 'p'
	File     = 'f'
)

// Token is the shared secret of both ends of one flow.
type Token struct {
	key    []byte
	proves bool
}

// New returns a token: 32 random bytes in hexadecimal. Capital letters mean that its maker proves that it holds the token. An older thru does not distinguish
// capitals, sends no nonce, and gets the second half of the token.
func New() string {
	var b [2 * half]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return strings.ToUpper(hex.EncodeToString(b[:]))
}

// Parse reads a token.
func Parse(s string) (Token, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 2*half {
		return Token{}, errors.New("token: reading: it is not 32 bytes in hexadecimal")
	}
	return Token{b, Proves(s)}, nil
}

// Proves reports whether the end that made a token answers with a proof. If not, it answers with fixed bytes. Whoever distributes the token can choose these
// to match the output of an unrelated program.
func Proves(s string) bool { return s == strings.ToUpper(s) }

// Greeting returns the dialling end's greeting, and the answer that it expects. Where the other end can prove that it holds the token, the answer depends on a
// nonce.
func (t Token) Greeting(kind byte, more []byte) (hello, want []byte) {
	version := byte('1')
	if t.proves {
		version = '2'
	}
	hello = append(magic(kind, version), t.key[:half]...)
	hello = append(hello, more...)
	if !t.proves {
		return hello, t.key[half:]
	}
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	hello = append(hello, nonce[:]...)
	return hello, t.proof(hello)
}

// Introduce is the dialling end's side of a connection.
func (t Token) Introduce(c io.ReadWriter, kind byte, more []byte) error {
	hello, want := t.Greeting(kind, more)
	if _, err := c.Write(hello); err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil {
		return fmt.Errorf("the peer returned no token: %w", err)
	}
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return errors.New("another program answers there: it did not return the token")
	}
	return nil
}

// Hear is the listening end's side: it reads a greeting of either version, with size extra bytes, and returns those and the answer.
func (t Token) Hear(r io.Reader, kind byte, size int) (more, answer []byte, err error) {
	hello := make([]byte, magicSize+half+size, magicSize+half+size+nonceSize)
	if _, err := io.ReadFull(r, hello); err != nil {
		return nil, nil, err
	}
	old, proves := bytes.HasPrefix(hello, magic(kind, '1')), bytes.HasPrefix(hello, magic(kind, '2'))
	if !old && !proves || subtle.ConstantTimeCompare(hello[magicSize:magicSize+half], t.key[:half]) != 1 {
		return nil, nil, errors.New("wrong token")
	}
	more = bytes.Clone(hello[magicSize+half:])
	if old {
		return more, t.key[half:], nil
	}
	hello = hello[:cap(hello)]
	if _, err := io.ReadFull(r, hello[len(hello)-nonceSize:]); err != nil {
		return nil, nil, err
	}
	return more, t.proof(hello), nil
}

// proof returns the HMAC-SHA256 of the label and the greeting.
func (t Token) proof(hello []byte) []byte {
	m := hmac.New(sha256.New, t.key)
	m.Write([]byte(label))
	m.Write(hello)
	return m.Sum(nil)
}

// magic returns the first bytes of a greeting.
func magic(kind, version byte) []byte { return []byte{'t', 'h', 'r', 'u', '-', kind, version, '\n'} }
