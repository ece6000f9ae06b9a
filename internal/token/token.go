// Package token is how the two ends of a connection for data know each other.
// The end that listens makes a token for one flow, the control plane tells it to
// the end that dials, and that one sends no traffic to where nobody proves to
// hold it (docs/data.md).
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
	label     = "thru answers\n" // before what was said, so that no answer is an echo
)

// The kinds of greeting: of a TCP connection, of a UDP stream, of a probe of the
// path, of a file.
const (
	Data     = 'd'
	Datagram = 'u'
	Path     = 'p'
	File     = 'f'
)

// Token is what both ends of one flow hold.
type Token struct {
	key    []byte
	proves bool
}

// New returns a token: 32 random bytes in hexadecimal. Capitals say that who
// made it proves to hold it. An older thru reads them as it reads small letters,
// asks without a nonce, and gets the second half of the token.
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

// Proves tells whether the end that made a token answers with a proof. If not, it
// answers with fixed bytes, which whoever tells the token can choose to be those
// that an innocent program says.
func Proves(s string) bool { return s == strings.ToUpper(s) }

// Greeting is what the dialling end says, and the answer that it wants. Where the
// other end can prove it, that depends on a nonce.
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
		return fmt.Errorf("no token came back: %w", err)
	}
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return errors.New("another program answers there: the token did not come back")
	}
	return nil
}

// Hear is the listening end's side: it reads a greeting of either version, with
// so many bytes more, and returns those and the answer.
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

// proof is HMAC-SHA256 of what was said, behind the label.
func (t Token) proof(hello []byte) []byte {
	m := hmac.New(sha256.New, t.key)
	m.Write([]byte(label))
	m.Write(hello)
	return m.Sum(nil)
}

// magic begins a greeting.
func magic(kind, version byte) []byte { return []byte{'t', 'h', 'r', 'u', '-', kind, version, '\n'} }
