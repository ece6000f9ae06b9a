package bus

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"thru/internal/fault"
)

func TestStateStaysAndRotates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	first, err := OpenState(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenState(dir)
	if err != nil || !sameState(first, again) {
		t.Fatal("a state does not stay:", err)
	}
	if err := again.Rotate(); err != nil {
		t.Fatal(err)
	}
	if again.ID != first.ID || again.Secret == first.Secret || again.CertSHA256() == first.CertSHA256() {
		t.Error("rotating keeps the id, and nothing else")
	}
	if after, err := OpenState(dir); err != nil || !sameState(after, again) {
		t.Error("a rotation is not kept:", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if runtime.GOOS != "windows" {
		wantMode(t, dir, 0o700)
		wantMode(t, filepath.Join(dir, stateFile), 0o600)
	}
}

func sameState(a, b *State) bool {
	return a.ID == b.ID && a.Secret == b.Secret && a.CertSHA256() == b.CertSHA256()
}

// TestStateRace: agents that create a state at the same time all get one identity.
func TestStateRace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	states := make([]*State, 8)
	var wg sync.WaitGroup
	for i := range states {
		wg.Go(func() {
			var err error
			if states[i], err = OpenState(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range states[1:] {
		if s == nil || states[0] == nil || !sameState(s, states[0]) {
			t.Error("two identities of one folder")
		}
	}
}

func TestStateRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := OpenState(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, stateFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "no JSON": "x", "empty document": "{}", "cut off": string(good[:len(good)/2]),
		"newer":     strings.Replace(string(good), `"version": 1`, `"version": 2`, 1),
		"no secret": strings.Replace(string(good), `"secret": "`, `"secret": "","x":"`, 1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenState(dir); err == nil || fault.Hint(err) == "" {
			t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
		}
	}
	os.WriteFile(path, good, 0o600)
	if runtime.GOOS == "windows" {
		return
	}
	os.Chmod(path, 0o604)
	if _, err := OpenState(dir); err == nil || !strings.Contains(fault.Hint(err), "chmod 600 "+path) {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"id":"x","secret":"y"}`))
	path := filepath.Join(f.TempDir(), stateFile)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Skip(err)
		}
		s := &State{path: path}
		if s.read() == nil && (s.ID == "" || len(s.cert.Certificate) == 0) {
			t.Error("half a state was taken")
		}
	})
}
