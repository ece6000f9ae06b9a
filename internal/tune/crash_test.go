package tune

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"thru/internal/measure"
)

// crash is the panic that stops a process.
type crash struct{}

// crasher stops a process at its nth step; 0: never.
type crasher struct {
	at, n int
	last  string
}

func (c *crasher) step(what string) {
	c.n++
	c.last = what
	if c.n == c.at {
		panic(crash{})
	}
}

// life runs a process until it ends or crashes, and releases what the kernel
// releases for a process that ends.
func life(d *Tuner, do func(*Tuner)) (crashed bool) {
	defer func() {
		if t := d.tuning; t != nil {
			t.release()
			if t.journal != nil {
				t.journal.close()
			}
			d.tuning = nil
		}
		switch r := recover().(type) {
		case nil:
		case crash:
			crashed = true
		default:
			panic(r)
		}
	}()
	do(d)
	return false
}

// session is a tuning with all possible steps: kept, undone, tried again,
// failed half way, refused.
func session(d *Tuner) {
	must(d.Begin("a", "alice"))
	one := setAll(d, measure.Setting{Knob: "rmem", Value: "1 2 3"}, measure.Setting{Knob: "wmem", Value: "4 5 6"})
	setAll(d, measure.Setting{Knob: "mtu", Interface: "eth0", Value: "9000"})
	for range 2 { // runs of a comparison
		d.Revert("a", one)
		one = setAll(d, measure.Setting{Knob: "rmem", Value: "1 2 3"}, measure.Setting{Knob: "wmem", Value: "4 5 6"})
	}
	d.Revert("a", one[1:])
	d.Alter("a", []measure.Setting{{Knob: "cc", Value: "cubic"}, {Knob: "tso", Interface: "eth0", Value: "off"}}) // which is refused
	setAll(d, measure.Setting{Knob: "rmem", Value: "7 8 9"})
	must(d.End("a"))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func setAll(d *Tuner, s ...measure.Setting) (numbers []int64) {
	made, err := d.Alter("a", s)
	must(err)
	for _, c := range made {
		numbers = append(numbers, c.Number)
	}
	return numbers
}

// TestCrash stops a tuning at each of its steps, and its undo at each of its
// own: after a rollback the settings are as before.
func TestCrash(t *testing.T) {
	t.Parallel()
	world := func(at int) (*fake, Config, *crasher) {
		f, c, k := newFake(settings()), conf(), &crasher{at: at}
		f.refuses[target{"tso", "eth0"}] = errNo
		f.step, c.step = k.step, k.step
		return f, c, k
	}
	f, c, count := world(0)
	if life(open(t, t.TempDir(), f, c), session) || count.n < 50 {
		t.Fatalf("the whole has %d steps", count.n)
	}
	for at := 1; at <= count.n; at++ {
		for _, left := range []string{"whole", "half", "none"} {
			f, c, k := world(at)
			dir := filepath.Join(t.TempDir(), "tune")
			if !life(open(t, dir, f, c), session) {
				t.Fatalf("no crash at step %d", at)
			}
			if k.last != "sync" && left != "whole" {
				continue
			}
			loseUnsynced(t, dir, left)
			name := fmt.Sprintf("step %d (%s), %s", at, k.last, left)
			second := 1 + at%9 // the second process crashes too, while it undoes
			k.at, k.n = second, 0
			life(open(t, dir, f, c), func(d *Tuner) { d.Recover() })
			if k.last == "sync" && k.n == second {
				loseUnsynced(t, dir, left)
			}
			k.at = 0
			life(open(t, dir, f, c), func(d *Tuner) {
				all, err := d.Rollback()
				if err != nil || anyFailed(all) {
					t.Errorf("%s: %s %v", name, outcomes(all), err)
				}
				for _, x := range all {
					if x.Outcome == measure.Foreign {
						t.Errorf("%s: %s is taken for somebody else's: %s", name, x.Knob, x.Error)
					}
				}
				if more, err := d.Rollback(); err != nil || len(more) > 0 {
					t.Errorf("%s: once more: %s %v", name, outcomes(more), err)
				}
			})
			unchanged(t, f)
			if live, _ := journals(t, dir); len(live) > 0 {
				t.Errorf("%s: %v is left", name, live)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// loseUnsynced drops what the disk has not synced yet, or half of it.
func loseUnsynced(t *testing.T, dir, left string) {
	t.Helper()
	live, _ := journals(t, dir)
	if left == "whole" || len(live) == 0 {
		return
	}
	path := filepath.Join(dir, live[len(live)-1])
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		t.Fatal(err)
	}
	at := bytes.LastIndexByte(b[:len(b)-1], '\n') + 1
	if left == "half" {
		at += (len(b) - at) / 2
	}
	if err := os.Truncate(path, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// TestRecover: the next process first undoes a tuning that a crash
// interrupted, but not one that ended.
func TestRecover(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	life(open(t, dir, f, c), func(d *Tuner) {
		must(d.Begin("a", "alice"))
		setAll(d, measure.Setting{Knob: "cc", Value: "cubic"})
		must(d.End("a"))
		must(d.Begin("a", "alice"))
		setAll(d, measure.Setting{Knob: "mtu", Interface: "eth0", Value: "9000"}, measure.Setting{Knob: "cc", Value: "reno"})
	})
	d := open(t, dir, f, c)
	if d.By() != "" || outcomes(d.Open()) != "cc , mtu , cc " {
		t.Error(d.By(), outcomes(d.Open()))
	}
	some, err := d.Recover()
	if err != nil || outcomes(some) != "cc undone, mtu undone" || f.values[target{"cc", ""}] != "cubic" {
		t.Error(outcomes(some), err)
	}
	if some, err := d.Recover(); err != nil || len(some) > 0 {
		t.Error(some, err)
	}
	if all, err := d.Rollback(); err != nil || outcomes(all) != "cc undone" {
		t.Error(outcomes(all), err)
	}
	unchanged(t, f)
}
