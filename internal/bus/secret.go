package bus

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"fmt"
)

// redacted replaces a secret in any output.
const redacted = "(redacted)"

// Secret admits a client. Formatting it, alone or in an exported field, and encoding
// it as JSON yield "(redacted)"; only Join.String and the files of State and Keyring
// have the value. A string type cannot guard against %p, which go vet rejects, a key
// of a map in JSON, and an unexported field.
type Secret string

// Format implements fmt.Formatter, for verbs that Stringer does not cover (%d).
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// String implements fmt.Stringer, redacted.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString implements fmt.GoStringer, redacted.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText implements encoding.TextMarshaler, redacted; JSON uses it too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON implements json.Marshaler, redacted.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(s.GoString()), nil }

// matches compares in constant time; an empty secret matches nothing.
func (s Secret) matches(given string) bool {
	return s != "" && subtle.ConstantTimeCompare([]byte(s), []byte(given)) == 1
}

// newSecret returns 256 random bits.
func newSecret() Secret {
	b := make([]byte, 32)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return Secret(base64.RawURLEncoding.EncodeToString(b))
}

// newID returns 130 random bits that are safe in a subject: 26 characters of
// base32 (RFC 4648, section 6).
func newID() string {
	b := make([]byte, 17)
	rand.Read(b)
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)[:26]
}

// validID reports whether a client id is long enough to be unguessable and free of the
// dots and wildcards of subjects.
func validID(id string) bool {
	if len(id) < 22 || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}
