package tuning

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/lab"
	"thru/lab/wire"
)

// Bounds of what is run, far above what it takes.
const (
	readyLimit = 15 * time.Second
	shortLimit = 40 * time.Second
)

// Scene is two hosts: from a (Local) tunings are run, b (peer) lets itself be
// tuned. Each has a home folder of its own, which holds its journal.
type Scene struct {
	*lab.Pair
	homes       map[*lab.Host]string
	serves      *Program           // nil where b does not serve
	joins       map[string]string  // of b, by the name that they are kept under
	wire        *wire.Wire         // nil over a veth
	impairments [2]wire.Impairment // of the wire, as they are set
	boot        string             // file with the id of another boot; empty: that of this machine
	t           testing.TB
}

// newScene has homes for both hosts of a pair.
func newScene(t testing.TB, p *lab.Pair, w *wire.Wire) *Scene {
	t.Helper()
	return &Scene{Pair: p, homes: map[*lab.Host]string{p.A: t.TempDir(), p.B: t.TempDir()}, wire: w, t: t}
}

// Over is a scene on hosts that a test has made, where b serves.
func Over(t testing.TB, p *lab.Pair) *Scene {
	t.Helper()
	s := newScene(t, p, nil)
	s.Serve()
	return s
}

// Hosts are both, a first.
func (s *Scene) Hosts() []*lab.Host { return []*lab.Host{s.A, s.B} }

// Settings are those of both hosts.
func (s *Scene) Settings() [2]lab.Settings {
	s.t.Helper()
	return [2]lab.Settings{s.A.Settings(), s.B.Settings()}
}

// Changed lists what differs from then, at both hosts.
func (s *Scene) Changed(before [2]lab.Settings) []string {
	s.t.Helper()
	now, all := s.Settings(), []string(nil)
	for i, h := range s.Hosts() {
		for _, line := range before[i].Changes(now[i]) {
			all = append(all, h.Name+": "+line)
		}
	}
	return all
}

// serving is what thru serve says when it is ready.
type serving struct {
	Ready bool              `json:"ready"`
	Join  string            `json:"join_string"`
	More  map[string]string `json:"join_strings"`
}

// Serve starts the end point at b and joins it at a, as Peer and as Measured. It
// begins anew where it ran before, with the same secrets and the same journal.
func (s *Scene) Serve() {
	s.t.Helper()
	s.stopServing()
	s.serves = s.Start(s.B, "", "serve", "--json", "--allow", "tune")
	var said serving
	lab.Eventually(s.t, readyLimit, "thru serve is ready", func() bool {
		if !s.serves.Running() {
			s.t.Fatalf("tuning: thru serve ended with exit %d: %s", s.serves.exit, s.serves.Stderr())
		}
		line, _, whole := strings.Cut(s.serves.Stdout(), "\n")
		return whole && json.Unmarshal([]byte(line), &said) == nil && said.Ready
	})
	tunes := said.More["tune"]
	if tunes == "" {
		s.t.Fatalf("tuning: thru serve --allow tune has no join string for it: %s", s.serves.Stdout())
	}
	s.joins = map[string]string{Peer: tunes, Measured: said.Join}
	s.Join(nil)
}

// Join keeps the join strings of b in the home of who runs the commands at a.
func (s *Scene) Join(by []string) {
	s.t.Helper()
	for name, join := range s.joins {
		p := s.StartBy(s.A, by, join, "join", "--replace", name)
		if code := p.Wait(shortLimit); code != 0 {
			s.t.Fatalf("tuning: thru join ended with exit %d: %s", code, p.Stderr())
		}
	}
}

// As is the same scene for somebody else, whose home at a is another folder.
func (s *Scene) As(home string) *Scene {
	other := *s
	other.homes = map[*lab.Host]string{s.A: home, s.B: s.homes[s.B]}
	return &other
}

// Booted is the same two machines after a boot: hosts with other settings and
// another boot id, and with copies of the homes as they are now.
func (s *Scene) Booted(p *lab.Pair) *Scene {
	s.t.Helper()
	other := newScene(s.t, p, nil)
	for now, then := range map[*lab.Host]*lab.Host{p.A: s.A, p.B: s.B} {
		then.Must("cp", "-a", s.homes[then]+"/.", other.homes[now])
	}
	other.boot = filepath.Join(s.t.TempDir(), "boot_id")
	if err := os.WriteFile(other.boot, []byte("01234567-89ab-4cde-8f01-23456789abcd\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return other
}

// stopServing ends the end point, if it serves, in order.
func (s *Scene) stopServing() {
	s.t.Helper()
	if s.serves == nil || !s.serves.Running() {
		return
	}
	s.serves.Signal(os.Interrupt)
	s.serves.Wait(shortLimit)
}

// state is the folder in which thru keeps the journal of a host.
func (s *Scene) state(h *lab.Host) string {
	return filepath.Join(s.homes[h], ".local", "state", "thru", "tune")
}

// control sets the congestion control of a host's route to the other one.
func (s *Scene) control(h *lab.Host, addr, name string) {
	s.t.Helper()
	h.IP("route", "replace", "10.77.0.0/24", "dev", lab.DataDev, "src", addr, "congctl", name)
}

// change changes a direction of the path in user space.
func (s *Scene) change(d wire.Direction, change func(w *wire.Impairment)) {
	s.t.Helper()
	if s.wire == nil {
		s.t.Fatal("tuning: this path is a veth")
	}
	change(&s.impairments[d])
	s.wire.Set(d, s.impairments[d])
}
