package platform

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"thru/internal/measure"
)

// fuzz passes foreign bytes to one parser of a system, after two interfaces
// are known, and checks the facts.
func fuzz(f *testing.F, name string) {
	commands := systems()[name].commands
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		f.Fatal(err, files)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range txtar.Parse(b).Files {
			for n, c := range commands {
				if strings.HasPrefix(strings.Join(c.line, " "), part.Name) || strings.HasPrefix(part.Name, c.line[0]) && len(commands) == 1 {
					f.Add(n, part.Data)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, n int, b []byte) {
		c := commands[((n%len(commands))+len(commands))%len(commands)]
		r := &reading{facts: measure.Facts{OS: &name}, failed: map[string]string{}, seen: map[string]bool{}}
		for _, i := range []string{"ix0", "net0", "vmnic0", "Ethernet0"} {
			p := r.port(i)
			p.Kind, p.Driver = new(physical), new("ix")
		}
		r.take(job{command: c, nic: "ix0", out: b})
		if s := systems()[name]; s.finish != nil {
			s.finish(r)
		}
		r.close(commands)
		threeValued(t, r.facts)
		sound(t, r.facts)
	})
}

// sound rejects facts that no host can have: they would be a parser's
// mistake.
func sound(t *testing.T, f measure.Facts) {
	t.Helper()
	if b, err := json.Marshal(f); err != nil || strings.Contains(string(b), `\u001b`) || strings.Contains(string(b), `\u0000`) {
		t.Errorf("facts that cannot be written, or could steer a terminal: %v", err)
	}
	if f.Cores != nil && *f.Cores < 1 || f.Memory != nil && *f.Memory < 0 || len(f.Interfaces) > maxPorts {
		t.Errorf("cores %v, memory %v, %d interfaces", f.Cores, f.Memory, len(f.Interfaces))
	}
	for _, i := range f.Interfaces {
		if i.MTU != nil && *i.MTU < 0 || i.SpeedBps != nil && *i.SpeedBps <= 0 || i.Queues != nil && *i.Queues < 0 || i.Name == "" {
			t.Errorf("interface %+v", i)
		}
		if g := i.Rings; g != nil && min(g.RX, g.TX, g.RXMax, g.TXMax) < 0 {
			t.Errorf("rings %+v", g)
		}
		if p := i.PCI; p != nil && p.Gen != nil && (*p.Gen < 1 || *p.Gen > 6) {
			t.Errorf("slot %+v", p)
		}
	}
}

func FuzzFreeBSD(f *testing.F) { fuzz(f, "freebsd") }
func FuzzDarwin(f *testing.F)  { fuzz(f, "darwin") }
func FuzzSolaris(f *testing.F) { fuzz(f, "solaris") }
func FuzzESXi(f *testing.F)    { fuzz(f, "esxi") }
func FuzzWindows(f *testing.F) { fuzz(f, "windows") }

// FuzzClean: cleaned text has no terminal control characters.
func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2Jb\r\n\x00\xff\u009b")
	f.Fuzz(func(t *testing.T, s string) {
		c := Clean(s)
		if strings.ContainsAny(c, "\x1b\r\x00\u009b\x7f") || Clean(c) != c {
			t.Errorf("%q becomes %q", s, c)
		}
	})
}
