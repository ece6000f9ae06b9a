package tune_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/tune"
)

// TestTunerOfAKernel: knobs of a real kernel that move each other are
// changed, undone, and rolled back, and all is as before, byte for byte.
func TestTunerOfAKernel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tune")
	inHost(t, func(m tune.Machine) error {
		before, err := snapshot()
		if err != nil {
			return err
		}
		d, err := tune.Open(dir, m, tune.Config{Version: "v"})
		if err != nil {
			return err
		}
		for _, end := range []func(string) error{d.End, func(c string) error { d.Gone(c); return nil }} {
			if err := tuneKernel(d); err != nil {
				return err
			}
			if now, err := snapshot(); err != nil || now == before {
				return fmt.Errorf("nothing is changed: %w", err)
			}
			if err := end("a"); err != nil {
				return err
			}
			all, err := d.Rollback()
			if err != nil || !tune.Restored(all) {
				return fmt.Errorf("%+v: %w", all, err)
			}
			after, err := snapshot()
			if err != nil || differs(before, after) != "" {
				return fmt.Errorf("it is not as it was: %s: %w", differs(before, after), err)
			}
		}
		return twoTunings(d, before)
	})
}

// twoTunings keeps a change in the second that moves what the first has kept.
func twoTunings(d *tune.Tuner, before string) error {
	for _, id := range []string{knob.TSO, knob.GSO, knob.TXChecksum} {
		err := d.Begin("a", "alice")
		if err == nil {
			_, err = d.Alter("a", []measure.Setting{{Knob: id, Interface: "v0", Value: "off"}})
		}
		if err = errors.Join(err, d.End("a")); err != nil {
			return err
		}
	}
	all, err := d.Rollback()
	if err != nil || !tune.Restored(all) {
		return fmt.Errorf("%+v: %w", all, err)
	}
	after, err := snapshot()
	if err != nil || differs(before, after) != "" {
		return fmt.Errorf("after two tunings it is not as it was: %s: %w", differs(before, after), err)
	}
	return nil
}

// tuneKernel changes dependent knobs, in a difficult order.
func tuneKernel(d *tune.Tuner) error {
	if err := d.Begin("a", "alice"); err != nil {
		return err
	}
	steps := [][]measure.Setting{
		{{Knob: knob.TCPRmem, Value: "4096\t65536  33554432"}, {Knob: knob.SACK, Value: "0"}},
		{{Knob: knob.TSO, Interface: "v0", Value: "off"}},
		{{Knob: knob.TXChecksum, Interface: "v0", Value: "off"}, {Knob: knob.GRO, Interface: "v0", Value: "on"}},
		{{Knob: knob.MTU, Interface: "v0", Value: "9000"}, {Knob: knob.MTU, Interface: "v1", Value: "9000"}},
		{{Knob: knob.Channels, Interface: "v0", Value: "rx 2 tx 2"}},
		{{Knob: knob.RPS, Interface: "v0", Value: "rx-0 3"}},
		{{Knob: knob.MTU, Interface: "v0", Value: "4000"}},
	}
	var numbers []int64
	for _, s := range steps {
		made, err := d.Alter("a", s)
		if err != nil {
			return err
		}
		for _, c := range made {
			if c.Number > 0 {
				numbers = append(numbers, c.Number)
			}
		}
	}
	undone, err := d.Revert("a", numbers[len(numbers)-2:])
	if err == nil && !tune.Restored(undone) {
		err = fmt.Errorf("%+v", undone)
	}
	_, refused := d.Alter("a", []measure.Setting{{Knob: knob.SACK, Value: "1"}, {Knob: knob.MTU, Interface: "v0", Value: "1"}})
	if refused == nil {
		err = errors.Join(err, errors.New("an MTU of 1 was taken"))
	}
	return err
}

// TestInterfaceIsGone: settings of a removed interface, and of a route by it,
// are gone with it; the rest is undone.
func TestInterfaceIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tune")
	inHost(t, func(m tune.Machine) error {
		d, err := tune.Open(dir, m, tune.Config{Version: "v"})
		if err != nil {
			return err
		}
		err = d.Begin("a", "alice")
		if err == nil {
			_, err = d.Alter("a", []measure.Setting{{Knob: knob.MTU, Interface: "v0", Value: "1400"}})
		}
		if err == nil {
			_, err = d.Alter("a", []measure.Setting{{Knob: knob.RouteCongestion, Interface: "10.8.0.0/16 dev v0 table main metric 7", Value: "reno"}, {Knob: knob.SACK, Value: "0"}})
		}
		if err = errors.Join(err, shell("ip link del v0"), d.End("a")); err != nil {
			return err
		}
		all, err := d.Rollback()
		if err != nil || len(all) != 3 || !tune.Restored(all) || all[0].Error != "" || !strings.Contains(all[1].Error, "no longer exists") || !strings.Contains(all[2].Error, "no longer exists") {
			return fmt.Errorf("%+v: %w", all, err)
		}
		return nil
	})
}

// TestOneName: an interface is changed by its primary name only, and listed
// once.
func TestOneName(t *testing.T) {
	inHost(t, func(m tune.Machine) error {
		if err := shell("ip link property add dev v0 altname other", "ip link property add dev v0 altname anothernameofv0"); err != nil {
			return err
		}
		for _, s := range []measure.Setting{
			{Knob: knob.MTU, Interface: "other", Value: "1400"}, {Knob: knob.MTU, Interface: "anothernameofv0", Value: "1400"}, {Knob: knob.MTU, Interface: "v0\x00x", Value: "1400"},
			{Knob: knob.TSO, Interface: "v0:1", Value: "off"}, {Knob: knob.TSO, Interface: "other", Value: "off"}, {Knob: knob.RPS, Interface: "other", Value: "rx-0 1"},
			{Knob: knob.RouteCongestion, Interface: "10.8.0.0/16 dev other table main metric 7", Value: "reno"},
		} {
			if err := m.Set(s.Knob, s.Interface, s.Value); err == nil {
				return fmt.Errorf("%s of %q is set", s.Knob, s.Interface)
			}
			if _, err := m.Read(s.Knob, s.Interface); err == nil {
				return fmt.Errorf("%s of %q is read", s.Knob, s.Interface)
			}
		}
		once, many := m.Knobs([]string{"v0"}), m.Knobs([]string{"v0", "other", "v0", "v0:1", "v0\x00x", "none"})
		if len(once) == 0 || len(many) != len(once) {
			return fmt.Errorf("%d knobs of one interface, and %d of the same by its names", len(once), len(many))
		}
		return nil
	})
}
