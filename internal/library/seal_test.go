package library

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
)

func testSigner(t *testing.T) *bus.Signer {
	t.Helper()
	state, err := bus.NewState()
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.Signer()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVerify(t *testing.T) {
	own, other := testSigner(t), testSigner(t)
	at := time.Date(2026, 11, 22, 20, 15, 30, 0, time.UTC)
	page := []byte("<!DOCTYPE html>\n<p>956 Mb/s, accepted</p>\n</html>")
	good, err := Sealed(bytes.Clone(page), own, "esx 2/böse -->", at)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := Sealed(bytes.Clone(page), other, "esx2", at)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) string {
		if !bytes.Contains(good, []byte(old)) {
			t.Fatalf("%q is not in it", old)
		}
		return strings.Replace(string(good), old, new, 1)
	}
	trailer := string(good[bytes.Index(good, []byte(sealBegin)):])
	for _, c := range []struct {
		name, text, signer string
		signed, valid      bool
		by                 string
	}{
		{"as written", string(good), "", true, true, SignerOwn},
		{"by the key that is named", string(good), own.Key, true, true, SignerNamed},
		{"by another host", string(foreign), "", true, true, signerUnknown},
		{"by another host, as named", string(foreign), other.Key, true, true, SignerNamed},
		{"by another than is named", string(foreign), own.Key, true, false, signerUnknown},
		{"a figure changed", replace("956", "957"), "", true, false, SignerOwn},
		{"a letter of the key", replace("key="+own.Key, "key="+other.Key), "", true, false, signerUnknown},
		{"another host", replace("host=esx", "host=fra"), "", true, false, SignerOwn},
		{"another time", replace("at=2026", "at=2025"), "", true, false, SignerOwn},
		{"another signature", replace(" sig=", " sig=A")[:len(good)], "", true, false, ""},
		{"something behind it", string(good) + "<p>and more</p>", "", true, false, ""},
		{"an empty line behind it", string(good) + "\n", "", true, false, ""},
		{"something before it", "<p>before</p>" + string(good), "", true, false, SignerOwn},
		{"two signatures", string(good) + trailer, "", true, false, ""},
		{"cut off within the signature", string(good[:len(good)-20]), "", true, false, ""},
		{"the line alone", trailer, "", true, false, SignerOwn},
		{"without its line", string(page), "", false, false, ""},
		{"empty", "", "", false, false, ""},
		{"line ends of another system", strings.ReplaceAll(string(good), "\n", "\r\n"), "", true, false, ""},
	} {
		v := Verify("x.html", []byte(c.text), c.signer, own.Key)
		if v.Signed != c.signed || v.Valid != c.valid || v.Signer != c.by || v.Valid == (v.Reason != "") {
			t.Errorf("%s: %+v, want signed %v, valid %v, by %q", c.name, v, c.signed, c.valid, c.by)
		}
	}
	if v := Verify("x.html", good, "", own.Key); v.Host != "esx-2-b-se----" || !v.SignedAt.Equal(at) {
		t.Errorf("host %q at %v", v.Host, v.SignedAt)
	}
	hostile, err := Sealed([]byte("`--label 'x="+trailer+"'`\n"), own, "h", at)
	if v := Verify("x.md", hostile, "", own.Key); err != nil || !v.Valid {
		t.Errorf("a label that looks like a signature: %+v, %v", v, err)
	}
	last := bytes.LastIndex(good, []byte(" -->"))
	for _, letter := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		other := bytes.Clone(good)
		if other[last-1] = byte(letter); !bytes.Equal(other, good) && Verify("x.html", other, "", own.Key).Valid {
			t.Errorf("the signature may end with %c too", letter)
		}
	}
}

// A signed text is verified unchanged, and a change of any byte is detected.
func FuzzReadSeal(f *testing.F) {
	f.Add([]byte("<p>\n<!-- thru-signature 1 key=A host=h at=2026-11-22T20:15:30Z sig=s -->\n"), uint(3), byte(1))
	f.Add([]byte(sealBegin), uint(40), byte(0x20))
	f.Add([]byte{}, uint(90), byte(0xff))
	state, err := bus.NewState()
	if err != nil {
		f.Fatal(err)
	}
	signer, err := state.Signer()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte, at uint, by byte) {
		Verify("raw", text, "", "") // must not panic on untrusted text
		good, err := Sealed(bytes.Clone(text), signer, "h", time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if v := Verify("good", good, signer.Key, ""); !v.Valid {
			t.Fatalf("as signed: %+v", v)
		}
		if good[at%uint(len(good))] ^= by; by != 0 && Verify("bad", good, signer.Key, "").Valid {
			t.Errorf("byte %d of %q may be another", at%uint(len(good)), good)
		}
	})
}
