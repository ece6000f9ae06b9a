package transfer

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

func TestPinned(t *testing.T) {
	raw := []byte("a key")
	sum := sha256.Sum256(raw)
	plain := hex.EncodeToString(sum[:])
	var colons []string
	for i := 0; i < len(plain); i += 2 {
		colons = append(colons, plain[i:i+2])
	}
	base := base64.StdEncoding.EncodeToString(sum[:])
	for _, pin := range []string{
		Fingerprint(raw), plain, strings.ToUpper(plain), strings.Join(colons, ":"), "SHA256:" + strings.Join(colons, ":"),
		"SHA256:" + strings.TrimRight(base, "="), base,
	} {
		if !Pinned(pin, raw) {
			t.Errorf("%q does not name it", pin)
		}
	}
	for _, pin := range []string{"", "sha256:", plain[:62], plain + "00", "sha256:" + base[:20], "*", Fingerprint([]byte("another"))} {
		if Pinned(pin, raw) {
			t.Errorf("%q names it", pin)
		}
	}
}

func FuzzPinned(f *testing.F) {
	f.Add("sha256:00", []byte("a"))
	f.Fuzz(func(t *testing.T, pin string, raw []byte) {
		if Pinned(pin, raw) && len(pin) < 43 {
			t.Errorf("%q is too short to name %q", pin, raw)
		}
	})
}
