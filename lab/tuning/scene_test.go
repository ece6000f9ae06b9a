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

// Limits of what is run, far above the usual time.
const (
	readyLimit = 15 * time.Second
	shortLimit = 40 * time.Second
)

// Scene is two hosts: a (Local) runs the tunings, b (Peer) is tuned. Each has a home folder of its own with
// its journal.
type Scene struct {
	*lab.Pair
	homes       map[*lab.Host]string
	serves      *Program           // nil while b does not serve
	joins       map[string]string  // join strings of b, by the name that they are stored under
	wire        *wire.Wire         // nil over a veth
	impairments [2]wire.Impairment // impairments of the wire, as set
	boot        string             // file with another boot id; empty: that of this machine
	t           testing.TB
}

// newScene makes homes for both hosts of a pair.
func newScene(t testing.TB, p *lab.Pair, w *wire.Wire) *Scene {
	t.Helper()
	return &Scene{Pair: p, homes: map[*lab.Host]string{p.A: t.TempDir(), p.B: t.TempDir()}, wire: w, t: t}
}

// Over is a scene on hosts of the caller, in which b serves.
func Over(t testing.TB, p *lab.Pair) *Scene {
	t.Helper()
	s := newScene(t, p, nil)
	s.Serve()
	return s
}

// Hosts returns both hosts, a first.
func (s *Scene) Hosts() []*lab.Host { return []*lab.Host{s.A, s.B} }

// Settings returns the settings of both hosts.
func (s *Scene) Settings() [2]lab.Settings {
	s.t.Helper()
	return [2]lab.Settings{s.A.Settings(), s.B.Settings()}
}

// Changed lists the settings of both hosts that differ from before.
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

// serving is what thru serve prints when it is ready.
type serving struct {
	Ready bool              `json:"ready"`
	Join  string            `json:"join_string"`
	More  map[string]string `json:"join_strings"`
}

// Serve starts the end point at b, or restarts it with the same secrets and journal, and joins it at a, as
// Peer and as Measured.
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

// Join stores the join strings of b in the home of the user at a.
func (s *Scene) Join(by []string) {
	s.t.Helper()
	for name, join := range s.joins {
		p := s.StartBy(s.A, by, join, "join", "--replace", name)
		if code := p.Wait(shortLimit); code != 0 {
			s.t.Fatalf("tuning: thru join ended with exit %d: %s", code, p.Stderr())
		}
	}
}

// As is the same scene for another user, whose home at a is another folder.
func (s *Scene) As(home string) *Scene {
	other := *s
	other.homes = map[*lab.Host]string{s.A: home, s.B: s.homes[s.B]}
	return &other
}

// Booted is the same two machines after a boot: other hosts with another boot id, and copies of the homes.
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

// stopServing ends the end point in order, if it serves.
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

// change changes the impairment of a direction of the path in user space.
func (s *Scene) change(d wire.Direction, change func(w *wire.Impairment)) {
	s.t.Helper()
	if s.wire == nil {
		s.t.Fatal("tuning: this path is a veth")
	}
	change(&s.impairments[d])
	s.wire.Set(d, s.impairments[d])
}
