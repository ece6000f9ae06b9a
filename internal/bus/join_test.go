package bus

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"thru/internal/fault"
)

const theSecret = "correct-horse-battery-staple"

func exampleJoin() Join {
	return Join{
		Name: "bee", Control: []string{"10.0.0.2:5200", "[fd00::2]:5200"}, Data: []string{"10.1.0.2"},
		CertSHA256: sha256.Sum256([]byte("certificate")), Secret: theSecret, Privilege: PrivilegeMeasure,
	}
}

func TestJoinRoundTrip(t *testing.T) {
	j := exampleJoin()
	s := j.String()
	for name, paste := range map[string]string{
		"as is": s, "with blanks": " \t" + s + "\r\n\n", "wrapped": s[:60] + "\n" + s[60:120] + "\r\n  " + s[120:],
	} {
		got, err := ParseJoin(paste)
		if err != nil || !reflect.DeepEqual(got, j) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// encodeJoin makes a join string of any document, with a valid checksum.
func encodeJoin(doc string) string {
	sum := sha256.Sum256([]byte(doc))
	return "thru1." + base64.RawURLEncoding.EncodeToString(append([]byte(doc), sum[:joinSumBytes]...))
}

func TestParseJoinErrors(t *testing.T) {
	s := exampleJoin().String()
	cert := base64.StdEncoding.EncodeToString(make([]byte, 32))
	form := `{"c":["%s"],"h":"` + cert + `","p":"%s"}`
	tests := []struct{ name, in, want string }{
		{"nothing", " \n", "is empty"},
		{"something else", "ssh-ed25519 AAAA", "does not begin with"},
		{"no payload", "thru1.", "cut off"},
		{"no number", "thru.abc", "does not begin with"},
		{"form 0", "thru0.abc", "does not begin with"},
		{"newer", "thru2." + s[6:], "newer thru"},
		{"much newer", "thru12.x", "newer thru"},
		{"cut by one", s[:len(s)-1], "cut off"},
		{"cut in half", s[:len(s)/2], "cut off"},
		{"mistyped", s[:50] + flip(s[50]) + s[51:], "mistyped"},
		{"two pasted", s + s, "mistyped"},
		{"long", "thru1." + strings.Repeat("A", 1<<20), "too long"},
		{"no JSON", encodeJoin("x"), "not valid"},
		{"empty document", encodeJoin("{}"), "no certificate"},
		{"short certificate", encodeJoin(`{"c":["h:1"],"h":"AAAA","p":"measure"}`), "no certificate"},
		{"no address", encodeJoin(`{"h":"` + cert + `","p":"measure"}`), "0 control"},
		{"bad address", encodeJoin(fmt.Sprintf(form, "host", "measure")), "HOST:PORT"},
		{"port 0", encodeJoin(fmt.Sprintf(form, "host:0", "measure")), "HOST:PORT"},
		{"escape sequence", encodeJoin(fmt.Sprintf(form, `h\u001b:1`, "measure")), "HOST:PORT"},
		{"privilege", encodeJoin(fmt.Sprintf(form, "host:1", "shell")), "privilege"},
	}
	for _, tt := range tests {
		_, err := ParseJoin(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) || fault.Hint(err) == "" || fault.Code(err) != fault.Usage {
			t.Errorf("%s: %v, hint %q", tt.name, err, fault.Hint(err))
		}
	}
	if _, err := ParseJoin(encodeJoin(fmt.Sprintf(form, "host:1", "measure"))); err != nil {
		t.Errorf("the form that the cases change: %v", err)
	}
}

func flip(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

func FuzzParseJoin(f *testing.F) {
	f.Add(exampleJoin().String())
	f.Add("thru2.x")
	f.Add(encodeJoin(`{"c":["h:1"]}`))
	f.Fuzz(func(t *testing.T, s string) {
		j, err := ParseJoin(s)
		if err != nil {
			return
		}
		again, err := ParseJoin(j.String())
		if err != nil || again.String() != j.String() {
			t.Errorf("%q does not survive: %v", s, err)
		}
	})
}

// FuzzJoinDoc fuzzes the document behind the checksum.
func FuzzJoinDoc(f *testing.F) {
	f.Add(`{"c":["10.0.0.2:5200"],"h":"AAAA","s":"x","p":"measure"}`)
	f.Fuzz(func(t *testing.T, doc string) {
		j, err := ParseJoin(encodeJoin(doc))
		if err != nil {
			return
		}
		for _, a := range append(append([]string{j.Name}, j.Control...), j.Data...) {
			if !plain(a) {
				t.Errorf("%q came through", a)
			}
		}
	})
}

// TestNothingPrintsSecrets formats values with secrets by every verb but %p (see Secret).
func TestNothingPrintsSecrets(t *testing.T) {
	state, err := NewState()
	if err != nil {
		t.Fatal(err)
	}
	state.Secret = theSecret
	j := exampleJoin()
	values := []any{Secret(theSecret), j, &j, state, DialConfig{Secret: theSecret}, &DialConfig{Secret: theSecret}, ServerConfig{State: state}, []Join{j}}
	hidden := []string{theSecret, fmt.Sprintf("%x", theSecret), fmt.Sprintf("%X", theSecret), j.String()}
	for _, v := range values {
		for _, verb := range strings.Split("v +v #v s q x X d U t", " ") {
			checkHidden(t, hidden, fmt.Sprintf("%%%s of %T", verb, v), fmt.Sprintf("%"+verb, v))
		}
	}
	for _, v := range []any{Secret(theSecret), j, &j, map[string]Secret{"x": theSecret}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		checkHidden(t, hidden, fmt.Sprintf("JSON of %T", v), string(b))
	}
	checkHidden(t, hidden, "Redacted", j.Redacted())
	if Secret("").String() != "" || Secret("x").String() != redacted {
		t.Error("an empty secret must differ from a hidden one")
	}
}

func checkHidden(t *testing.T, hidden []string, how, text string) {
	t.Helper()
	for _, h := range hidden {
		if strings.Contains(text, h) {
			t.Errorf("%s shows %s", how, text)
		}
	}
}

func TestKeyring(t *testing.T) {
	k := &Keyring{Dir: filepath.Join(t.TempDir(), "thru", "join")}
	j := exampleJoin()
	if names, err := k.List(); err != nil || len(names) != 0 {
		t.Error(names, err)
	}
	if err := k.Save("bee", j, false); err != nil {
		t.Fatal(err)
	}
	if err := k.Save("bee", j, false); err == nil || !strings.Contains(fault.Hint(err), "--replace") {
		t.Error("a name in use:", err)
	}
	other := j
	other.Control = []string{"other:5200"}
	if err := k.Save("bee", other, true); err != nil {
		t.Error(err)
	}
	if err := k.Save("ant.example-1_2", j, true); err != nil {
		t.Error(err)
	}
	if got, err := k.Load("bee"); err != nil || !reflect.DeepEqual(got, other) {
		t.Error(got, err)
	}
	if names, err := k.List(); err != nil || !reflect.DeepEqual(names, []string{"ant.example-1_2", "bee"}) {
		t.Error(names, err)
	}
	if got, ok, _ := k.Find("[FD00:0::2]:5200"); !ok || !reflect.DeepEqual(got, j) {
		t.Error(got, ok)
	}
	if _, ok, _ := k.Find("10.0.0.2:5201"); ok {
		t.Error("another port was found")
	}
	if err := k.Remove("bee"); err != nil {
		t.Error(err)
	}
	if _, err := k.Load("bee"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := k.Remove("bee"); !errors.Is(err, fs.ErrNotExist) || fault.Hint(err) == "" {
		t.Error(err)
	}
}

func TestKeyringNames(t *testing.T) {
	root := t.TempDir()
	k := &Keyring{Dir: filepath.Join(root, "join")}
	outside := filepath.Join(root, "victim")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../victim", "a/b", `a\b`, "local", "LOCAL", "known_hosts", "Known_Hosts", ".hidden", "-x",
		"a b", "a\n", "é", "a.", strings.Repeat("a", 65), "host:1", "/etc/passwd"} {
		if err := k.Save(name, exampleJoin(), true); fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("saving %q: %v", name, err)
		}
		if _, err := k.Load(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("loading %q: %v", name, err)
		}
		if err := k.Remove(name); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestCheckPin(t *testing.T) {
	k := &Keyring{Dir: filepath.Join(t.TempDir(), "join")}
	one, two := sha256.Sum256([]byte("1")), sha256.Sum256([]byte("2"))
	steps := []struct {
		addr    string
		sum     [32]byte
		first   bool
		changed bool
	}{
		{"bee:5200", one, true, false},
		{"bee:5200", one, false, false},
		{"BEE:5200", one, false, false},
		{"bee:5200", two, false, true},
		{"bee:5201", two, true, false},
		{"[fd00::1]:5200", one, true, false},
		{"[fd00:0::1]:5200", two, false, true},
		{"bee:5200", one, false, false}, // a rejected one has replaced nothing
	}
	for i, s := range steps {
		first, err := k.CheckPin(s.addr, s.sum)
		if first != s.first || errors.Is(err, ErrCertificate) != s.changed || (err != nil) != s.changed {
			t.Errorf("step %d: first %v, %v", i, first, err)
		}
		if s.changed && !strings.Contains(fault.Hint(err), filepath.Join(k.Dir, knownFile)) {
			t.Errorf("step %d: hint %q names no file", i, fault.Hint(err))
		}
	}
	for _, addr := range []string{"a b:1", "x", "x\ny:1", ":1"} {
		if _, err := k.CheckPin(addr, one); err == nil {
			t.Errorf("%q was kept", addr)
		}
	}
	if names, err := k.List(); err != nil || len(names) != 0 {
		t.Error("the list of certificates counts as a name:", names, err)
	}
}

func TestPrivateFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no mode bits on Windows")
	}
	k := &Keyring{Dir: filepath.Join(t.TempDir(), "join")}
	if err := k.Save("bee", exampleJoin(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := k.CheckPin("bee:1", [32]byte{}); err != nil {
		t.Fatal(err)
	}
	wantMode(t, k.Dir, 0o700)
	wantMode(t, filepath.Join(k.Dir, "bee"), 0o600)
	wantMode(t, filepath.Join(k.Dir, knownFile), 0o600)
	os.Chmod(filepath.Join(k.Dir, "bee"), 0o640)
	if _, err := k.Load("bee"); err == nil || !strings.Contains(fault.Hint(err), "chmod 600") {
		t.Errorf("a file that others can read: %v", err)
	}
	os.Chmod(k.Dir, 0o770)
	if err := k.Save("ant", exampleJoin(), false); err == nil || !strings.Contains(fault.Hint(err), "chmod 700") {
		t.Errorf("a folder that others can change: %v", err)
	}
}

func wantMode(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s: %v %v", path, info, err)
	}
}
