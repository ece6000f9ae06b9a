package library

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
	"thru/internal/unit"
)

// sealBegin is the beginning of the last line of a signed file. It occurs nowhere else
// in it.
const sealBegin = "<!-- thru-signature "

// sealLine is the last line of a signed file. The signature covers all before " sig=".
var sealLine = unit.Pattern(`^<!-- thru-signature 1 key=([A-Z2-7]{56}) host=([A-Za-z0-9._-]{1,253}) at=([0-9TZ:-]{20}) sig=([A-Za-z0-9_-]{86}) -->\n$`)

// seal holds who signed a file, and when by that host's clock.
type seal struct {
	Key  string
	Host string
	At   time.Time
	sig  string
	over []byte
}

// Sealed returns the text with a signature line.
func Sealed(text []byte, s *bus.Signer, host string, at time.Time) ([]byte, error) {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	// HTML escapes <; in Markdown it stays as it is.
	text = bytes.ReplaceAll(text, []byte(sealBegin), []byte("<! -- thru-signature "))
	over := fmt.Appendf(text, "%s1 key=%s host=%s at=%s", sealBegin, s.Key, signedName(host), at.UTC().Format(time.RFC3339))
	sig, err := s.Sign(over)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(over, " sig=%s -->\n", sig), nil
}

// signedName returns a host's name in the form that sealLine accepts.
func signedName(host string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9._-]`).ReplaceAllString(host, "-")
	return name[:min(len(name), 253)]
}

// readSeal parses the signature line of a file; nil where it has none. The error is
// that of a line that Sealed cannot have written.
func readSeal(text []byte) (*seal, error) {
	i := bytes.Index(text, []byte(sealBegin))
	if i < 0 {
		return nil, nil
	}
	m := sealLine().FindSubmatch(text[i:])
	if m == nil || i > 0 && text[i-1] != '\n' {
		return nil, errors.New("the signature is not the last line, or was changed")
	}
	at, err := time.Parse(time.RFC3339, string(m[3]))
	if err != nil {
		return nil, errors.New("the time of the signature was changed")
	}
	return &seal{Key: string(m[1]), Host: string(m[2]), At: at, sig: string(m[4]), over: text[:bytes.LastIndex(text, []byte(" sig="))]}, nil
}

// Verified is the result of --verify, as --json prints it.
type Verified struct {
	File     string         `json:"file"`
	Signed   bool           `json:"signed"`
	Valid    bool           `json:"valid"` // unchanged since it was signed, and by --signer where that is given
	Key      string         `json:"key,omitempty"`
	Host     string         `json:"host,omitempty"`
	SignedAt *time.Time     `json:"signed_at,omitempty"` // by the signer's clock
	Signer   string         `json:"signer,omitempty"`    // SignerOwn, SignerNamed or signerUnknown
	Reason   string         `json:"reason,omitempty"`
	Error    *measure.Error `json:"error"`
}

// Values of Verified.Signer: who signed, as far as this host knows.
const (
	SignerOwn     = "this host"
	SignerNamed   = "as named"
	signerUnknown = "unknown"
)

// Verify checks the signature of a file, and its key against a given one.
func Verify(file string, text []byte, signer, own string) Verified {
	v := Verified{File: file}
	s, err := readSeal(text)
	if err != nil {
		v.Signed, v.Reason = true, err.Error()
		return v
	}
	if s == nil {
		v.Reason = "it is not signed"
		return v
	}
	v.Signed, v.Key, v.Host, v.SignedAt = true, s.Key, s.Host, &s.At
	ok, err := bus.Verify(s.over, s.Key, s.sig)
	switch {
	case err != nil:
		v.Reason = err.Error()
	case !ok:
		v.Reason = "it was changed after it was signed"
	case signer != "" && signer != s.Key:
		v.Reason = "it was signed with another key than the given one"
	default:
		v.Valid = true
	}
	switch s.Key {
	case signer:
		v.Signer = SignerNamed
	case own:
		v.Signer = SignerOwn
	default:
		v.Signer = signerUnknown
	}
	return v
}

// Signer returns the signing key of this host's agent. It is created on first use, as
// the agent's identity is.
func Signer() (*bus.Signer, error) {
	dir, err := bus.DefaultState()
	if err != nil {
		return nil, err
	}
	state, err := bus.OpenState(dir)
	if err != nil {
		return nil, err
	}
	return state.Signer()
}
