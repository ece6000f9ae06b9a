package library

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"thru/internal/measure"
)

func TestPathsAreKeptForAWhile(t *testing.T) {
	k := knownPaths{filepath.Join(t.TempDir(), "paths")}
	if _, ok := k.Load("key"); ok {
		t.Error("an empty cache finds something")
	}
	now := time.Now()
	k.Keep("key", measure.Path{From: "local", To: "bee", TakenAt: now.UnixNano()})
	if p, ok := k.Load("key"); !ok || p.To != "bee" {
		t.Errorf("%+v, found %v", p, ok)
	}
	for name, at := range map[string]time.Time{"old": now.Add(-pathAge - time.Minute), "future": now.Add(time.Hour)} {
		k.Keep(name, measure.Path{TakenAt: at.UnixNano()})
		if _, ok := k.Load(name); ok {
			t.Errorf("%s: a path of %v is found", name, at)
		}
	}
	old := filepath.Join(k.dir, "key")
	if err := os.Chtimes(old, now.Add(-time.Hour), now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	k.Keep("other", measure.Path{TakenAt: now.UnixNano()})
	if _, err := os.Stat(old); err == nil {
		t.Error("an old file stays for ever")
	}
	if err := os.WriteFile(filepath.Join(k.dir, "broken"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := k.Load("broken"); ok {
		t.Error("a broken file is a path")
	}
}

func TestCostsOfHosts(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	cell := func(from, to string, bps float64) measure.Cell {
		return measure.Cell{From: from, To: to, Protocol: measure.TCP, Streams: 2, AtOnce: 1, Goodput: &measure.Figure{Value: bps},
			SenderCPU: &measure.CPUFigure{Cores: 0.5, MaxCorePct: 60}, ReceiverCPU: &measure.CPUFigure{Cores: 1.5, MaxCorePct: 90}}
	}
	facts := func(name string) *measure.Facts { return &measure.Facts{Hostname: &name, CPUModel: new("EPYC")} }
	doc := &measure.Document{
		EndPoints: []measure.EndPoint{{Name: "local", Facts: facts("ant")}, {Name: "bee", Facts: facts("b.example")}, {Name: "iperf3://c"}},
		Cells:     []measure.Cell{cell("local", "bee", 9e9), cell("local", "local", 40e9), cell("iperf3://c", "local", 1e9)},
	}
	KeepCosts(doc)
	ant, bee := KnownCosts()("ant"), KnownCosts()("b.example")
	if len(ant) != 2 || !ant[0].Sends || ant[0].Bps != 9e9 || ant[0].Cores != 0.5 || ant[1].Sends || ant[1].Cores != 1.5 || ant[0].CPUModel != "EPYC" {
		t.Errorf("ant: %+v", ant)
	}
	if len(bee) != 1 || bee[0].Sends || bee[0].BusiestPct != 90 {
		t.Errorf("bee: %+v", bee)
	}
	for range 3 * mostCosts {
		KeepCosts(doc)
	}
	if n := len(KnownCosts()("b.example")); n != mostCosts {
		t.Errorf("%d costs are kept, want %d", n, mostCosts)
	}
}

// A path that is no file, or is too long, counts as no facts, and does not block.
func TestOnlyFilesAreKnown(t *testing.T) {
	k := knownPaths{t.TempDir()}
	k.Keep("short", measure.Path{TakenAt: time.Now().UnixNano()})
	text, err := os.ReadFile(filepath.Join(k.dir, "short"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.dir, "long"), append(text, bytes.Repeat([]byte(" "), 1<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(k.dir, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(k.dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"long", "link", "folder", "none"} {
		if p, ok := k.Load(key); ok {
			t.Errorf("%s is a path: %+v", key, p)
		}
	}
}
