package tune

import (
	"errors"
	"os"
	"strings"
	"testing"

	"thru/internal/measure"
)

// TestSharedFolder: several machines that share a folder have separate
// journals.
func TestSharedFolder(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	on := func(id string) Config {
		c := c
		c.Root = t.TempDir()
		if err := errors.Join(os.Mkdir(c.Root+"/etc", 0o755), os.WriteFile(c.Root+"/etc/machine-id", []byte(id+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, two := on("1"), on("2")
	two.Boot = func() string { return "boot-2" }
	d := tuned(t, dir, f, one)
	alter(t, d, "cc", "", "cubic")
	if err := d.End("a"); err != nil {
		t.Fatal(err)
	}
	other := open(t, dir, f, two)
	if all, err := other.Rollback(); err != nil || len(all) > 0 || len(other.Open()) > 0 {
		t.Error("another machine undoes it:", all, err)
	}
	if all, err := d.Rollback(); err != nil || outcomes(all) != "cc undone" {
		t.Error(all, err)
	}
}

// TestOtherNamespace: a journal belongs to one network namespace. The host's
// own exists after each boot; any other one ends, together with its settings.
func TestOtherNamespace(t *testing.T) {
	host, blue, next := space{1, true}, space{5, false}, space{6, false}
	tests := []struct {
		name     string
		of, in   space
		boot     string
		recover  string
		rollback string
		why      string
		then     string
	}{
		{"its own", blue, blue, "boot-1", "cc undone", "", "", "bbr"},
		{"another one, that has its inode perhaps", blue, next, "boot-1", "", "", "", "cubic"},
		{"one of this host", blue, host, "boot-1", "", "", "", "cubic"},
		{"one of this host, after a boot", blue, host, "boot-2", "", "cc as it was", "no longer exists", "cubic"},
		{"the same number after a boot", blue, blue, "boot-2", "", "cc as it was", "no longer exists", "cubic"},
		{"the host's, in another one", host, blue, "boot-1", "", "", "", "cubic"},
		{"the host's, in another one after a boot", host, blue, "boot-2", "", "", "", "cubic"},
		{"the host's", host, space{9, true}, "boot-2", "cc undone", "", "", "bbr"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, f, c := t.TempDir(), newFake(settings()), conf()
			c.space = func() space { return tt.of }
			life(open(t, dir, f, c), func(d *Tuner) { must(d.Begin("a", "alice")); setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}) })
			c.space, c.Boot = func() space { return tt.in }, func() string { return tt.boot }
			d := open(t, dir, f, c)
			if n := len(d.Open()); (n > 0) != (tt.recover != "") {
				t.Errorf("%d are open", n)
			}
			some, err := d.Recover()
			all, err2 := d.Rollback()
			if err = errors.Join(err, err2); err != nil || outcomes(some) != tt.recover || outcomes(all) != tt.rollback || f.values[target{"cc", ""}] != tt.then {
				t.Fatal(outcomes(some), "|", outcomes(all), err, f.values)
			}
			if tt.why != "" && !strings.Contains(all[0].Error, tt.why) {
				t.Error(all[0].Error)
			}
			if again, err := d.Rollback(); err != nil || len(again) > 0 {
				t.Error("said twice:", outcomes(again), err)
			}
			if live, done := journals(t, dir); (len(done) == 1) != (tt.recover+tt.rollback != "") {
				t.Error(live, done)
			}
		})
	}
}

// TestHost: two agents of one host return the same id, and no other host has
// it.
func TestHost(t *testing.T) {
	c := conf()
	name := func(id uint64, boot string) string {
		c.space, c.Boot = func() space { return space{id: id} }, func() string { return boot }
		return open(t, t.TempDir(), newFake(nil), c).Host()
	}
	one := name(1, "b1")
	if one == "" || one != name(1, "b1") || one == name(2, "b1") || one == name(1, "b2") || strings.Contains(one, "b1") {
		t.Error(one)
	}
	if s := name(0, "b1") + name(1, ""); s != "" {
		t.Error(s)
	}
}
