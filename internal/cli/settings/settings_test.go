package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thru/internal/fault"
)

// write writes a file of settings and returns its path.
func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOrder: variables come before files, the last file before the first, and a command's key before that of all.
func TestOrder(t *testing.T) {
	host := write(t, "store: a\ntest:\n  store: b\n  time: 1\n", 0o644)
	user := write(t, "store: c\n", 0o644)
	s, err := Load([]string{host, user, filepath.Join(t.TempDir(), "none")}, []string{"THRU_TEST_STORE=d", "THRU_STORE=e", "THRU_TEST_TIME=", "HOME=x"})
	if err != nil {
		t.Fatal(err)
	}
	for keys, want := range map[string]string{
		"test.store store": "d $THRU_TEST_STORE, e $THRU_STORE, c " + user + ":1, b " + host + ":3, a " + host + ":1",
		"store":            "e $THRU_STORE, c " + user + ":1, a " + host + ":1",
		"test.time":        "1 " + host + ":4", // an empty variable sets nothing
		"serve.data-ports": "",
	} {
		var got []string
		for _, x := range s.Find(strings.Fields(keys)...) {
			got = append(got, x.Text()+" "+x.Source.String())
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s:\n got %s\nwant %s", keys, strings.Join(got, ", "), want)
		}
	}
	if f := s.Files; len(f) != 3 || !f[0].Found || !f[1].Found || f[2].Found {
		t.Errorf("files %+v", f)
	}
}

// TestRefused: what is wrong with a file is an error with its position and a hint; the other files count.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
		hint string
	}{
		"no YAML":         {"a: [1\n", 0o600, ":1:", "brackets"},
		"no mapping":      {"just words\n", 0o600, ":1:1: the settings file is \"just words\", not a mapping", "KEY: VALUE"},
		"no value":        {"a:\n  b:\nc: 1\n", 0o600, ":2:5: b has no value", "leave the key out"},
		"a list of lists": {"a: [[1]]\n", 0o600, "a has no value", ""},
		"twice":           {"a: 1\na: 2\n", 0o600, `:2:1: "a" exists twice`, "remove one"},
		"a join string":   {"serve:\n  controller: thru1." + strings.Repeat("x", 40) + "\n", 0o600, ":2:3: serve.controller is a secret", "thru join NAME"},
		"of all users":    {"a: 1\n", 0o666, "can be changed by other users (mode 0666)", "chmod go-w"},
		"not text":        {"a: \x00\n", 0o600, ":1:1: this is not a text file", "UTF-8"},
	} {
		path, good := write(t, c.text, c.mode), write(t, "good: 1\n", 0o600)
		s, err := Load([]string{path, good}, nil)
		if err == nil || fault.Code(err) != fault.Usage || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) || !strings.Contains(fault.Hint(err), c.hint) {
			t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
		}
		if err != nil && strings.Contains(err.Error(), "xxxx") {
			t.Errorf("%s: the secret is in %v", name, err)
		}
		if len(s.Find("good")) != 1 {
			t.Errorf("%s: the other file is not read", name)
		}
	}
	if _, err := Load([]string{t.TempDir()}, nil); err == nil {
		t.Error("a folder is no error")
	}
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		if s, err := Load([]string{write(t, empty, 0o600)}, nil); err != nil || len(s.Written) > 0 {
			t.Errorf("%q: %v, %v", empty, s.Written, err)
		}
	}
}

// TestOwner: root does not read what another user has written.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it gives a file to another user")
	}
	path := write(t, "a: 1\n", 0o600)
	if err := os.Chown(path, 65534, -1); err != nil {
		t.Skip("this system keeps the owner: ", err)
	}
	if _, err := Load([]string{path}, nil); err == nil || !strings.Contains(err.Error(), "belongs to another user (uid 65534)") {
		t.Errorf("a file of another user: %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{"a: 1", "a: {b: [1, x]}", "a: &x 1\nb: *x", "- 1", "a: {", "a: !!map {}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := &Settings{Files: []File{{Path: "f"}}}
		if err := s.add("f", []byte(text)); err != nil && !strings.Contains(err.Error(), "f:") {
			t.Fatalf("no position in %v", err)
		}
		for _, x := range s.Written {
			if len(s.Find(x.Key)) == 0 || x.Source.Line < 1 || !x.List && len(x.Values) != 1 {
				t.Fatalf("%+v", x)
			}
		}
	})
}
