package tune

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Alter sets knobs, in order. It writes each change to the journal on disk
// before making it, and reads the value back. A knob that has the value
// already is not changed (outcome "as it was", no number). After an error
// Alter undoes the changes before it.
func (d *Tuner) Alter(client string, settings []measure.Setting) ([]measure.Changed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.of(client)
	if err != nil {
		return nil, err
	}
	if err := d.check(settings); err != nil {
		return nil, err
	}
	var made []measure.Changed
	for _, s := range settings {
		c, err := d.set(t, s)
		if err != nil {
			return nil, d.takeBack(t, made, err)
		}
		made = append(made, c)
	}
	return made, nil
}

// takeBack undoes the changes that Alter made before it failed.
func (d *Tuner) takeBack(t *tuning, made []measure.Changed, cause error) error {
	numbers := map[int64]bool{}
	for _, c := range made {
		numbers[c.Number] = true
	}
	for _, c := range d.undo(t.journal, numbers, pass{seen: t.seen}) {
		if c.Outcome == measure.Failed {
			cause = errors.Join(cause, fmt.Errorf("tune: and reverting %s: %s", nameOf(c.Setting), c.Error))
		}
	}
	return cause
}

// check refuses settings that this host does not offer, before anything is
// changed.
func (d *Tuner) check(settings []measure.Setting) error {
	if len(settings) > mostSettings {
		return fmt.Errorf("tune: %d settings exceed the limit of %d at a time", len(settings), mostSettings)
	}
	var interfaces []string
	for _, s := range settings {
		if len(s.Knob) > maxName || len(s.Interface) > maxName {
			return errors.New("tune: the name of a setting is too long")
		}
		if name := s.Knob + s.Interface; !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("tune: %q is not the name of a setting", name)
		}
		if err := checkValue(s.Value); err != nil {
			return fmt.Errorf("tune: setting %s: %w", nameOf(s), err)
		}
		if !d.allows(s.Knob) {
			return fault.Failf("set another one, or set it manually there: thru tune --dry-run prints the commands", "tune: %s is not on the list of this end point (thru serve --tune-only)", s.Knob)
		}
		if s.Interface != "" && !slices.Contains(interfaces, s.Interface) {
			interfaces = append(interfaces, s.Interface)
		}
	}
	for _, k := range d.machine.Knobs(interfaces) {
		if k.Refused != "" && slices.ContainsFunc(settings, func(s measure.Setting) bool { return s.Knob == k.Knob && s.Interface == k.Interface }) {
			return fault.Failf("set it manually: thru tune --dry-run prints the commands", "tune: %s cannot be changed here: %s", labelled(k.Knob, k.Interface), k.Refused)
		}
	}
	return nil
}

// set makes one change.
func (d *Tuner) set(t *tuning, s measure.Setting) (measure.Changed, error) {
	s.EndPoint = ""
	if m, ok := d.machine.(former); ok {
		var err error
		if s.Value, err = m.Form(s.Knob, s.Interface, s.Value); err != nil {
			return measure.Changed{}, err
		}
	}
	before, err := d.machine.Read(s.Knob, s.Interface)
	if err == nil {
		err = checkValue(before)
	}
	if err != nil {
		return measure.Changed{}, fmt.Errorf("tune: reading %s: %w", nameOf(s), err)
	}
	if last, ours := t.seen[target{s.Knob, s.Interface}]; ours && !same(last, before) {
		return measure.Changed{}, fault.Failf("find the program that changes it (a tuning daemon, a network manager), and stop it during a tuning",
			"tune: %s: %w: thru set %s, it is now %s", nameOf(s), ErrForeign, quote(last), quote(before))
	}
	if holds(s, before) {
		return measure.Changed{Setting: s, Before: before, Found: before, Outcome: measure.Settled}, nil
	}
	if err := d.ready(t); err != nil {
		return measure.Changed{}, err
	}
	number := t.journal.next()
	if err := t.journal.add(entry{Line: lineChange, At: d.now(), Number: number, Knob: s.Knob, Interface: s.Interface, Value: s.Value, Before: before}); err != nil {
		return measure.Changed{}, err
	}
	c := t.journal.find(number)
	if err := d.make(t, c); err != nil {
		return measure.Changed{}, d.takeBack(t, []measure.Changed{c.Changed}, err)
	}
	return c.Changed, nil
}

// make sets the knob of a change that is in the journal, and reads it back.
func (d *Tuner) make(t *tuning, c *change) error {
	moved := d.watch(t.journal, c, t.seen)
	d.conf.step("set")
	setErr := d.machine.Set(c.Knob, c.Interface, c.Value)
	d.conf.step("read")
	found, err := d.machine.Read(c.Knob, c.Interface)
	if err == nil {
		err = checkValue(found)
	}
	if err = errors.Join(setErr, err); err != nil {
		return setFailed(c.Setting, err)
	}
	if err := t.journal.add(entry{Line: lineDone, Number: c.Number, Found: found}); err != nil {
		return err
	}
	t.seen[c.target()] = found
	moved()
	if !holds(c.Setting, found) {
		return fault.Failf("read the kernel's log (dmesg): the driver or kernel limits the value, or another program sets it too",
			"tune: setting %s: the host accepted %s but reports %s; thru reverted it", nameOf(c.Setting), quote(c.Value), quote(found))
	}
	return nil
}

// setFailed adds a fix to the error of a host that refuses a setting.
func setFailed(s measure.Setting, err error) error {
	hint := fault.Hint(err)
	if hint == "" && isBusy(err) {
		hint = "stop the program that uses the link or the device, or set the link down (ip link set DEVICE down), change the setting, and set it up again"
	}
	return fault.Failf(hint, "tune: setting %s to %s: %w", nameOf(s), quote(s.Value), err)
}

// ready creates the journal and the guard of a tuning before its first
// change.
func (d *Tuner) ready(t *tuning) error {
	if t.journal != nil {
		return nil
	}
	at := d.conf.space()
	j, err := d.dir.create(entry{
		Line: lineBegin, At: d.now(), Owner: t.owner, Thru: d.conf.Version, Machine: machineID(d.conf.Root), Boot: d.conf.Boot(), Namespace: at.id, First: at.first,
	}, d.conf.step)
	if err != nil {
		return err
	}
	if d.conf.Guard != nil {
		if t.stop, err = d.conf.Guard(string(d.dir)); err != nil {
			j.close()
			return errors.Join(fmt.Errorf("tune: starting the guard process, which reverts changes if thru dies: %w", err), d.dir.finish(j))
		}
	}
	t.journal = j
	return nil
}

// former is a Machine that can put values into their canonical form.
type former interface {
	Form(knob, iface, value string) (string, error)
}

// holds reports whether a value has what was requested, which may be some
// elements of many.
func holds(s measure.Setting, found string) bool {
	return same(found, s.Value) || inForce(s.Knob, s.Value, found)
}
