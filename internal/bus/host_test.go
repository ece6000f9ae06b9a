package bus_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
)

// here returns a valid presence.
func here() bus.Presence {
	return bus.Presence{Instance: "AAAAAAAAAAAAAAAAAAAAAAAAAA", Name: "bee", WireMajor: bus.WireMajor, Labels: map[string]string{"site": "east"}, Addrs: []string{"10.0.0.1"}}
}

func publicKey(t *testing.T) string {
	t.Helper()
	id, err := newState(t).HostID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestPresence: invalid values, and those that would spoil a terminal, are rejected.
func TestPresence(t *testing.T) {
	many := make([]string, 65)
	for i := range many {
		many[i] = "a"
	}
	for name, c := range map[string]struct {
		change func(*bus.Presence)
		right  bool
	}{
		"right":          {func(p *bus.Presence) {}, true},
		"busy":           {func(p *bus.Presence) { p.Busy = "x\x1b[2J\ny" + strings.Repeat("z", 5000) }, true},
		"no name":        {func(p *bus.Presence) { p.Name = "" }, false},
		"name of local":  {func(p *bus.Presence) { p.Name = "local" }, false},
		"name of a path": {func(p *bus.Presence) { p.Name = "../x" }, false},
		"instance":       {func(p *bus.Presence) { p.Instance = "x" }, false},
		"label":          {func(p *bus.Presence) { p.Labels = map[string]string{"a": "b c"} }, false},
		"label's name":   {func(p *bus.Presence) { p.Labels = map[string]string{"": "b"} }, false},
		"address":        {func(p *bus.Presence) { p.Addrs = []string{"\n"} }, false},
		"data address":   {func(p *bus.Presence) { p.DataAddrs = []string{""} }, false},
		"addresses":      {func(p *bus.Presence) { p.Addrs = many }, false},
		"CPUs":           {func(p *bus.Presence) { p.CPUs = -1 }, false},
		"too long":       {func(p *bus.Presence) { p.Problem = strings.Repeat("x", 20000) }, false},
	} {
		p := here()
		c.change(&p)
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := bus.ParsePresence(b)
		if (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
		if strings.ContainsAny(got.Busy, "\x1b\n") || len(got.Busy) > 1024 {
			t.Errorf("%s: %q", name, got.Busy)
		}
	}
}

func FuzzPresence(f *testing.F) {
	b, _ := json.Marshal(here())
	f.Add(b)
	f.Add([]byte(`{"name":"x","labels":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := bus.ParsePresence(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range again {
			if c < ' ' || c == 0x7f {
				t.Fatalf("%q", again)
			}
		}
	})
}

// TestNameBook: names stay with their keys, one per key, across restarts and a disk that
// cannot be written.
func TestNameBook(t *testing.T) {
	keyA, keyB := publicKey(t), publicKey(t)
	dir := filepath.Join(t.TempDir(), "state")
	book, err := bus.OpenNameBook(dir)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claim := func(b *bus.NameBook, name, key string, want bool) {
		t.Helper()
		refused, err := b.Claim(name, key, map[string]string{"owner": key}, now)
		if err != nil || (refused == "") != want {
			t.Errorf("%s for %s...: %q, %v", name, key[:4], refused, err)
		}
	}
	claim(book, "a", keyA, true)
	claim(book, "a", keyA, true)
	claim(book, "a", keyB, false)
	claim(book, "b", keyA, true) // a renamed host
	claim(book, "a", keyB, true)
	if err := book.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := bus.OpenNameBook(dir)
	if err != nil {
		t.Fatal(err)
	}
	claim(again, "b", keyB, false)
	claim(again, "a", keyB, true)
	if key, err := again.Forget("b"); key != keyA || err != nil {
		t.Error(key, err)
	}
	claim(again, "b", keyB, true)
	file := filepath.Join(dir, "hosts.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	for _, damaged := range []string{"{", `{"names":{"../x":{"key":"` + keyA + `"}}}`, `{"names":{"x":{"key":"y"}}}`} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := bus.OpenNameBook(dir); err == nil {
			t.Errorf("%s was read", damaged)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Claim("c", keyA, nil, now); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a name that cannot be kept: %v", err)
	}
	if _, err := again.Claim("c", keyB, nil, now); err == nil {
		t.Error("a name was given that cannot be kept")
	}
}
