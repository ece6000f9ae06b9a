package tune

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thru/internal/measure"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(guardedDir); dir != "" {
		os.Exit(beGuarded(dir))
	}
	if dir := os.Getenv(guardDir); dir != "" {
		os.Exit(beGuard(dir))
	}
	if socket := os.Getenv(hogSocket); socket != "" {
		os.Exit(beHog(socket))
	}
	goleak.VerifyTestMain(m)
}

// fake is a machine in memory.
type fake struct {
	values  map[target]string
	refuses map[target]error             // Set returns it, having done nothing
	lies    map[target]string            // value after any Set
	moves   map[target]map[string]string // knobs of the same interface that a Set moves too
	gone    map[target]bool              // cannot be read
	missing map[string]bool              // interfaces that are gone
	step    step
	sets    int
}

func newFake(values map[target]string) *fake {
	return &fake{values: maps.Clone(values), refuses: map[target]error{}, lies: map[target]string{}, moves: map[target]map[string]string{}, gone: map[target]bool{}, missing: map[string]bool{}, step: func(string) {}}
}

func (f *fake) Knobs(interfaces []string) (all []measure.KnobState) {
	for s, v := range f.values {
		if s.iface == "" || slices.Contains(interfaces, s.iface) {
			k := measure.KnobState{Knob: s.knob, Interface: s.iface, Value: v}
			if s.knob == "refused" {
				k.Refused = "the driver has none"
			}
			all = append(all, k)
		}
	}
	return all
}

func (f *fake) Read(knob, iface string) (string, error) {
	s := target{knob, iface}
	v, ok := f.values[s]
	if !ok || f.gone[s] || f.missing[iface] {
		return "", fmt.Errorf("fake: reading %s: %w", knob, ErrUnknown)
	}
	return v, nil
}

func (f *fake) Gone(_, iface string) bool { return f.missing[iface] }

// Set has an intermediate value for a moment, like a knob of several files.
func (f *fake) Set(knob, iface, value string) error {
	f.sets++
	s := target{knob, iface}
	if err := f.refuses[s]; err != nil {
		return err
	}
	f.values[s] = "half of " + value
	f.step("set half")
	f.values[s] = value
	if lie, ok := f.lies[s]; ok {
		f.values[s] = lie
	}
	for other, v := range f.moves[s] {
		f.values[target{other, iface}] = v
	}
	f.step("set whole")
	return nil
}

var desks atomic.Int64

// conf is the configuration of a tuner that conflicts with no other test.
func conf() Config {
	return Config{
		Version: "v", Possible: func() error { return nil }, Boot: func() string { return "boot-1" },
		wait:   100 * time.Millisecond,
		run:    "/nowhere", // root of this machine may tune meanwhile
		space:  func() space { return space{7, true} },
		Now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		socket: fmt.Sprintf("@thru-tune-test-%d-%d", os.Getpid(), desks.Add(1)),
	}
}

func open(t *testing.T, dir string, m Machine, c Config) *Tuner {
	t.Helper()
	d, err := Open(dir, m, c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tuned opens a tuner with client "a" tuning.
func tuned(t *testing.T, dir string, m Machine, c Config) *Tuner {
	t.Helper()
	d := open(t, dir, m, c)
	if err := d.Begin("a", "alice@here"); err != nil {
		t.Fatal(err)
	}
	return d
}

// alter changes one knob, and returns its number.
func alter(t *testing.T, d *Tuner, knob, iface, value string) int64 {
	t.Helper()
	made, err := d.Alter("a", []measure.Setting{{Knob: knob, Interface: iface, Value: value}})
	if err != nil || len(made) != 1 {
		t.Fatal(made, err)
	}
	return made[0].Number
}

// settings are the initial settings of the tests.
func settings() map[target]string {
	return map[target]string{
		{"rmem", ""}: "4096 131072 6291456", {"wmem", ""}: "4096 16384 4194304", {"cc", ""}: "bbr",
		{"tso", "eth0"}: "on", {"gso", "eth0"}: "on", {"mtu", "eth0"}: "1500",
	}
}

// unchanged fails where the settings differ from the initial ones.
func unchanged(t *testing.T, f *fake) {
	t.Helper()
	if !maps.Equal(f.values, settings()) {
		t.Errorf("the settings are %v", f.values)
	}
}

// outcomes returns the outcomes of changes, in order, by knob.
func outcomes(all []measure.Changed) string {
	var s []string
	for _, c := range all {
		s = append(s, c.Knob+" "+c.Outcome)
	}
	return strings.Join(s, ", ")
}

// journals returns the names in the folder, and in that of the finished ones.
func journals(t *testing.T, dir string) (live, done []string) {
	t.Helper()
	for _, p := range []struct {
		glob string
		to   *[]string
	}{{"*.jsonl", &live}, {"done/*.jsonl", &done}} {
		names, err := filepath.Glob(filepath.Join(dir, p.glob))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			*p.to = append(*p.to, filepath.Base(n))
		}
	}
	return live, done
}

var errNo = errors.New("the driver says no")
