package bus

import (
	"strings"
	"testing"
)

func TestSignature(t *testing.T) {
	dir := t.TempDir()
	state, err := OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := state.Signer()
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("956 Mb/s, accepted")
	sig, err := signer.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if x, err := again.Signer(); err != nil || x.Key != signer.Key {
		t.Errorf("the key of the same state: %v, %v, want %s", x, err, signer.Key)
	}
	other, err := NewState()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Signer()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text, key, sig string
		want                 bool
	}{
		{"as signed", string(text), signer.Key, sig, true},
		{"one byte changed", "957 Mb/s, accepted", signer.Key, sig, false},
		{"a byte more", string(text) + " ", signer.Key, sig, false},
		{"by another", string(text), foreign.Key, sig, false},
		{"no text", "", signer.Key, sig, false},
		{"another signature", string(text), signer.Key, strings.Repeat("A", len(sig)), false},
		{"a short one", string(text), signer.Key, sig[:20], false},
	} {
		if got, err := Verify([]byte(c.text), c.key, c.sig); got != c.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	for _, key := range []string{"", "A", "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4", "A\n"} {
		if ok, err := Verify(text, key, sig); ok || err == nil {
			t.Errorf("the key %q: %v, %v, want an error", key, ok, err)
		}
	}
	if err := state.Rotate(); err != nil {
		t.Fatal(err)
	}
	if x, err := state.Signer(); err != nil || x.Key == signer.Key {
		t.Errorf("after a rotation the key is the same (%v)", err)
	}
}
