package tune

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"thru/internal/fault"
	"thru/internal/measure"
)

func TestAlterAndRevert(t *testing.T) {
	dir, f := filepath.Join(t.TempDir(), "state", "tune"), newFake(settings())
	d := tuned(t, dir, f, conf())
	if live, done := journals(t, dir); len(live)+len(done) > 0 {
		t.Error("a journal is there before anything is changed")
	}
	made, err := d.Alter("a", []measure.Setting{
		{EndPoint: "b", Knob: "rmem", Value: "4096 131072 67108864"}, {Knob: "tso", Interface: "eth0", Value: "on"}, {Knob: "cc", Value: "cubic"},
	})
	if err != nil || len(made) != 3 {
		t.Fatal(made, err)
	}
	if c := made[0]; c.Number == 0 || c.Before != "4096 131072 6291456" || c.Found != c.Value || c.Outcome != "" || c.EndPoint != "" {
		t.Errorf("%+v", c)
	}
	if c := made[1]; c.Number != 0 || c.Outcome != measure.Settled || f.sets != 2 {
		t.Errorf("a knob that is so already: %+v, %d sets", c, f.sets)
	}
	if open := d.Open(); outcomes(open) != "cc , rmem " || open[0].Before != "bbr" {
		t.Errorf("open: %+v", open)
	}
	undone, err := d.Revert("a", []int64{made[0].Number})
	if err != nil || outcomes(undone) != "rmem undone" || f.values[target{"cc", ""}] != "cubic" {
		t.Error(undone, err)
	}
	again, err := d.Revert("a", []int64{made[0].Number})
	if err != nil || outcomes(again) != "rmem as it was" {
		t.Error(again, err)
	}
	all, err := d.Revert("a", nil)
	if err != nil || outcomes(all) != "cc undone" {
		t.Error(all, err)
	}
	unchanged(t, f)
	if _, err := d.Revert("a", []int64{77}); err == nil {
		t.Error("a number that there is not was undone")
	}
	if err := d.End("a"); err != nil {
		t.Fatal(err)
	}
	if live, done := journals(t, dir); len(live) != 0 || len(done) != 1 {
		t.Error(live, done)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// TestKept: changes that a normal end leaves stay, and another process can
// roll them back later, of several tunings the newest first.
func TestKept(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	for _, value := range []string{"cubic", "reno"} {
		d := tuned(t, dir, f, c)
		alter(t, d, "cc", "", value)
		alter(t, d, "mtu", "eth0", "9000 ")
		if err := d.End("a"); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, dir, f, c)
	if some, err := d.Recover(); err != nil || len(some) > 0 || f.values[target{"cc", ""}] != "reno" {
		t.Error("what was kept is undone:", some, err)
	}
	if o := d.Open(); outcomes(o) != "cc , mtu , cc " {
		t.Errorf("open: %v", outcomes(o))
	}
	all, err := d.Rollback()
	if err != nil || outcomes(all) != "cc undone, mtu undone, cc undone" || !Restored(all) {
		t.Error(outcomes(all), err)
	}
	unchanged(t, f)
	if again, err := d.Rollback(); err != nil || len(again) > 0 {
		t.Error(again, err)
	}
	if live, done := journals(t, dir); len(live) != 0 || len(done) != 2 {
		t.Error(live, done)
	}
}

func TestAlterFails(t *testing.T) {
	first := measure.Setting{Knob: "cc", Value: "cubic"}
	tests := []struct {
		name       string
		with       func(*fake)
		only       []string
		second     measure.Setting
		want, hint string
	}{
		{"unknown", nil, nil, measure.Setting{Knob: "warp", Value: "9"}, "no such knob", ""},
		{"refused by the driver", func(f *fake) { f.refuses[target{"tso", "eth0"}] = errNo }, nil, measure.Setting{Knob: "tso", Interface: "eth0", Value: "off"}, "the driver says no", ""},
		{"busy", func(f *fake) { f.refuses[target{"tso", "eth0"}] = syscall.EBUSY }, nil, measure.Setting{Knob: "tso", Interface: "eth0", Value: "off"}, "busy", "set the link down"},
		{"reads otherwise", func(f *fake) { f.lies[target{"tso", "eth0"}] = "maybe" }, nil, measure.Setting{Knob: "tso", Interface: "eth0", Value: "off"}, `accepted "off" but reports "maybe"`, "dmesg"},
		{"not on the list", nil, []string{"cc"}, measure.Setting{Knob: "tso", Interface: "eth0", Value: "off"}, "not on the list", "--dry-run"},
		{"cannot be changed there", func(f *fake) { f.values[target{"refused", "eth0"}] = "x" }, nil, measure.Setting{Knob: "refused", Interface: "eth0", Value: "y"}, "the driver has none", "--dry-run"},
		{"too long", nil, nil, measure.Setting{Knob: "rmem", Value: strings.Repeat("1", maxValue+1)}, "too long", ""},
		{"no text", nil, nil, measure.Setting{Knob: "rmem", Value: "\xff"}, "not text", ""},
		{"a name of two lines", nil, nil, measure.Setting{Knob: "mtu", Interface: "eth0\n", Value: "1"}, `"mtueth0\n" is not the name`, ""},
		{"a name that is cut", nil, nil, measure.Setting{Knob: "mtu", Interface: "eth0\x00x", Value: "1"}, "is not the name", ""},
		{"a name that is no text", nil, nil, measure.Setting{Knob: "mtu", Interface: "\xff", Value: "1"}, "is not the name", ""},
		{"no text before", func(f *fake) { f.values[target{"odd", ""}] = "\xff" }, nil, measure.Setting{Knob: "odd", Value: "1"}, "not text", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, c := newFake(settings()), conf()
			if tt.with != nil {
				tt.with(f)
			}
			c.Only = tt.only
			d := tuned(t, t.TempDir(), f, c)
			_, err := d.Alter("a", []measure.Setting{first, tt.second})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.Hint(err), tt.hint) {
				t.Errorf("%v (%s)", err, fault.Hint(err))
			}
			delete(f.lies, target{"tso", "eth0"})
			if f.values[target{"cc", ""}] != "bbr" {
				t.Error("the change before the one that failed is not undone")
			}
			if tt.name == "reads otherwise" { // the lie held while it was undone
				if len(d.Open()) != 1 {
					t.Error("what could not be undone is not open")
				}
				if r, err := d.Revert("a", nil); err != nil || outcomes(r) != "tso undone" {
					t.Error(outcomes(r), err)
				}
			}
			if len(d.Open()) != 0 {
				t.Error(d.Open())
			}
			d.Gone("a")
		})
	}
	d := tuned(t, t.TempDir(), newFake(settings()), conf())
	if _, err := d.Alter("a", make([]measure.Setting, mostSettings+1)); err == nil {
		t.Error("too many settings at a time")
	}
}

// TestForeign: what somebody else has changed meanwhile is noticed, reported,
// and not touched.
func TestForeign(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	d := tuned(t, dir, f, c)
	cc, mtu := alter(t, d, "cc", "", "cubic"), alter(t, d, "mtu", "eth0", "9000")
	f.values[target{"cc", ""}] = "vegas"
	if _, err := d.Alter("a", []measure.Setting{{Knob: "tso", Interface: "eth0", Value: "off"}, {Knob: "cc", Value: "reno"}}); !errors.Is(err, ErrForeign) {
		t.Errorf("%v", err)
	}
	if f.values[target{"tso", "eth0"}] != "on" {
		t.Error("the change before is not undone")
	}
	r, err := d.Revert("a", []int64{cc, mtu})
	if err != nil || outcomes(r) != "mtu undone, cc changed" || !strings.Contains(r[1].Error, `it is now "vegas"`) || Restored(r) {
		t.Errorf("%+v %v", r, err)
	}
	if err := d.End("a"); err != nil {
		t.Fatal(err)
	}
	if all, err := d.Rollback(); err != nil || len(all) > 0 || f.values[target{"cc", ""}] != "vegas" {
		t.Error("what is foreign is touched later:", all, err)
	}
	// A knob that was undone, and is then changed by others, is theirs as
	// well.
	d = tuned(t, dir, f, c)
	n := alter(t, d, "rmem", "", "1 2 3")
	d.Revert("a", []int64{n})
	f.values[target{"rmem", ""}] = "7 8 9"
	if _, err := d.Alter("a", []measure.Setting{{Knob: "rmem", Value: "1 2 3"}}); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	d.Gone("a")
	if f.values[target{"rmem", ""}] != "7 8 9" {
		t.Error("it is overwritten")
	}
}

// TestForeignAfterAFailedUndo: a value that somebody sets after a failed undo
// is theirs.
func TestForeignAfterAFailedUndo(t *testing.T) {
	at := target{"mtu", "eth0"}
	for name, how := range map[string]struct {
		breaks, fixes func(*fake)
		first, now    string // outcome, and what is there then
	}{
		"refused": {func(f *fake) { f.refuses[at] = errNo }, func(f *fake) { delete(f.refuses, at) }, "mtu failed", "9000"},
		"lies":    {func(f *fake) { f.lies[at] = "1400" }, func(f *fake) { delete(f.lies, at) }, "mtu failed", "1400"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, f, c := t.TempDir(), newFake(settings()), conf()
			d := tuned(t, dir, f, c)
			alter(t, d, "mtu", "eth0", "9000")
			if err := d.End("a"); err != nil {
				t.Fatal(err)
			}
			how.breaks(f)
			if all, err := d.Rollback(); err != nil || outcomes(all) != how.first || f.values[at] != how.now || len(d.Open()) != 1 {
				t.Fatal(outcomes(all), err, f.values[at], d.Open())
			}
			how.fixes(f)
			f.values[at] = "3000"
			all, err := open(t, dir, f, c).Rollback()
			if err != nil || outcomes(all) != "mtu changed" || f.values[at] != "3000" {
				t.Error(outcomes(all), err, f.values[at])
			}
		})
	}
}

// TestFullDisk: an undo whose outcome cannot be written does not make later
// values count as thru's own.
func TestFullDisk(t *testing.T) {
	at, dir, f, c := target{"mtu", "eth0"}, t.TempDir(), newFake(settings()), conf()
	d := tuned(t, dir, f, c)
	alter(t, d, "mtu", "eth0", "9000")
	j, writes := d.tuning.journal, 0
	j.step = func(what string) {
		if what == "write" {
			writes++
		}
		if what == "write" && writes == 2 { // a file to append to takes no WriteAt
			j.file.Close()
			j.file, _ = os.OpenFile(j.path, os.O_RDWR|os.O_APPEND, 0)
		}
	}
	d.Gone("a")
	if f.values[at] != "1500" || len(d.Open()) != 1 {
		t.Fatal(f.values[at], d.Open())
	}
	f.values[at] = "3000"
	all, err := open(t, dir, f, c).Rollback()
	if err != nil || outcomes(all) != "mtu changed" || f.values[at] != "3000" {
		t.Error(outcomes(all), err, f.values[at])
	}
}

// TestMoved: a knob that another one moves is not somebody else's change.
func TestMoved(t *testing.T) {
	f := newFake(settings())
	f.moves[target{"mtu", "eth0"}] = map[string]string{"gso": "off (mtu)"}
	d := tuned(t, t.TempDir(), f, conf())
	alter(t, d, "gso", "eth0", "off")
	alter(t, d, "mtu", "eth0", "9000")
	if r, err := d.Revert("a", nil); err != nil || outcomes(r) != "mtu undone, gso undone" {
		t.Error(outcomes(r), err)
	}
	unchanged(t, f)
	d.Gone("a")
}

// TestOrder: a change that another one has followed is undone after it, or
// not at all.
func TestOrder(t *testing.T) {
	f := newFake(settings())
	d := tuned(t, t.TempDir(), f, conf())
	one, two := alter(t, d, "cc", "", "cubic"), alter(t, d, "cc", "", "reno")
	if r, err := d.Revert("a", []int64{one}); err != nil || outcomes(r) != "cc failed" || f.values[target{"cc", ""}] != "reno" {
		t.Error(outcomes(r), err)
	}
	if r, err := d.Revert("a", []int64{one, two}); err != nil || outcomes(r) != "cc undone, cc undone" {
		t.Error(outcomes(r), err)
	}
	unchanged(t, f)
	d.Gone("a")
}

// TestGone: a lost client leaves no changes; what cannot be undone then is
// undone when the next one begins.
func TestGone(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	d := tuned(t, dir, f, c)
	alter(t, d, "cc", "", "cubic")
	alter(t, d, "mtu", "eth0", "9000")
	d.Gone("b")
	if len(d.Open()) != 2 {
		t.Error("another client's end has ended the tuning")
	}
	d.Gone("a")
	unchanged(t, f)
	if _, err := d.Alter("a", nil); err == nil {
		t.Error("a client that is gone goes on")
	}
	d = tuned(t, dir, f, c)
	alter(t, d, "mtu", "eth0", "9000")
	f.refuses[target{"mtu", "eth0"}] = syscall.EBUSY
	d.Gone("a")
	if err := d.Begin("b", "bob"); err == nil || !strings.Contains(fault.Hint(err), "--rollback") {
		t.Error("a tuning begins on top of one that is not undone:", err)
	}
	if all, err := d.Rollback(); err != nil || outcomes(all) != "mtu failed" || Restored(all) {
		t.Error(outcomes(all), err)
	}
	delete(f.refuses, target{"mtu", "eth0"})
	f.gone[target{"mtu", "eth0"}] = true
	if all, err := d.Rollback(); err != nil || outcomes(all) != "mtu failed" || !strings.Contains(all[0].Error, "remove "+dir) {
		t.Error(all, err)
	}
	delete(f.gone, target{"mtu", "eth0"})
	if err := d.Begin("b", "bob"); err != nil {
		t.Error(err)
	}
	unchanged(t, f)
	d.Gone("b")
}

// TestInterfaceGone: a setting that went with its interface is reported once,
// and does not block tuning of the rest.
func TestInterfaceGone(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	d := tuned(t, dir, f, c)
	alter(t, d, "mtu", "eth0", "9000")
	alter(t, d, "cc", "", "cubic")
	alter(t, d, "tso", "eth0", "off")
	f.missing["eth0"] = true
	if r, err := d.Revert("a", nil); err != nil || outcomes(r) != "tso as it was, cc undone, mtu as it was" || !strings.Contains(r[0].Error, "it no longer exists") || r[1].Error != "" {
		t.Errorf("%+v %v", r, err)
	}
	d.Gone("a")
	if live, done := journals(t, dir); len(live) != 0 || len(done) != 1 {
		t.Error(live, done)
	}
	if err := d.Begin("b", "bob"); err != nil {
		t.Error(err)
	}
	d.Gone("b")
	if all, err := d.Rollback(); err != nil || len(all) > 0 {
		t.Error(outcomes(all), err)
	}
}

// TestTwoTuners: two tuners exclude each other, in one folder and in two.
func TestTwoTuners(t *testing.T) {
	f, c := newFake(settings()), conf()
	for _, second := range []string{"same", "other"} {
		dir := t.TempDir()
		d1 := tuned(t, dir, f, c)
		alter(t, d1, "cc", "", "cubic")
		if second == "other" {
			dir = t.TempDir()
		}
		d2 := open(t, dir, f, c)
		if d2.By() == "" || second == "same" && d2.By() != "alice@here" {
			t.Errorf("%s: tuned by %q", second, d2.By())
		}
		if err := d2.Begin("b", "bob"); !errors.Is(err, ErrTaken) || fault.Hint(err) == "" {
			t.Errorf("%s: %v", second, err)
		}
		if err := d1.Begin("c", "carol"); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "alice") {
			t.Error(err)
		}
		if err := d1.Begin("a", "alice"); err != nil {
			t.Error("the same client again:", err)
		}
		if _, err := d2.Rollback(); second == "same" && !errors.Is(err, ErrTaken) {
			t.Error(err)
		}
		if _, err := d1.Rollback(); !errors.Is(err, ErrTaken) {
			t.Error(err)
		}
		if some, err := d2.Recover(); len(some) > 0 || err != nil {
			t.Error("a tuning under way is undone by another:", some, err)
		}
		d1.Gone("a")
		if d1.By()+d2.By() != "" {
			t.Error("nobody tunes")
		}
		if err := d2.Begin("b", "bob"); err != nil {
			t.Error(err)
		}
		d2.Gone("b")
	}
}

// TestBoot: after a boot the settings are the system's. thru undoes its own,
// and does not touch others.
func TestBoot(t *testing.T) {
	was, thrus := "4096 131072 6291456", "1 2 3"
	tests := []struct{ name, now, file, want, why, then string }{
		{"gone with the boot", was, "", "tcp-rmem as it was, tcp-rmem as it was", "", was},
		{"made last by a file", thrus, "# net.core.rmem_max = 1\nnet/ipv4/tcp_rmem=1 2 3\n", "tcp-rmem undone, tcp-rmem undone", "set it again from /etc/sysctl.d/90-mine.conf", was},
		{"made last by who knows what", thrus, "", "tcp-rmem undone, tcp-rmem undone", "find what sets it on this host", was},
		{"made last before", "4 5 6", "", "tcp-rmem as it was, tcp-rmem undone", "", was},
		{"another value", "7 8 9", "", "tcp-rmem changed, tcp-rmem changed", `since the boot it is "7 8 9"`, "7 8 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at := target{"tcp-rmem", ""}
			dir, root, f, c := t.TempDir(), t.TempDir(), newFake(map[target]string{at: was}), conf()
			folder := filepath.Join(root, "etc/sysctl.d")
			if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(folder+"/90-mine.conf", []byte(tt.file), 0o644)); err != nil {
				t.Fatal(err)
			}
			c.Root = root
			for _, value := range []string{"4 5 6", thrus} { // two tunings, one after the other
				d := tuned(t, dir, f, c)
				alter(t, d, at.knob, "", value)
				if err := d.End("a"); err != nil {
					t.Fatal(err)
				}
			}
			c.Boot = func() string { return "boot-2" }
			f.values[at] = tt.now
			all, err := open(t, dir, f, c).Rollback()
			if err != nil || outcomes(all) != tt.want || Restored(all) != (tt.then == was) {
				t.Fatal(outcomes(all), err)
			}
			if tt.then == was && len(all) > 1 && tt.now == thrus && all[1].Error != "" {
				t.Errorf("said twice: %q", all[1].Error)
			}
			if !strings.Contains(all[0].Error, tt.why) || (tt.why == "") != (all[0].Error == "") || f.values[at] != tt.then {
				t.Errorf("%q, and it is %s", all[0].Error, f.values[at])
			}
		})
	}
}

// TestSetBackByHand: where a person has restored the values before the first
// change, all changes count as undone.
func TestSetBackByHand(t *testing.T) {
	f := newFake(settings())
	d := tuned(t, t.TempDir(), f, conf())
	alter(t, d, "cc", "", "cubic")
	alter(t, d, "cc", "", "reno")
	if err := d.End("a"); err != nil {
		t.Fatal(err)
	}
	f.values[target{"cc", ""}] = "bbr"
	if all, err := d.Rollback(); err != nil || outcomes(all) != "cc as it was, cc as it was" {
		t.Error(outcomes(all), err)
	}
}

// TestFolder: a folder that others can change is refused.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir, newFake(settings()), conf()).Begin("a", ""); err == nil || !strings.Contains(fault.Hint(err), "chmod 700") {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, file, newFake(settings()), conf()).Begin("a", ""); err == nil {
		t.Error("a file is taken for a folder")
	}
	impossible := conf()
	impossible.Possible = func() error { return fault.Failf("do this", "tune: not here") }
	d := open(t, t.TempDir(), newFake(settings()), impossible)
	if err := d.Begin("a", ""); err == nil || d.NoTune() != "tune: not here: do this" {
		t.Error(err, d.NoTune())
	}
}

// TestJournalCannotBeWritten: without a journal nothing is changed, and
// former changes can still be undone.
func TestJournalCannotBeWritten(t *testing.T) {
	f := newFake(settings())
	dir, c := t.TempDir(), conf()
	d := tuned(t, dir, f, c)
	alter(t, d, "cc", "", "cubic")
	d.tuning.journal.file.Close()
	if _, err := d.Alter("a", []measure.Setting{{Knob: "mtu", Interface: "eth0", Value: "9000"}}); !errors.Is(err, fs.ErrClosed) || fault.Hint(err) == "" {
		t.Error(err)
	}
	if f.values[target{"mtu", "eth0"}] != "1500" {
		t.Error("it is changed without a journal")
	}
	if err := d.End("a"); err == nil {
		t.Error("the end is not in the journal, and nothing reports it")
	}
	d.Gone("a")
	unchanged(t, f)
	some, err := open(t, dir, f, c).Recover()
	if err != nil || outcomes(some) != "cc as it was" {
		t.Error(outcomes(some), err)
	}
}

// TestGuardComesFirst: nothing is changed before the guard exists.
func TestGuardComesFirst(t *testing.T) {
	f, c, dir := newFake(settings()), conf(), t.TempDir()
	c.Guard = func(string) (func(bool), error) { return nil, errors.New("no process left") }
	d := tuned(t, dir, f, c)
	if _, err := d.Alter("a", []measure.Setting{{Knob: "cc", Value: "cubic"}}); err == nil || f.sets != 0 {
		t.Error(err, f.sets)
	}
	d.Gone("a")
	if live, _ := journals(t, dir); len(live) != 0 {
		t.Error(live)
	}
}

func TestKnobs(t *testing.T) {
	c := conf()
	c.Only = []string{"cc"}
	for _, k := range open(t, t.TempDir(), newFake(settings()), c).Knobs([]string{"eth0"}) {
		if (k.Refused == "") != (k.Knob == "cc") {
			t.Errorf("%+v", k)
		}
	}
}
