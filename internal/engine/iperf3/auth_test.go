package iperf3

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
)

// keys returns a new pair, in PEM.
func keys(t testing.TB) (private, public []byte) {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)}),
		pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})
}

// userLineOf returns a line of the file of users.
func userLineOf(name, password string) string {
	h := sha256.Sum256([]byte("{" + name + "}" + password))
	return name + "," + hex.EncodeToString(h[:]) + "\n"
}

func TestAuthentication(t *testing.T) {
	private, public := keys(t)
	_, other := keys(t)
	users, err := ParseUsers(strings.NewReader("# who may\n\n" + userLineOf("mario", "rossi") + userLineOf("luigi", "bianchi with spaces")))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	good := engine.Login{User: "mario", Password: "rossi", PublicKey: public}
	for name, c := range map[string]struct {
		login func(*engine.Login)
		pkcs1 bool // at the server
		at    time.Duration
		user  string
		says  string
	}{
		"right":           {user: "mario"},
		"right, padded":   {login: func(l *engine.Login) { l.PKCS1 = true }, pkcs1: true, user: "mario"},
		"spaces":          {login: func(l *engine.Login) { l.User, l.Password = "luigi", "bianchi with spaces" }, user: "luigi"},
		"a bit late":      {at: 10 * time.Second, user: "mario"},
		"a bit early":     {at: -10 * time.Second, user: "mario"},
		"expired":         {at: 11 * time.Second, says: "clock"},
		"ahead":           {at: -time.Hour, says: "clock"},
		"wrong password":  {login: func(l *engine.Login) { l.Password = "verdi" }, says: "unknown user"},
		"another's":       {login: func(l *engine.Login) { l.User = "luigi" }, says: "unknown user"},
		"unknown":         {login: func(l *engine.Login) { l.User = "peach" }, says: "unknown user"},
		"other key":       {login: func(l *engine.Login) { l.PublicKey = other }, says: "another key"},
		"other padding":   {login: func(l *engine.Login) { l.PKCS1 = true }, says: "padding"},
		"nobody":          {login: func(l *engine.Login) { l.User = "" }, says: "no user"},
		"a line too many": {login: func(l *engine.Login) { l.Password = "rossi\nts:   1" }, says: "lacks user"},
	} {
		login := good
		if c.login != nil {
			c.login(&login)
		}
		token, err := newToken(login, now)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d, err := NewServer(ServerConfig{Users: users, PrivateKey: private, PKCS1: c.pkcs1})
		if err != nil {
			t.Fatal(err)
		}
		user, err := d.gate.admit(token, now.Add(c.at))
		if code, _ := codeOf(err); user != c.user || (err != nil) != (c.says != "") || err != nil && (code != codeAuth || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %q, %v", name, user, err)
		}
	}
}

func TestBadKeysAndUsers(t *testing.T) {
	private, public := keys(t)
	for name, key := range map[string][]byte{"text": []byte("key"), "the other one": public} {
		if _, err := NewServer(ServerConfig{PrivateKey: key}); err == nil {
			t.Errorf("%s was taken for a private key", name)
		}
	}
	for name, key := range map[string][]byte{"text": []byte("key"), "the other one": private} {
		if _, err := newToken(engine.Login{User: "a", PublicKey: key}, time.Now()); err == nil {
			t.Errorf("%s was taken for a public key", name)
		}
	}
	if _, err := newToken(engine.Login{User: "a", Password: strings.Repeat("x", 300), PublicKey: public}, time.Now()); err == nil {
		t.Error("a password that does not fit the key was accepted")
	}
	for _, file := range []string{"", "mario\n", "mario,1234\n", "mario," + strings.Repeat("z", 64)} {
		if _, err := ParseUsers(strings.NewReader(file)); err == nil {
			t.Errorf("%q was taken for a file of users", file)
		}
	}
}

// FuzzToken: only the right token authenticates.
func FuzzToken(f *testing.F) {
	users, err := ParseUsers(strings.NewReader(userLineOf("mario", "rossi")))
	if err != nil {
		f.Fatal(err)
	}
	private, _ := keys(f)
	key, err := privateKey(private)
	if err != nil {
		f.Fatal(err)
	}
	g := gate{users: users, key: key}
	now := time.Unix(1_700_000_000, 0)
	f.Add("user: mario\npwd:  rossi\nts:   1700000000")
	f.Add("user: mario\npwd:  rossi\nts:   -1")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := g.admit(s, now); err == nil {
			t.Errorf("%q lets in", s)
		}
		name, password, at, err := readToken(s)
		if err == nil && (strings.Contains(name, "\n"+passLine) || at.Unix() < 0) {
			t.Errorf("%q gives %q, %q, %v", s, name, password, at)
		}
	})
}

// FuzzUsers: any file is a list of users or an error.
func FuzzUsers(f *testing.F) {
	f.Add(userLineOf("mario", "rossi") + "# x,\r\n,\n")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseUsers(strings.NewReader(s))
		if err == nil && len(u.list) == 0 {
			t.Errorf("%q has nobody, and that is no error", s)
		}
	})
}
